/** The calls that a claim rests on: what each used, as its client got it. Neither prompts nor answers, nor secrets of keys. */
import { isoFromMicros } from '../../domain/period.js';
import { joinKeyAccount, keyAccount } from '../billing/keyAccounts.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';

/** A call, its tokens by the classes that a bill counts. */
export interface EvidenceEvent {
  id: string;
  startMicros: bigint;
  endMicros: bigint;
  requestId: string | null;
  providerKeyId: string | null;
  model: string;
  responseModel: string | null;
  serviceTier: string | null;
  isBatch: boolean;
  contextBand: number;
  status: string;
  httpStatus: number | null;
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  output: number;
  inputAudio: number;
  outputAudio: number;
  /** As the client got it. */
  usageRaw: string | null;
}

export interface EventsOfDay {
  provider: string;
  /** '' where calls of every account count. */
  accountId: string;
  /** The billed names of the calls' models. */
  models: readonly string[];
  fromMicros: bigint;
  toMicros: bigint;
}

/** A call starts at most so long before it ends: what bounds the partitions that are looked at. */
const LONGEST_CALL = "interval '12 days'";

const OF_DAY = `events e ${joinKeyAccount('e', '$2')}
  where e.org_id = $1 and e.billed_by = $2 and e.timestamp >= $3::timestamptz - ${LONGEST_CALL} and e.timestamp < $4::timestamptz
    and e.end_at >= $3::timestamptz and e.end_at < $4::timestamptz and e.superseded_by is null and e.status <> 'blocked'
    and ($5 = '' or ${keyAccount('e')} = $5)
    and coalesce(e.response_model, e.model) = any($6::text[])`;

const valuesOf = (orgDb: OrgDb, of: EventsOfDay) => [
  orgDb.orgId,
  of.provider,
  isoFromMicros(of.fromMicros),
  isoFromMicros(of.toMicros),
  of.accountId,
  textArray(of.models),
];

/** How many calls ended in a time, of some models. */
export async function countEventsOfDay(orgDb: OrgDb, of: EventsOfDay): Promise<number> {
  const [row] = await orgDb.rows<{ calls: number }>(
    `select count(*)::bigint as calls from ${OF_DAY}`,
    valuesOf(orgDb, of),
  );
  return row?.calls ?? 0;
}

/** The calls that ended in a time, of some models, in the order of their ends, at most so many. */
export async function listEventsOfDay(
  orgDb: OrgDb,
  of: EventsOfDay,
  limit: number,
): Promise<EvidenceEvent[]> {
  return orgDb.rows<EvidenceEvent>(
    `select e.id, e.timestamp as "startMicros", e.end_at as "endMicros", e.request_id as "requestId", e.provider_key_id as "providerKeyId",
       e.model, e.response_model as "responseModel", e.service_tier as "serviceTier", e.is_batch as "isBatch", e.context_band as "contextBand",
       e.status, e.http_status as "httpStatus", e.input_tokens - e.input_audio as input, e.cache_read as "cacheRead",
       e.cache_creation - coalesce(e.cache_creation_1h, 0) as "cacheWrite5m", coalesce(e.cache_creation_1h, 0) as "cacheWrite1h",
       e.output_tokens - e.output_audio as output, e.input_audio as "inputAudio", e.output_audio as "outputAudio", e.usage_raw as "usageRaw"
     from ${OF_DAY} order by e.end_at, e.id limit $7`,
    [...valuesOf(orgDb, of), limit],
  );
}
