import { DEFAULT_ACCOUNT } from '../../domain/billing/account.js';
import type { ChargeCategory } from '../../domain/billing/billedRow.js';
import type { BillingFormat } from '../../domain/billing/sources.js';
import type { Pico } from '../../domain/money.js';
import { decimalFromPico } from '../../domain/money.js';
import type { Provider } from '../../domain/providers.js';
import type { RunStatus } from '../../domain/runs/runs.js';
import type { OrgDb } from '../orgDb.js';
import { errorColumns } from '../runs/runStates.js';

/** A file as it was uploaded, before it is read. */
export interface NewBillingSource {
  id: string;
  provider: Provider;
  filename: string;
  declaredFormat: BillingFormat | null;
  declaredAccount: string | null;
  /** US dollars for one unit of the file's currency, as a decimal text. */
  declaredFxRate: string | null;
  sha256: string;
  sizeBytes: number;
}

/** A label that no grammar knew, as the import lists it. */
export interface ListedLabel {
  label: string;
  rows: number;
  amount_usd: string;
}

/** Charges that an import lists beside its rows, summed; `charge_category` of those of which no row is kept. */
export interface ListedCharges {
  charge_category?: ChargeCategory;
  currency: string;
  rows: number;
  /** In that currency. */
  amount: string;
}

/** An import of a bill and how far it is. */
export interface BillingSource {
  id: string;
  provider: Provider;
  filename: string;
  declaredFormat: BillingFormat | null;
  declaredAccount: string | null;
  declaredFxRate: string | null;
  sha256: string;
  sizeBytes: number;
  fetchedAtMicros: bigint;
  status: RunStatus;
  stage: string;
  doneBytes: number;
  format: BillingFormat | null;
  accountId: string | null;
  rowCount: number | null;
  amountPico: Pico | null;
  periodStart: string | null;
  periodEnd: string | null;
  unparsed: ListedLabel[];
  leftOut: Required<ListedCharges>[];
  unconverted: ListedCharges[];
  restatedBuckets: number;
  errorCode: string | null;
  errorMessage: string | null;
  createdAtMicros: bigint;
  startedAtMicros: bigint | null;
  finishedAtMicros: bigint | null;
}

interface SourceRow {
  id: string;
  provider: Provider;
  filename: string;
  declared_format: BillingFormat | null;
  declared_account: string | null;
  declared_fx_rate: string | null;
  sha256: string;
  size_bytes: number;
  fetched_at: bigint;
  status: RunStatus;
  stage: string;
  done_bytes: number;
  format: BillingFormat | null;
  provider_account_id: string | null;
  row_count: number | null;
  amount_usd: Pico | null;
  period_start: string | null;
  period_end: string | null;
  unparsed: ListedLabel[];
  left_out: Required<ListedCharges>[];
  unconverted: ListedCharges[];
  restated_buckets: number;
  error_code: string | null;
  error_message: string | null;
  created_at: bigint;
  started_at: bigint | null;
  finished_at: bigint | null;
}

const COLUMNS = `id, provider, filename, declared_format, declared_account, declared_fx_rate::text as declared_fx_rate, sha256, size_bytes,
  fetched_at, status, stage, done_bytes, format, provider_account_id, row_count, amount_usd, period_start, period_end,
  unparsed, left_out, unconverted, restated_buckets, error_code, error_message, created_at, started_at, finished_at`;

function fromSourceRow(row: SourceRow): BillingSource {
  return {
    id: row.id,
    provider: row.provider,
    filename: row.filename,
    declaredFormat: row.declared_format,
    declaredAccount: row.declared_account,
    declaredFxRate: row.declared_fx_rate,
    sha256: row.sha256,
    sizeBytes: row.size_bytes,
    fetchedAtMicros: row.fetched_at,
    status: row.status,
    stage: row.stage,
    doneBytes: row.done_bytes,
    format: row.format,
    accountId: row.provider_account_id,
    rowCount: row.row_count,
    amountPico: row.amount_usd,
    periodStart: row.period_start,
    periodEnd: row.period_end,
    unparsed: row.unparsed,
    leftOut: row.left_out,
    unconverted: row.unconverted,
    restatedBuckets: row.restated_buckets,
    errorCode: row.error_code,
    errorMessage: row.error_message,
    createdAtMicros: row.created_at,
    startedAtMicros: row.started_at,
    finishedAtMicros: row.finished_at,
  };
}

/** Stores a chunk of a file that is still arriving; its row comes when the whole of it is known. */
export async function insertBillingPage(
  orgDb: OrgDb,
  page: { sourceId: string; pageNo: number; sha256: string; body: Buffer },
): Promise<void> {
  await orgDb.run(
    'insert into billing_pages (org_id, source_id, page_no, sha256, body) values ($1, $2, $3, $4, $5)',
    [orgDb.orgId, page.sourceId, page.pageNo, page.sha256, page.body],
  );
}

/** One chunk of a stored file, from 0; undefined past its end. */
export async function findBillingPage(
  orgDb: OrgDb,
  sourceId: string,
  pageNo: number,
): Promise<{ body: Buffer; sha256: string } | undefined> {
  const rows = await orgDb.rows<{ body: Buffer; sha256: string }>(
    'select body, sha256 from billing_pages where org_id = $1 and source_id = $2 and page_no = $3',
    [orgDb.orgId, sourceId, pageNo],
  );
  return rows[0];
}

/** Removes the file of an import of which nothing is kept. */
export async function deleteBillingPages(orgDb: OrgDb, sourceId: string): Promise<void> {
  await orgDb.run('delete from billing_pages where org_id = $1 and source_id = $2', [orgDb.orgId, sourceId]);
}

/**
 * Stores a new import, queued. Undefined when the same file with the same declarations is imported already, or just
 * being: the caller then gives that one.
 */
export async function insertBillingSource(
  orgDb: OrgDb,
  source: NewBillingSource,
): Promise<BillingSource | undefined> {
  const rows = await orgDb.rows<SourceRow>(
    `insert into billing_sources (org_id, id, kind, provider, filename, declared_format, declared_account, declared_fx_rate,
       sha256, size_bytes, status)
     values ($1, $2, 'file', $3, $4, $5, $6, $7::numeric, $8, $9, 'queued')
     on conflict (org_id, provider, sha256, coalesce(declared_account, ''), coalesce(declared_format, ''), coalesce(declared_fx_rate, 0))
       where status not in ('failed', 'cancelled') do nothing
     returning ${COLUMNS}`,
    [
      orgDb.orgId,
      source.id,
      source.provider,
      source.filename,
      source.declaredFormat,
      source.declaredAccount,
      source.declaredFxRate,
      source.sha256,
      source.sizeBytes,
    ],
  );
  return rows[0] && fromSourceRow(rows[0]);
}

/** The import of the same file with the same declarations, unless it failed. */
export async function findSameBillingSource(
  orgDb: OrgDb,
  source: NewBillingSource,
): Promise<BillingSource | undefined> {
  const rows = await orgDb.rows<SourceRow>(
    `select ${COLUMNS} from billing_sources
     where org_id = $1 and provider = $2 and sha256 = $3 and coalesce(declared_account, '') = $4
       and coalesce(declared_format, '') = $5 and coalesce(declared_fx_rate, 0) = $6::numeric
       and status not in ('failed', 'cancelled')`,
    [
      orgDb.orgId,
      source.provider,
      source.sha256,
      source.declaredAccount ?? '',
      source.declaredFormat ?? '',
      source.declaredFxRate ?? '0',
    ],
  );
  return rows[0] && fromSourceRow(rows[0]);
}

export async function findBillingSource(orgDb: OrgDb, id: string): Promise<BillingSource | undefined> {
  const rows = await orgDb.rows<SourceRow>(
    `select ${COLUMNS} from billing_sources where org_id = $1 and id = $2 and kind = 'file'`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromSourceRow(rows[0]);
}

/** Imports, newest first. */
export async function listBillingSources(
  orgDb: OrgDb,
  page: { provider: Provider | undefined; limit: number; offset: number },
): Promise<BillingSource[]> {
  const rows = await orgDb.rows<SourceRow>(
    `select ${COLUMNS} from billing_sources where org_id = $1 and kind = 'file' and ($2::text is null or provider = $2)
     order by created_at desc, id desc limit $3 offset $4`,
    [orgDb.orgId, page.provider ?? null, page.limit, page.offset],
  );
  return rows.map(fromSourceRow);
}

/** Marks an import as being read; false when it has ended already. */
export async function markBillingSourceRunning(orgDb: OrgDb, id: string): Promise<boolean> {
  const changed = await orgDb.run(
    `update billing_sources set status = 'running', stage = 'reading', started_at = coalesce(started_at, now()), heartbeat_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, id],
  );
  return changed === 1;
}

/** Notes how many bytes of a file have been read. */
export async function recordBillingProgress(orgDb: OrgDb, id: string, doneBytes: number): Promise<void> {
  await orgDb.run(
    `update billing_sources set done_bytes = $3, heartbeat_at = now() where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id, doneBytes],
  );
}

export interface BillingSourceResult {
  format: BillingFormat;
  sourceRank: number;
  /** Null where the rows belong to several accounts. */
  accountId: string | null;
  rowCount: number;
  amountPico: Pico;
  periodStart: string | null;
  periodEnd: string | null;
  unparsed: readonly ListedLabel[];
  leftOut: readonly Required<ListedCharges>[];
  unconverted: readonly ListedCharges[];
  restatedBuckets: number;
}

/** Ends an import that was read as a whole. False when it has ended already. */
export async function finishBillingSource(
  orgDb: OrgDb,
  id: string,
  result: BillingSourceResult,
): Promise<boolean> {
  const changed = await orgDb.run(
    `update billing_sources set status = 'succeeded', stage = 'succeeded', done_bytes = size_bytes, format = $3, source_rank = $4,
       provider_account_id = $5, row_count = $6, amount_usd = $7::numeric, period_start = $8, period_end = $9,
       unparsed = $10::jsonb, restated_buckets = $11, left_out = $12::jsonb, unconverted = $13::jsonb, finished_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [
      orgDb.orgId,
      id,
      result.format,
      result.sourceRank,
      result.accountId,
      result.rowCount,
      decimalFromPico(result.amountPico),
      result.periodStart,
      result.periodEnd,
      JSON.stringify(result.unparsed),
      result.restatedBuckets,
      JSON.stringify(result.leftOut),
      JSON.stringify(result.unconverted),
    ],
  );
  return changed === 1;
}

/** Ends an import of which nothing is kept, with why. False when it has ended already. */
export async function failBillingSource(
  orgDb: OrgDb,
  id: string,
  error: { code: string; message: string },
): Promise<boolean> {
  const changed = await orgDb.run(
    `update billing_sources set status = 'failed', stage = 'failed', error_code = $3, error_message = $4, finished_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, id, ...errorColumns(error)],
  );
  return changed === 1;
}

/**
 * Accounts of a provider that some bill or connection has named, in the order of their names. Where there is a
 * connection, `default` is none of them: it is only waiting to be taken over.
 */
export async function listKnownAccounts(orgDb: OrgDb, provider: Provider): Promise<string[]> {
  const rows = await orgDb.rows<{ account: string }>(
    `select distinct account from (
       select provider_account_id as account from billing_days where org_id = $1 and provider = $2
       union all
       select declared_account from billing_sources
       where org_id = $1 and provider = $2 and declared_account is not null and status not in ('failed', 'cancelled')
       union all
       select provider_account_id from billing_connections where org_id = $1 and provider = $2
     ) known where account <> '' and not (account = '${DEFAULT_ACCOUNT}'
       and exists (select from billing_connections where org_id = $1 and provider = $2))
     order by account limit 100`,
    [orgDb.orgId, provider],
  );
  return rows.map((row) => row.account);
}

/** Keeps whose bill it is, where the file does not say; the first decision stays. */
export async function setBillingSourceAccount(orgDb: OrgDb, id: string, account: string): Promise<void> {
  await orgDb.run(
    'update billing_sources set provider_account_id = $3 where org_id = $1 and id = $2 and provider_account_id is null',
    [orgDb.orgId, id, account],
  );
}
