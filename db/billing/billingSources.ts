import { type ChargeCategory, DEFAULT_ACCOUNT } from '../../domain/billing/billedRow.js';
import type { BillingFormat } from '../../domain/billing/sources.js';
import type { Pico } from '../../domain/money.js';
import { decimalFromPico } from '../../domain/money.js';
import type { Provider } from '../../domain/providers.js';
import { column } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

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

/** A label of a charge that no rule recognised, as the import lists it. */
export interface ListedLabel {
  label: string;
  rows: number;
  amount_usd: string;
}

/** Sums of charges that an import lists besides its rows; `charge_category` of charges without stored rows. */
export interface ListedCharges {
  charge_category?: ChargeCategory;
  currency: string;
  rows: number;
  /** In that currency. */
  amount: string;
}

export interface BillingSource extends Run, NewBillingSource {
  id: string;
  fetchedAtMicros: bigint;
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
}

export const BILLING_IMPORTS = defineRun<BillingSource, NewBillingSource>('billing_import', {
  provider: column(),
  filename: column(),
  declaredFormat: column(),
  declaredAccount: column(),
  declaredFxRate: column('declared_fx_rate::text'),
  sha256: column(),
  sizeBytes: column(),
  fetchedAtMicros: column(),
  doneBytes: column(),
  format: column(),
  accountId: column('provider_account_id'),
  rowCount: column(),
  amountPico: column('amount_usd'),
  periodStart: column(),
  periodEnd: column(),
  unparsed: column(),
  leftOut: column(),
  unconverted: column(),
  restatedBuckets: column(),
});

/** Stores a chunk of an arriving file; the import's row is stored once the file is complete. */
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

export async function deleteBillingPages(orgDb: OrgDb, sourceId: string): Promise<void> {
  await orgDb.run('delete from billing_pages where org_id = $1 and source_id = $2', [orgDb.orgId, sourceId]);
}

/** The import of the same file with the same declarations, unless it failed. */
export async function findSameBillingSource(
  orgDb: OrgDb,
  source: NewBillingSource,
): Promise<BillingSource | undefined> {
  const rows = await orgDb.rows<BillingSource>(
    `select ${BILLING_IMPORTS.columns} from billing_sources
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
  return BILLING_IMPORTS.read(rows)[0];
}

export async function recordBillingProgress(orgDb: OrgDb, id: string, doneBytes: number): Promise<void> {
  await orgDb.run(
    `update billing_sources set done_bytes = $3, heartbeat_at = now() where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id, doneBytes],
  );
}

export interface BillingSourceResult {
  format: BillingFormat;
  sourceRank: number;
  /** null: the rows belong to several accounts. */
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

/** Ends a completely read import. false: it has already ended. */
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

/** Accounts that bills or connections name, sorted; without `default` where a connection exists. */
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

/** Stores the account of a bill that does not name one; the first decision stays. */
export async function setBillingSourceAccount(orgDb: OrgDb, id: string, account: string): Promise<void> {
  await orgDb.run(
    'update billing_sources set provider_account_id = $3 where org_id = $1 and id = $2 and provider_account_id is null',
    [orgDb.orgId, id, account],
  );
}
