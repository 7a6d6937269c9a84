import { randomUUID } from 'node:crypto';
import { type BillingConnection, findBillingConnection } from '../../../db/billing/billingConnections.js';
import { BILLING_IMPORTS, insertBillingPage } from '../../../db/billing/billingSources.js';
import { listSyncPages } from '../../../db/billing/fetchedPages.js';
import { listEvents } from '../../../db/events/events.js';
import { insertRun } from '../../../db/runs/runTable.js';
import { foldUsage } from '../../../db/usage/rollups.js';
import { findUuid } from '../../../domain/ids.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { closePeriod } from '../../../usecases/billing/periods.js';
import { anEvent, ingest } from '../../api/support/requests.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { generateBills } from '../../support/billGenerator.js';
import { importBill, pollToEnd } from '../../support/bills.js';
import { until } from '../../support/engine.js';
import { aConnection, CONNECTIONS, type FetchedProvider } from '../../support/fetchedBills.js';
import { otherPrices, repriceAll } from './repriceAll.js';

/** An organization to create: the marker of its data, its bills' provider, and the age of imported bills. */
export interface Owner {
  marker: string;
  provider: FetchedProvider;
  prices: PriceBook;
  importedDaysAgo: number;
}

/** Its bills, and the data that depend on them. */
export interface OwnedBills {
  /** A day with a bill of `provider`. */
  day: string;
  /** An import that was read, and one that waits. */
  importId: string;
  openImportId: string;
  connection: BillingConnection;
  /** A sync that has ended, and a page that it has fetched. */
  syncRunId: string;
  pageId: string;
  /** An ended re-pricing, and a call that it re-priced. */
  repriceId: string;
  repricedId: string;
}

/** Bills of every organization name this key; the owner alone has entered it. */
export const SHARED_KEY = 'key_shared';
export const CLOSED_MONTH = '2026-03';
export const MARCH = { fromMicros: 1_772_323_200_000_000n, toMicros: 1_775_001_600_000_000n };
/** 90 days of two reports, on a machine that does other things too. */
const SYNC_WITHIN_MS = 180_000;
const FAR_MICROS = 4_000_000_000_000_000n;
const SECOND_PICO = 2n;

export async function makeImports(
  api: TestApi,
  org: TestOrganization,
  { marker, provider, importedDaysAgo }: Owner,
): Promise<Pick<OwnedBills, 'day' | 'importId' | 'openImportId'>> {
  const lastDay = new Date(Date.now() - importedDaysAgo * 86_400_000).toISOString().slice(0, 10);
  const { days, files } = generateBills({ seed: importedDaysAgo, lastDay, days: 2, callsPerHour: 1 });
  const of =
    provider === 'openai'
      ? [files.openaiCosts, files.openaiUsage]
      : [files.anthropicCosts, files.anthropicUsage];
  const ids: string[] = [];
  for (const file of of) {
    const { import_id: id } = await importBill(api, file, { provider, account: marker }, org.adminKey);
    ids.push(findUuid('imp', id) ?? '');
  }
  // On a separate day, because only the best bill of a day counts.
  const alone = new Date(Date.now() - (importedDaysAgo + 30) * 86_400_000).toISOString().slice(0, 10);
  const line = (key: string) => `${alone},${marker},input,1000,1,${key}`;
  const plain = `date,model,token_class,quantity,amount_usd,api_key\n${line(marker)}\n${line(SHARED_KEY)}\n`;
  await importBill(api, plain, { provider }, org.adminKey);
  const openImportId = randomUUID();
  await insertRun(org.orgDb, BILLING_IMPORTS, {
    id: openImportId,
    provider,
    filename: marker,
    declaredFormat: null,
    declaredAccount: null,
    declaredFxRate: null,
    sha256: openImportId.replaceAll('-', '').repeat(2),
    sizeBytes: 1,
  });
  const page = { sourceId: openImportId, pageNo: 0, sha256: '0'.repeat(64), body: Buffer.from(marker) };
  await insertBillingPage(org.orgDb, page);
  return { day: days[0] ?? '', importId: ids[0] ?? '', openImportId };
}

/** March: a call and a bill, closed; then another bill of it, and its calls re-priced. */
export async function makeClosedMonth(
  api: TestApi,
  org: TestOrganization,
  { marker, provider, prices }: Owner,
): Promise<Pick<OwnedBills, 'repriceId' | 'repricedId'>> {
  const call = anEvent({
    timestamp: '2026-03-05T00:00:00Z',
    session_id: `${marker}-march`,
    project_id: marker,
  });
  await ingest(api, [call], org.ingestKey);
  const { events } = await listEvents(
    org.orgDb,
    { sessionId: `${marker}-march` },
    { limit: 1, offset: 0 },
    false,
  );
  const bill = (amount: number) =>
    `date,model,token_class,quantity,amount_usd\n2026-03-10,${marker},input,1000,${amount}\n`;
  const account = { provider, account: `${marker}-march` };
  await importBill(api, bill(1), account, org.adminKey);
  const closing = { month: CLOSED_MONTH, closedBy: marker, nowMicros: FAR_MICROS };
  await closePeriod(api.database.database, org.orgId, closing);
  await importBill(api, bill(2), account, org.adminKey);
  const repriceId = await repriceAll(org.orgDb, otherPrices(prices, SECOND_PICO), MARCH);
  await foldUsage(api.database.database, org.orgId);
  return { repriceId, repricedId: events[0]?.id ?? '' };
}

export async function makeSync(
  api: TestApi,
  org: TestOrganization,
  provider: FetchedProvider,
): Promise<Pick<OwnedBills, 'connection' | 'syncRunId' | 'pageId'>> {
  const { body } = await api.post(CONNECTIONS, aConnection(provider), org.adminKey);
  const synced = await until(
    'the sync and the gap run that follows it',
    () => api.get(body.sync.status_url, org.adminKey),
    (answer) => Boolean(answer.body.result?.gap_run_id),
    SYNC_WITHIN_MS,
  );
  const runs = '/api/v1/reconciliation/gap-explorer/runs';
  await pollToEnd(api, `${runs}/${synced.body.result.gap_run_id}`, 180_000, org.adminKey);
  const connection = await findBillingConnection(org.orgDb, findUuid('con', body.id) ?? '');
  const syncRunId = findUuid('run', body.sync.id) ?? '';
  const pageId = (await listSyncPages(org.orgDb, syncRunId, 0))[0]?.pageId ?? '';
  if (!connection || pageId === '') throw new Error('the sync brought no page');
  return { connection, syncRunId, pageId };
}

/** Rows that only time produces, created directly: those that maintenance removes or reassigns. */
export async function makeOldThings(
  api: TestApi,
  org: TestOrganization,
  marker: string,
  connectionId: string,
): Promise<void> {
  const { superuser } = api.database;
  // Bills without an account, as they were before there was a connection.
  for (const table of ['billing_rows', 'billing_days', 'billing_sources'])
    await superuser.query(
      `update ${table} set provider_account_id = 'default' where org_id = $1 and provider_account_id = $2`,
      [org.orgId, `${marker}-march`],
    );
  await superuser.query(
    `insert into audit_checkpoints (org_id, seq, at, hash, made_at, key_id, signature)
     values ($1, 1, now(), $2, now(), 'test', $2)`,
    [org.orgId, Buffer.alloc(32)],
  );
  // A copy that another one replaced.
  await superuser.query(
    `update billing_days set superseded_at = now() - interval '1 day' where org_id = $1 and connection_id = $2
       and day = (select min(day) from billing_days where org_id = $1 and connection_id = $2)`,
    [org.orgId, connectionId],
  );
}
