/** The calls behind a claim: as lines of a file, summed by token class, and as a sample. */
import { countEventsOfDay, type EvidenceEvent, listEventsOfDay } from '../../db/claims/evidence.js';
import type { OrgDb } from '../../db/orgDb.js';
import { timesOfBillingDay } from '../../domain/billing/billingDay.js';
import type { JsonValue } from '../../domain/claims/evidence/claimCsv.js';
import type {
  EvidenceFile,
  EvidenceObserved,
  EvidenceSample,
} from '../../domain/claims/evidence/claimEvidence.js';
import { takeInTurns } from '../../domain/claims/evidence/documentTexts.js';
import { TOKEN_CLASSES, type TokenClass } from '../../domain/events/event.js';
import { publicId } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';

/** Most calls in a pack: when only the rate is disputed, and when the quantity is. */
const RATE_EVENTS_MAX = 20_000;
const QUANTITY_EVENTS_MAX = 200_000;
/** Most request ids that a claim lists. */
export const SAMPLES_MAX = 40;

export const EVENTS_FILE = 'events.jsonl';

/** A claimed day of a series, with the model names of its calls. */
export interface ClaimedDay {
  provider: string;
  accountId: string;
  model: string;
  day: string;
  offsetHours: number;
  models: readonly string[];
}

interface EvidenceCalls {
  file: EvidenceFile | null;
  observed: EvidenceObserved[];
  samples: EvidenceSample[];
  total: number;
  included: number;
}

/**
 * Reads the calls of the claimed days. `isQuantity`: the number of units is disputed, so all calls are needed. Time and
 * memory grow with the calls of the days, which are held as text.
 */
export async function readCalls(
  inside: OrgDb,
  days: readonly ClaimedDay[],
  isQuantity: boolean,
): Promise<EvidenceCalls> {
  const scopes = days.map((day) => ({ day, of: eventsOf(day) }));
  let total = 0;
  for (const { of } of scopes) total += await countEventsOfDay(inside, of);
  const limit = isQuantity ? QUANTITY_EVENTS_MAX : RATE_EVENTS_MAX;
  const isWhole = total <= limit;
  // Some calls of every day are sampled, so that every model is represented.
  const perDay = Math.max(1, Math.ceil(SAMPLES_MAX / Math.max(1, days.length)));
  const lines: string[] = [];
  const observed: EvidenceObserved[] = [];
  const samples: EvidenceSample[][] = [];
  for (const { day, of } of scopes) {
    const events = await listEventsOfDay(inside, of, isWhole ? limit : perDay * 5);
    if (isWhole) {
      observed.push(...sumsOf(day, events));
      for (const event of events) lines.push(JSON.stringify(lineOf(day, event)));
    }
    samples.push(sampleOf(day, events, perDay));
  }
  return {
    file: isWhole && lines.length > 0 ? fileOf(lines) : null,
    observed,
    samples: takeInTurns(samples, Math.max(SAMPLES_MAX, days.length)),
    total,
    included: lines.length,
  };
}

const fileOf = (lines: readonly string[]): EvidenceFile => ({
  name: EVENTS_FILE,
  mediaType: 'application/x-ndjson',
  bytes: Buffer.from(`${lines.join('\n')}\n`),
});

function eventsOf({ provider, accountId, models, day, offsetHours }: ClaimedDay) {
  const times = timesOfBillingDay(provider as Provider, day, offsetHours);
  return { provider, accountId, models, fromMicros: times.startMicros, toMicros: times.endMicros };
}

const tokensOf = (event: EvidenceEvent): Record<TokenClass, number> => ({
  input: event.input,
  cache_read: event.cacheRead,
  cache_write_5m: event.cacheWrite5m,
  cache_write_1h: event.cacheWrite1h,
  output: event.output,
  input_audio: event.inputAudio,
  output_audio: event.outputAudio,
});

function lineOf({ day, model }: ClaimedDay, event: EvidenceEvent) {
  return {
    id: publicId('evt', event.id),
    day,
    model,
    timestamp: isoFromMicros(event.startMicros),
    end_at: isoFromMicros(event.endMicros),
    request_id: event.requestId,
    provider_key_id: event.providerKeyId,
    called_model: event.model,
    response_model: event.responseModel,
    service_tier: event.serviceTier,
    is_batch: event.isBatch,
    long_context: event.contextBand > 0,
    status: event.status,
    http_status: event.httpStatus,
    tokens: tokensOf(event),
    usage: usageOf(event),
  };
}

/** JSON escapes of characters that the database does not store. */
const UNKEPT = /\\u(?:0000|d[89a-f][0-9a-f]{2})/i;

/**
 * The usage object as the client received it; its text where it is not JSON, or contains characters that the database
 * does not store.
 */
function usageOf({ usageRaw }: EvidenceEvent): JsonValue {
  if (usageRaw === null || UNKEPT.test(usageRaw)) return usageRaw;
  try {
    return JSON.parse(usageRaw) as JsonValue;
  } catch {
    return usageRaw;
  }
}

function sumsOf({ day, model }: ClaimedDay, events: readonly EvidenceEvent[]): EvidenceObserved[] {
  return TOKEN_CLASSES.flatMap((tokenClass) => {
    const sums = { ok: 0n, cancelled: 0n, failed: 0n };
    for (const event of events) {
      const count = BigInt(tokensOf(event)[tokenClass]);
      if (event.status === 'error') sums.failed += count;
      else if (event.status === 'cancelled') sums.cancelled += count;
      else sums.ok += count;
    }
    if (sums.ok + sums.cancelled + sums.failed === 0n) return [];
    return [
      {
        day,
        model,
        token_class: tokenClass,
        ok: String(sums.ok),
        cancelled: String(sums.cancelled),
        failed: String(sums.failed),
      },
    ];
  });
}

/** Evenly spaced calls of a day. Calls with a request id come first, because the provider looks calls up by it. */
function sampleOf(
  { day, model }: ClaimedDay,
  events: readonly EvidenceEvent[],
  count: number,
): EvidenceSample[] {
  const named = events.filter((event) => event.requestId !== null);
  const from = named.length > 0 ? named : events;
  const step = Math.max(1, Math.floor(from.length / count));
  return from
    .filter((_event, at) => at % step === 0)
    .slice(0, count)
    .map((event) => ({
      request_id: event.requestId,
      day,
      timestamp: isoFromMicros(event.startMicros),
      end_at: isoFromMicros(event.endMicros),
      model,
      response_model: event.responseModel,
      service_tier: event.serviceTier,
      status: event.status,
      http_status: event.httpStatus,
      usage: usageOf(event),
    }));
}
