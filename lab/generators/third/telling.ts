/** The report of a call by the client that made it, with the client's faults. */
import type { ToldCall } from '../world.js';
import type { Fault } from './company.js';
import type { Dice } from './dice.js';
import { FRESH, KEEP_LONG, KEEP_SHORT, OUT, READ } from './tariffs.js';
import type { Call } from './traffic.js';

const REFUSED = 529;

/** Faults that hide calls or counts, by which claims of quantities lose their evidence. */
export const HIDING: ReadonlySet<Fault['form']> = new Set([
  'silent',
  'loses_some',
  'loses_cut_output',
  'cached_inside_input',
  'knows_no_cache',
  'hides_reasoning',
]);

/** The key of the taxonomy for each fault; '': none. */
export const CAUSES: Record<Fault['form'], string> = {
  silent: 'unobserved_usage',
  loses_some: 'unobserved_usage',
  loses_cut_output: 'client_metering_error',
  cached_inside_input: 'client_metering_error',
  knows_no_cache: 'client_metering_error',
  tier_as_requested: 'client_metering_error',
  batch_unflagged: 'client_metering_error',
  hides_reasoning: 'client_metering_error',
  names_no_answer: '',
};

/** undefined: the call is not reported. */
export function tell(dice: Dice, call: Call): ToldCall | undefined {
  const { series, service, at, use, counts } = call;
  const { provider, accountId } = series.account;
  const faults = service.faults.filter(({ from, to }) => at >= from && at < to);
  const has = (form: Fault['form']) =>
    faults.some((fault) => fault.form === form && (fault.share >= 1 || dice.happens(fault.share)));
  if (has('silent') || has('loses_some')) return undefined;
  const [fresh = 0, read = 0, short = 0, long = 0] = [FRESH, READ, KEEP_SHORT, KEEP_LONG].map(
    (meter) => counts[meter] ?? 0,
  );
  const all = fresh + read + short + long;
  const isCut = call.outcome === 'cancelled' || has('loses_cut_output');
  const isCounted = !isCut || !faults.some(({ form }) => form === 'loses_cut_output');
  const hidden = has('hides_reasoning') ? call.reasoning : 0;
  const output = isCounted ? (counts[OUT] ?? 0) - hidden : Math.floor((counts[OUT] ?? 0) * dice.share());
  const lacksCache = has('knows_no_cache');
  const isInside = !lacksCache && has('cached_inside_input');
  const namesAnswer = !faults.some(({ form }) => form === 'names_no_answer');
  return {
    provider,
    accountId,
    keyId: service.keyId,
    model: service.toldModel || profileOf(call),
    serviceTier:
      has('tier_as_requested') && !use.isBatch ? 'priority' : use.tier === 'standard' ? null : use.tier,
    isBatch: use.isBatch && !has('batch_unflagged'),
    status: isCut && call.outcome === 'ok' ? 'cancelled' : call.outcome,
    httpStatus: call.outcome === 'error' && namesAnswer ? REFUSED : null,
    isNamedByAnswer: namesAnswer,
    serviceName: service.name,
    endSeconds: at,
    input: lacksCache || isInside ? all : fresh,
    cacheRead: lacksCache ? 0 : read,
    cacheWrite5m: lacksCache ? 0 : short,
    cacheWrite1h: lacksCache ? 0 : long,
    output,
    reasoning: Math.min(output, call.reasoning - hidden),
    lacksCache,
    inferenceGeo: provider === 'anthropic' && use.isElsewhere ? 'us' : null,
  };
}

/** Bedrock's inference profile of the call. */
export const profileOf = ({ series, use }: Call): string =>
  `${use.isElsewhere ? 'us' : 'global'}.${series.tariff.told}`;
