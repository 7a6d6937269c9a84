import { randomUUID } from 'node:crypto';
import { insertBillingDays, insertBillingRows } from '../../db/billing/billingRows.js';
import type { Provider } from '../../domain/providers.js';
import { Accounts, ImportDays } from '../../usecases/billing/readImport.js';
import type { TestApi, TestOrganization } from './api.js';
import type { ReadBill } from './readBill.js';

/** Stores a bill that was read as an import stores it, without an engine. */
export async function storeBill(
  api: TestApi,
  { orgId, orgDb }: TestOrganization,
  provider: Provider,
  { rows, summary }: ReadBill,
  account = 'default',
): Promise<void> {
  const id = randomUUID();
  await api.database.superuser.query(
    `insert into billing_sources (org_id, id, kind, provider, filename, sha256, size_bytes, status, format, provider_account_id, source_rank)
     values ($1, $2::uuid, 'file', $3, 'bill', encode(sha256(convert_to($2::uuid::text, 'UTF8')), 'hex'), 1, 'succeeded', $4, $5, 40)`,
    [orgId, id, provider, summary.format, account],
  );
  const accounts = new Accounts(null, undefined, async () => account);
  const days = new ImportDays();
  const owned = [];
  for (const row of rows) {
    const one = { ...row, account: await accounts.of(row.account) };
    days.add(one);
    owned.push(one);
  }
  await insertBillingRows(orgDb, { id, provider, firstRowNo: 1 }, owned);
  const fetchedAtMicros = BigInt(Date.parse('2026-10-19T00:00:00Z')) * 1_000n;
  await insertBillingDays(orgDb, { id, provider, fetchedAtMicros }, await days.covering(summary, accounts));
}
