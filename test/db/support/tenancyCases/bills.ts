import { randomUUID } from 'node:crypto';
import * as billCoverage from '../../../../db/billing/billCoverage.js';
import * as sourceDifferences from '../../../../db/billing/billCoverage.js';
import { listBilledCharges, listBilledSpans } from '../../../../db/billing/billedPeriod.js';
import { adoptDefaultAccount, giveToFirstConnection } from '../../../../db/billing/billingConnections.js';
import * as billedDays from '../../../../db/billing/billingRows.js';
import * as billingRows from '../../../../db/billing/billingRows.js';
import * as billingSources from '../../../../db/billing/billingSources.js';
import { BILLING_IMPORTS } from '../../../../db/billing/billingSources.js';
import * as providerKeys from '../../../../db/billing/providerKeys.js';
import { findRun, insertRun, listRuns, markRunStarted } from '../../../../db/runs/runTable.js';
import type { BilledRow } from '../../../../domain/billing/billedRow.js';
import { storeBillingUpload } from '../../../../usecases/billing/billingUpload.js';
import { listSuspectKeys, putProviderKeys } from '../../../../usecases/billing/providerKeys.js';
import { auditBills, readBilledDay } from '../../../../usecases/reconciliation/billAudit.js';
import { readMonthStatement } from '../../../../usecases/reconciliation/monthStatement.js';
import { endRun } from '../../../../usecases/runs/endRun.js';
import { CLOSED_MONTH } from '../ownedBills.js';
import { type Owned, providerKeyOf } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const ALL = { provider: null, fromDay: '2020-01-01', toDay: '2100-01-01' };
const NOW_MICROS = 1_900_000_000_000_000n;
const PAGE = { limit: 100, offset: 0 };
const ADOPTION = 'only maintenance rewrites bills: those of nobody become the first connection’s';

const periodOf = ({ provider }: Owned) => ({ ...ALL, provider, accountId: null });
const unitOf = ({ provider, day }: Owned) => ({ provider, day });
const pricesOf = ({ prices }: Owned) => ({ agreed: prices, list: prices });
const uploadOf = ({ provider }: Owned) => ({
  provider,
  filename: 'new',
  declaredFormat: null,
  declaredAccount: 'new',
  declaredFxRate: null,
  sha256: 'c'.repeat(64),
  sizeBytes: 1,
});

const rowOf = ({ day, marker }: Owned): BilledRow => ({
  feed: 'cost',
  report: '',
  account: marker,
  day,
  periodStartMicros: NOW_MICROS,
  periodEndMicros: NOW_MICROS + 1n,
  chargeCategory: 'usage',
  lineItem: marker,
  observable: true,
  model: null,
  tokenClass: 'other',
  serviceTier: 'standard',
  isBatch: null,
  longContext: null,
  region: null,
  project: null,
  apiKey: null,
  quantity: null,
  quantityUnit: null,
  amountPico: 1n,
  listPico: null,
  contractedPico: null,
  netPico: null,
  currency: 'USD',
  originalAmount: 1n,
  isFinal: null,
});
const FIRST_FREE_ROW = 1_000_000;

/** Functions that store and read bills. */
export const BILL_CASES: Record<string, TenancyCase> = {
  listCountedCopies: (db) => billCoverage.listCountedCopies(db, ALL),
  listBilledAccountNames: (db) => billCoverage.listBilledAccountNames(db, ALL),
  findBilledSpan: (db, { provider }) => billCoverage.findBilledSpan(db, provider),
  listBilledCells: (db, of) => billedDays.listBilledCells(db, unitOf(of)),
  listUsageCells: (db, of) => billedDays.listUsageCells(db, unitOf(of)),
  listUsageOfDay: (db, of) => billedDays.listUsageOfDay(db, unitOf(of)),
  listBilledAccounts: (db, of) => billedDays.listBilledAccounts(db, unitOf(of)),
  listBilledProviderDays: (db) => billedDays.listBilledProviderDays(db, ALL),
  listSourceDifferences: (db) => sourceDifferences.listSourceDifferences(db, { ...ALL, limit: 10 }),
  listBilledTotals: (db) => billedDays.listBilledTotals(db, ALL),
  listBilledCharges: (db, of) => listBilledCharges(db, periodOf(of)),
  listBilledSpans: (db, of) => listBilledSpans(db, periodOf(of)),
  readBilledDay: (db, of) => readBilledDay(db, of.provider, of.day, pricesOf(of)),
  auditBills: (db, of) =>
    auditBills(
      db,
      { provider: of.provider, fromDay: of.day, toDay: of.day, nowMicros: NOW_MICROS },
      pricesOf(of),
    ),
  readMonthStatement: (db, of) => readMonthStatement(db, `${CLOSED_MONTH}-01`, NOW_MICROS, pricesOf(of)),
  insertBillingRows: (db, of) =>
    billingRows.insertBillingRows(
      db,
      { id: of.importId, provider: of.provider, firstRowNo: FIRST_FREE_ROW },
      [rowOf(of)],
    ),
  deleteBillingRows: (db, { importId }) => billingRows.deleteBillingRows(db, importId),
  insertBillingDays: (db, { importId, provider, marker, day }) =>
    billingRows.insertBillingDays(db, { id: importId, provider, fetchedAtMicros: NOW_MICROS }, [
      {
        rank: 1,
        accountId: `${marker}-other`,
        day,
        feed: 'cost',
        report: '',
        chargeCategory: 'usage',
        rowCount: 1,
        amountPico: 1n,
        unconvertedRows: 0,
        isFinal: null,
      },
    ]),
  insertBillingPage: (db, { openImportId, marker }) =>
    billingSources.insertBillingPage(db, {
      sourceId: openImportId,
      pageNo: 7,
      sha256: '0'.repeat(64),
      body: Buffer.from(marker),
    }),
  findBillingPage: (db, { openImportId }) => billingSources.findBillingPage(db, openImportId, 0),
  deleteBillingPages: (db, { openImportId }) => billingSources.deleteBillingPages(db, openImportId),
  'insertRun of billing_import': (db, of) =>
    insertRun(db, BILLING_IMPORTS, { ...uploadOf(of), id: randomUUID() }),
  findSameBillingSource: (db, of) =>
    billingSources.findSameBillingSource(db, {
      ...uploadOf(of),
      id: randomUUID(),
      declaredAccount: null,
      sha256: of.openImportId.replaceAll('-', '').repeat(2),
    }),
  'findRun of billing_import': (db, { importId }) => findRun(db, BILLING_IMPORTS, importId),
  'listRuns of billing_import': (db) => listRuns(db, BILLING_IMPORTS, {}, PAGE),
  'markRunStarted of billing_import': (db, { openImportId }) =>
    markRunStarted(db, 'billing_import', openImportId, 'reading'),
  recordBillingProgress: async (db, { openImportId }) => {
    await db.run(`update billing_sources set status = 'running' where org_id = $1 and id = $2`, [
      db.orgId,
      openImportId,
    ]);
    await billingSources.recordBillingProgress(db, openImportId, 1);
  },
  finishBillingSource: async (db, { openImportId }) => {
    await markRunStarted(db, 'billing_import', openImportId, 'reading');
    return billingSources.finishBillingSource(db, openImportId, {
      format: 'plain_csv',
      sourceRank: 1,
      accountId: null,
      rowCount: 0,
      amountPico: 0n,
      periodStart: null,
      periodEnd: null,
      unparsed: [],
      leftOut: [],
      unconverted: [],
      restatedBuckets: 0,
    });
  },
  'endRun of billing_import': (db, { openImportId }) =>
    endRun(db, 'billing_import', openImportId, { status: 'failed', error: { code: 'x', message: 'x' } }),
  setBillingSourceAccount: (db, { openImportId }) =>
    billingSources.setBillingSourceAccount(db, openImportId, 'taken over'),
  listKnownAccounts: (db, { provider }) => billingSources.listKnownAccounts(db, provider),
  storeBillingUpload: (db, of) =>
    storeBillingUpload(db, randomUUID(), async (store) => {
      await store(Buffer.from('{}'));
      return uploadOf(of);
    }),
  adoptDefaultAccount: {
    asSystem: ADOPTION,
    run: (db, { provider }) => adoptDefaultAccount(db.database, db.orgId, provider, 'adopted'),
  },
  giveToFirstConnection: {
    asSystem: ADOPTION,
    run: (db, { provider }) => giveToFirstConnection(db.database, db.orgId, provider),
  },
  listProviderKeys: (db) => providerKeys.listProviderKeys(db, { provider: undefined }, PAGE),
  findProviderKeys: (db, { marker }) => providerKeys.findProviderKeys(db, [providerKeyOf(marker)]),
  upsertProviderKeys: (db) =>
    db.transaction((inside) => providerKeys.upsertProviderKeys(inside, [providerKeyOf('changed')], 'key_b')),
  readSuspectKeys: (db) => providerKeys.readSuspectKeys(db, { ...ALL, limit: 10 }),
  listSuspectKeys: (db) => listSuspectKeys(db, { ...ALL, limit: 10 }),
  putProviderKeys: (db, { keyId }) =>
    putProviderKeys(db, [providerKeyOf('changed')], { caller: { keyId }, requestId: 'req_1' }),
};
