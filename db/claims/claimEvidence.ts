/** What the evidence of a claim is made of: what a run has published of its series, and the rows of the bill behind it. */
import type { BilledRow } from '../../domain/billing/billedRow.js';
import { MONTH_REPORT } from '../../domain/billing/billedRow.js';
import type { ConnectionSettings } from '../../domain/billing/connectionScope.js';
import type { Pico } from '../../domain/money.js';
import { countedRowsSql, countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';

/** A series: one model as buckets name it, of one account; '' where calls of unknown account are compared with all. */
export interface ClaimedSeries {
  provider: string;
  accountId: string;
  model: string;
}

/** A published day of a series. */
export interface PublishedDay {
  day: string;
  /** As `evidenceFromJson` reads it; null of days from before evidence was kept. */
  evidence: unknown;
  matchId: string;
  matchStatus: string;
  grade: string;
  confidenceScore: number | null;
  eventCount: number | null;
}

/** The published days of a series in a window of days, both inclusive, in their order. Work grows with the days. */
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

/** Which days a run looked at, and by how many hours it took each provider's clock to be ahead of UTC. */
export interface RunWindow {
  startMicros: bigint;
  endMicros: bigint;
  dayOffsets: Record<string, number>;
}

/** Undefined where there is no such run. */
export async function findRunWindow(orgDb: OrgDb, runId: string): Promise<RunWindow | undefined> {
  const [row] = await orgDb.rows<RunWindow>(
    `select window_start as "startMicros", window_end as "endMicros", day_offsets as "dayOffsets"
     from gap_runs where org_id = $1 and id = $2::uuid`,
    [orgDb.orgId, runId],
  );
  return row;
}

/** A row of a bill that counts, with the source that it was read from. */
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

/**
 * The rows of the bill that count for some days of an account ('' for all accounts of the provider) and that name one of
 * the models, or where they name none one of the labels. In one order.
 */
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

/** Where rows of a bill came from. */
export interface EvidenceSource {
  id: string;
  kind: 'file' | 'api';
  provider: string;
  filename: string;
  format: string;
  sha256: string;
  sizeBytes: number;
  /** Given with a file. */
  declaredFxRate: string | null;
  /** Of the connection that fetched it. */
  settings: ConnectionSettings | null;
  fetchedAtMicros: bigint;
  periodStart: string | null;
  periodEnd: string | null;
}

/** The sources with these ids, in the order of their ids. */
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

/** A page that a sync read, as it came. */
export interface EvidenceFetchedPage {
  id: string;
  requestPath: string;
  providerRequestId: string | null;
  sha256: string;
  body: Buffer;
  fetchedAtMicros: bigint;
  /** Where the page before it said that this one begins; null of the first. */
  previousCursor: string | null;
}

/** The pages that a source of a connection was read from, in their order. */
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

/** The bytes of an uploaded file, in their order. */
export async function readFileBytes(orgDb: OrgDb, sourceId: string): Promise<Buffer> {
  const rows = await orgDb.rows<{ body: Buffer }>(
    'select body from billing_pages where org_id = $1 and source_id = $2::uuid order by page_no',
    [orgDb.orgId, sourceId],
  );
  return Buffer.concat(rows.map(({ body }) => body));
}
