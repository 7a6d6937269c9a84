/** The company's reports of its calls and their faults: outages, silent services, clients that omit fields. */
import { OUTPUT, READ, WRITE_1H, WRITE_5M } from '../bills/rateBook.js';
import { DAY_SECONDS } from '../support/days.js';
import type { Random } from '../support/random.js';
import type { ToldCall } from '../world.js';
import type { SeriesPlan } from './series.js';
import type { RealCall } from './traffic.js';

export type TellingFault =
  | 'none'
  | 'sdk_outages'
  | 'quiet_service'
  | 'lost_at_random'
  | 'lacks_cache'
  | 'batch_unflagged'
  | 'no_reasoning'
  | 'cut_streams';

/** The key of the taxonomy for each fault. */
export const FAULT_CAUSES: Record<TellingFault, string> = {
  none: '',
  sdk_outages: 'unobserved_usage',
  quiet_service: 'unobserved_usage',
  lost_at_random: 'unobserved_usage',
  lacks_cache: 'client_metering_error',
  batch_unflagged: 'client_metering_error',
  no_reasoning: 'client_metering_error',
  cut_streams: 'client_metering_error',
};

export interface Telling {
  fault: TellingFault;
  /** Half-open, Unix seconds; no call within is reported. */
  outages: readonly { from: number; to: number }[];
  lostShare: number;
  quietService: string | null;
}

/** A third of the series have faulty reports. */
export function planTelling(random: Random, series: SeriesPlan): Telling {
  const possible: TellingFault[] = ['sdk_outages', 'sdk_outages', 'lost_at_random', 'cut_streams'];
  if (series.services.length > 1) possible.push('quiet_service');
  if (series.readShare > 0.1) possible.push('lacks_cache');
  if (series.batchShare > 0.1) possible.push('batch_unflagged');
  if (series.reasoningShare > 0.2) possible.push('no_reasoning');
  const fault = random.chance(0.35) ? random.pick(possible) : 'none';
  const outages = Array.from({ length: fault === 'sdk_outages' ? random.whole(1, 3) : 0 }, () => {
    const from = Math.floor(random.between(series.firstDay, series.lastDay) * DAY_SECONDS);
    return { from, to: from + Math.floor(random.between(4, 40) * 3_600) };
  });
  return {
    fault,
    outages,
    lostShare: fault === 'lost_at_random' ? random.between(0.04, 0.35) : 0,
    quietService: fault === 'quiet_service' ? (series.services[0] ?? null) : null,
  };
}

const REFUSED_WITH = 503;

/** Clients of some series, chosen by their first key, report neither the answering model nor an error's status. */
export const isSilent = (series: SeriesPlan): boolean =>
  (series.keys[0]?.keyId.charCodeAt(series.keys[0].keyId.length - 1) ?? 0) % 7 === 0;

/** The report of a call; undefined: it is not reported. */
export function tell(random: Random, call: RealCall, telling: Telling): ToldCall | undefined {
  const { series, endSeconds, asked } = call;
  if (telling.outages.some(({ from, to }) => endSeconds >= from && endSeconds < to)) return undefined;
  if (call.service === telling.quietService || random.chance(telling.lostShare)) return undefined;
  const [input = 0, read = 0, write5m = 0, write1h = 0, output = 0] = call.tokens;
  const lacksCache = telling.fault === 'lacks_cache';
  const cut = call.status === 'cancelled' ? random.next() : 1;
  const cutMore = telling.fault === 'cut_streams' && random.chance(0.3) ? random.next() : 1;
  const unseen = telling.fault === 'no_reasoning' ? call.reasoning : 0;
  const reportedOutput = Math.max(0, Math.round((output - unseen) * cut * cutMore));
  return {
    provider: series.model.provider,
    accountId: series.accountId,
    keyId: call.keyId,
    model: series.model.model,
    serviceTier: asked.tier === 'standard' ? null : asked.tier,
    isBatch: asked.isBatch && telling.fault !== 'batch_unflagged',
    status: cutMore < 1 && call.status === 'ok' ? 'cancelled' : call.status,
    httpStatus: call.status === 'error' && !isSilent(series) ? REFUSED_WITH : null,
    isNamedByAnswer: !isSilent(series),
    serviceName: call.service,
    endSeconds,
    input: lacksCache ? input + read + write5m + write1h : input,
    cacheRead: lacksCache ? 0 : read,
    cacheWrite5m: lacksCache ? 0 : write5m,
    cacheWrite1h: lacksCache ? 0 : write1h,
    output: reportedOutput,
    reasoning: Math.min(reportedOutput, unseen > 0 ? 0 : call.reasoning),
    lacksCache,
    inferenceGeo: asked.geo === 'us' ? 'us' : null,
  };
}

/** `tell` depends on this order of classes; it must fail if the order of the book changes. */
if (READ !== 1 || WRITE_5M !== 2 || WRITE_1H !== 3 || OUTPUT !== 4)
  throw new Error('the classes have another order');
