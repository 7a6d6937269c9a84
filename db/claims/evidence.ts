import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { type BilledRow, MONTH_REPORT } from '../../domain/billing/billedRow.js';
import type { ConnectionSettings } from '../../domain/billing/connections.js';
import type { PackedFile } from '../../domain/claims/evidence/claimCsv.js';
import type { EvidenceFile } from '../../domain/claims/evidence/claimEvidence.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { joinKeyAccount, keyAccount } from '../billing/billingCells.js';
import { countedRowsSql, countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';

/** Inputs of a claim's evidence: the published results of its series, and the rows of the bill behind them. */

/** A series: one model as buckets name it, of one account; '' where calls of unknown account are compared with all. */
export interface ClaimedSeries {
  provider: string;
  accountId: string;
  model: string;
}

export interface PublishedDay {
  day: string;
  /** As `evidenceFromJson` reads it; null: the day is from before evidence was stored. */
  evidence: unknown;
  matchId: string;
  matchStatus: string;
  grade: string;
  confidenceScore: number | null;
  eventCount: number | null;
}

/** The published days of a series in a window of days, both inclusive, in order. Time grows with the days. */
export async function listPublishedSeriesDays(
  orgDb: OrgDb,
  series: ClaimedSeries,
  window: { fromDay: string; toDay: string },
): Promise<PublishedDay[]> {
  return orgDb.rows<PublishedDay>(
    `select p.day, b.evidence, b.match_id as "matchId", b.match_status as "matchStatus", b.grade,
       b.confidence_score as "confidenceScore", b.event_count as "eventCount"
     from gap_published p cross join lateral (
       select evidence, match_id, match_status, grade, confidence_score, event_count from gap_buckets
       where org_id = $1 and run_id = p.run_id and provider = $2 and provider_account_id = $3
         and width = 'day' and bucket = p.day::timestamptz and model = $4 limit 1) b
     where p.org_id = $1 and p.provider = $2 and p.provider_account_id = $3 and p.day between $5::date and $6::date
     order by p.day`,
    [orgDb.orgId, series.provider, series.accountId, series.model, window.fromDay, window.toDay],
  );
}

/** The days of a run, and the hours by which it took each provider's clock to be ahead of UTC. */
export interface RunWindow {
  startMicros: bigint;
  endMicros: bigint;
  dayOffsets: Record<string, number>;
}

export async function findRunWindow(orgDb: OrgDb, runId: string): Promise<RunWindow | undefined> {
  const [row] = await orgDb.rows<RunWindow>(
    `select window_start as "startMicros", window_end as "endMicros", day_offsets as "dayOffsets"
     from gap_runs where org_id = $1 and id = $2::uuid`,
    [orgDb.orgId, runId],
  );
  return row;
}

/** A counted row of a bill, with its source. */
export interface CountedRow
  extends Pick<
    BilledRow,
    | 'feed'
    | 'report'
    | 'day'
    | 'lineItem'
    | 'model'
    | 'tokenClass'
    | 'serviceTier'
    | 'isBatch'
    | 'longContext'
    | 'region'
    | 'project'
    | 'apiKey'
    | 'quantity'
  > {
  sourceId: string;
  rowNo: number;
  accountId: string;
  periodStartMicros: bigint;
  periodEndMicros: bigint;
  amountPico: Pico | null;
  currency: string | null;
  originalAmount: bigint | null;
}

const ROW_COLUMNS = `r.source_id as "sourceId", r.row_no as "rowNo", r.provider_account_id as "accountId", r.feed, r.report, r.day,
  r.period_start as "periodStartMicros", r.period_end as "periodEndMicros", r.line_item as "lineItem", r.model, r.token_class as "tokenClass",
  r.service_tier as "serviceTier", r.is_batch as "isBatch", r.long_context as "longContext", r.region, r.project, r.api_key as "apiKey",
  r.quantity, r.amount_usd as "amountPico", r.currency, r.original_amount as "originalAmount"`;

/** Counted rows of some days that name one of the models, or no model and one of the labels; '' for all accounts. */
export async function listCountedRows(
  orgDb: OrgDb,
  of: {
    provider: string;
    accountId: string;
    days: readonly string[];
    models: readonly string[];
    labels: readonly string[];
  },
): Promise<CountedRow[]> {
  return orgDb.rows<CountedRow>(
    `with counted as (${countedSourcesSql(
      `d.org_id = $1 and d.provider = $2 and d.day = any($4::date[]) and ($3 = '' or d.provider_account_id = $3)
       and d.charge_category = 'usage' and d.report <> '${MONTH_REPORT}'`,
    )})
     select ${ROW_COLUMNS} from ${countedRowsSql('(model = any($5::text[]) or line_item = any($6::text[]))')} r
     order by r.day, r.feed, r.source_id, r.row_no`,
    [orgDb.orgId, of.provider, of.accountId, textArray(of.days), textArray(of.models), textArray(of.labels)],
  );
}

export interface EvidenceSource {
  id: string;
  kind: 'file' | 'api';
  provider: string;
  filename: string;
  format: string;
  sha256: string;
  sizeBytes: number;
  /** Declared with a file. */
  declaredFxRate: string | null;
  /** Of the connection that fetched it. */
  settings: ConnectionSettings | null;
  fetchedAtMicros: bigint;
  periodStart: string | null;
  periodEnd: string | null;
}

export async function listEvidenceSources(orgDb: OrgDb, ids: readonly string[]): Promise<EvidenceSource[]> {
  return orgDb.rows<EvidenceSource>(
    `select s.id, s.kind, s.provider, s.filename, s.format, s.sha256, s.size_bytes as "sizeBytes",
       s.declared_fx_rate::text as "declaredFxRate", c.settings, s.fetched_at as "fetchedAtMicros",
       s.period_start as "periodStart", s.period_end as "periodEnd"
     from billing_sources s left join billing_connections c on c.org_id = $1 and c.id = s.connection_id
     where s.org_id = $1 and s.id = any($2::uuid[]) order by s.id`,
    [orgDb.orgId, textArray(ids)],
  );
}

interface EvidenceFetchedPage {
  id: string;
  requestPath: string;
  providerRequestId: string | null;
  sha256: string;
  body: Buffer;
  fetchedAtMicros: bigint;
  /** The cursor that the previous page returned; null for the first page. */
  previousCursor: string | null;
}

/** The pages that a connection's source was read from, in order. */
export async function listPagesOfSource(orgDb: OrgDb, sourceId: string): Promise<EvidenceFetchedPage[]> {
  return orgDb.rows<EvidenceFetchedPage>(
    `select p.id, p.request_path as "requestPath", p.provider_request_id as "providerRequestId", p.sha256, p.body,
       s.fetched_at as "fetchedAtMicros", lag(s.next_cursor) over (order by s.run_id, s.ordinal, s.page_no) as "previousCursor"
     from sync_chunks c join sync_pages s on s.org_id = $1 and s.run_id = c.run_id and s.ordinal = c.ordinal
     join billing_fetched_pages p on p.org_id = $1 and p.id = s.page_id
     where c.org_id = $1 and c.source_id = $2::uuid order by s.run_id, s.ordinal, s.page_no`,
    [orgDb.orgId, sourceId],
  );
}

export async function readFileBytes(orgDb: OrgDb, sourceId: string): Promise<Buffer> {
  const rows = await orgDb.rows<{ body: Buffer }>(
    'select body from billing_pages where org_id = $1 and source_id = $2::uuid order by page_no',
    [orgDb.orgId, sourceId],
  );
  return Buffer.concat(rows.map(({ body }) => body));
}

/**
 * The calls behind a claim: the usage of each, as its client received it. Neither prompts nor answers, nor secrets of
 * keys.
 */

/** A call, with its tokens by billed token class. */
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
  /** As the client received it. */
  usageRaw: string | null;
}

export interface EventsOfDay {
  provider: string;
  accountId: string;
  /** The billed names of the calls' models. */
  models: readonly string[];
  fromMicros: bigint;
  toMicros: bigint;
}

/** Longest time from the start of a call to its end; it bounds the partitions that are searched. */
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

/** Number of calls of some models that ended in a time. */
export async function countEventsOfDay(orgDb: OrgDb, of: EventsOfDay): Promise<number> {
  const [row] = await orgDb.rows<{ calls: number }>(
    `select count(*)::bigint as calls from ${OF_DAY}`,
    valuesOf(orgDb, of),
  );
  return row?.calls ?? 0;
}

/** Calls of some models that ended in a time, in the order of their ends, up to a limit. */
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

/** The files of claims' evidence, as they were when each claim was drafted. */

const pack = promisify(gzip);
const unpack = promisify(gunzip);

export interface StoredFile extends PackedFile {
  bytes: Buffer;
}

interface FileRow {
  name: string;
  mediaType: string;
  sizeBytes: number;
  sha256: Buffer;
  content: Buffer;
}

const COLUMNS = 'name, media_type as "mediaType", bytes as "sizeBytes", sha256, content';

/** Throws Error when the bytes do not match the stored hash. */
async function fromFileRow({ content, sha256, ...file }: FileRow): Promise<StoredFile> {
  const bytes = await unpack(content);
  const digest = createHash('sha256').update(bytes).digest();
  if (!digest.equals(sha256)) throw new Error(`the stored file ${file.name} of a claim is damaged`);
  return { ...file, sha256: digest.toString('hex'), bytes };
}

export async function findClaimFile(
  orgDb: OrgDb,
  claimId: string,
  name: string,
): Promise<StoredFile | undefined> {
  const [row] = await orgDb.rows<FileRow>(
    `select ${COLUMNS} from claim_files where org_id = $1 and claim_id = $2::uuid and name = $3`,
    [orgDb.orgId, claimId, name],
  );
  return row && fromFileRow(row);
}

/** All files of a claim by name; held in memory as a whole. */
export async function listClaimFiles(orgDb: OrgDb, claimId: string): Promise<StoredFile[]> {
  const rows = await orgDb.rows<FileRow>(
    `select ${COLUMNS} from claim_files where org_id = $1 and claim_id = $2::uuid order by name collate "C"`,
    [orgDb.orgId, claimId],
  );
  return Promise.all(rows.map(fromFileRow));
}

/** Stores files of a claim's evidence; existing ones stay. */
export async function insertClaimFiles(
  inside: OrgDb,
  claimId: string,
  files: readonly EvidenceFile[],
): Promise<void> {
  for (const { name, mediaType, bytes } of files)
    await inside.run(
      `insert into claim_files (org_id, claim_id, name, media_type, bytes, sha256, content)
       values ($1, $2::uuid, $3, $4, $5, $6, $7) on conflict do nothing`,
      [
        ...[inside.orgId, claimId, name, mediaType, bytes.length],
        ...[createHash('sha256').update(bytes).digest(), await pack(bytes)],
      ],
    );
}

/** Stores a file once while the claim's evidence is unchanged; undefined: it changed. Call it in a transaction. */
export async function insertClaimFile(
  inside: OrgDb,
  claimId: string,
  evidenceSha256: string,
  file: EvidenceFile,
): Promise<StoredFile | undefined> {
  const [same] = await inside.rows<{ id: string }>(
    'select id from claims where org_id = $1 and id = $2::uuid and evidence_sha256 = $3 for share',
    [inside.orgId, claimId, Buffer.from(evidenceSha256, 'hex')],
  );
  if (!same) return undefined;
  await insertClaimFiles(inside, claimId, [file]);
  return findClaimFile(inside, claimId, file.name);
}
