import { randomUUID } from 'node:crypto';
import { insertBillingConnection } from '../../../db/billing/billingConnections.js';
import { recordFetchedPage } from '../../../db/billing/fetchedPages.js';
import { upsertProviderKeys } from '../../../db/billing/providerKeys.js';
import { insertSyncChunks, SYNC_RUNS } from '../../../db/billing/syncRuns.js';
import { OrgDb } from '../../../db/orgDb.js';
import { insertOwnPrice, type NewOwnPrice } from '../../../db/pricing/ownPrices.js';
import { REPRICE_RUNS, startRepriceRun } from '../../../db/pricing/repriceRuns.js';
import { GAP_RUNS, insertGapRunUnits } from '../../../db/reconciliation/gapRuns.js';
import { upsertBranding } from '../../../db/reports/branding.js';
import { insertRun } from '../../../db/runs/runTable.js';
import { findUuid } from '../../../domain/ids.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { takeGapRunTurn } from '../../../usecases/reconciliation/gapRunWork.js';
import { endRun } from '../../../usecases/runs/endRun.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { runGaps } from '../../support/bills.js';
import type { FetchedProvider } from '../../support/fetchedBills.js';
import {
  MARCH,
  makeClosedMonth,
  makeImports,
  makeOldThings,
  makeSync,
  type OwnedBills,
  type Owner,
  SHARED_KEY,
} from './ownedBills.js';
import { findCalls, makeCalls, type OwnedCalls } from './ownedCalls.js';
import { makeAccess } from './tenancyCases/access.js';
import { makeAlert } from './tenancyCases/alerts.js';
import { makeCredits, type OwnedCredits } from './tenancyCases/claimCredits.js';
import { makeEvidence, type OwnedEvidence } from './tenancyCases/claimEvidence.js';
import { makeClaims, type OwnedClaims } from './tenancyCases/claims.js';
import { makeDrafts, type OwnedDrafts } from './tenancyCases/drafts.js';
import { makeRules } from './tenancyCases/enforcementRules.js';
import { makeFindings, type OwnedFindings } from './tenancyCases/financial.js';
import { makeInvoices, type OwnedInvoices } from './tenancyCases/invoices.js';
import { makePolicies } from './tenancyCases/policies.js';
import { makePolicyAlerts } from './tenancyCases/policyAlerts.js';
import { makeProposal, type OwnedProposal } from './tenancyCases/proposals.js';
import { makeReports, type OwnedReports } from './tenancyCases/reports.js';
import { makeSavings, type OwnedSavings } from './tenancyCases/savings.js';
import { makeWebhooks, type OwnedWebhooks } from './tenancyCases/webhooks.js';
import { makeWeights, type OwnedWeights } from './tenancyCases/weights.js';

/** Everything that an organization can have, with the ids that queries take. */
export interface Owned
  extends OwnedCalls,
    OwnedBills,
    OwnedWebhooks,
    OwnedSavings,
    OwnedFindings,
    OwnedWeights,
    OwnedProposal,
    OwnedClaims,
    OwnedCredits,
    OwnedEvidence,
    OwnedDrafts,
    OwnedInvoices,
    OwnedReports {
  org: TestOrganization;
  /** Occurs in every label and name of the organization. */
  marker: string;
  provider: FetchedProvider;
  prices: PriceBook;
  /** A gap run that has published, and one that is at work. */
  runId: string;
  openRunId: string;
  /** A sync that waits, and an ended one without requests. */
  openSyncId: string;
  emptySyncId: string;
  ownPrice: NewOwnPrice;
  /** A key of the organization, one of its workspaces. */
  keyId: string;
  workspaceId: string;
  /** A re-pricing that is at work. */
  openRepriceId: string;
  /** An open alert of a call. */
  alertId: string;
  ruleId: string;
}

export const OWN_PRICE_LIMITS = { entriesMax: 10, allModelsMax: 10 };

/** Has an organization own something of every kind, by the ways that there are. Needs a running worker. */
export async function makeOwned(api: TestApi, options: Owner): Promise<Owned> {
  const { marker, provider, prices } = options;
  const org = await api.addOrganization(marker);
  await makeCalls(api, org, marker);
  const { live, other } = await findCalls(org, marker);
  const imported = await makeImports(api, org, options);
  const closed = await makeClosedMonth(api, org, options);
  const synced = await makeSync(api, org, provider);
  await makeOldThings(api, org, marker, synced.connection.id);
  const runId = findUuid('run', (await runGaps(api, '?period=90d', undefined, org.adminKey)).run_id) ?? '';
  const keyId = `key_${org.ingestKey.split('_')[2]}`;
  await makePolicies(org.orgDb, marker);
  await makePolicyAlerts(org.orgDb, { live, other, prices });
  const rules = await makeRules(org.orgDb, marker);
  return {
    org,
    marker,
    provider,
    prices,
    live,
    other,
    ...imported,
    ...closed,
    ...synced,
    runId,
    ...(await makeOpenWork(org, options, synced.connection.id)),
    ...(await makeEntries(org, marker, [SHARED_KEY])),
    keyId,
    ...(await makeAccess(org.orgDb, { marker, keyId })),
    ...rules,
    ...(await makeSavings(org.orgDb, { ...rules, eventId: live.id })),
    ...(await makeWebhooks(org.orgDb, marker)),
    ...(await makeAlert(org.orgDb, marker)),
    ...(await makeFindings(org.orgDb, marker)),
    ...(await makeClaims(org.orgDb, marker)),
    ...(await makeCredits(org.orgDb, marker)),
    ...(await makeDrafts(org.orgDb, marker)),
    ...(await makeEvidence(org.orgDb, marker)),
    ...(await makeWeights(org.orgDb, marker)),
    ...(await makeProposal(org.orgDb, marker)),
    ...(await makeInvoices(org.orgDb, marker)),
    ...(await makeReports(org.orgDb, marker)),
    ...(await makeBranding(org.orgDb, marker)),
  };
}

/**
 * Creates the same kinds of rows for another organization, with the same days and models, which statements may confuse.
 * A connection and its sync are created directly once no worker runs: `finish`.
 */
export async function makeNeighbour(
  api: TestApi,
  options: Owner,
): Promise<{ org: TestOrganization; finish(): Promise<void> }> {
  const { marker, provider } = options;
  const org = await api.addOrganization(marker);
  await makeCalls(api, org, marker);
  await makeImports(api, org, options);
  await makeClosedMonth(api, org, options);
  await runGaps(api, '?period=90d', undefined, org.adminKey);
  await makeEntries(org, marker);
  await makeAccess(org.orgDb, { marker, keyId: `key_${org.ingestKey.split('_')[2]}` });
  await makePolicies(org.orgDb, marker);
  const calls = await findCalls(org, marker);
  await makePolicyAlerts(org.orgDb, { ...calls, prices: options.prices });
  const { ruleId } = await makeRules(org.orgDb, marker);
  await makeSavings(org.orgDb, { ruleId, eventId: calls.live.id });
  await makeWebhooks(org.orgDb, marker);
  await makeAlert(org.orgDb, marker);
  await makeFindings(org.orgDb, marker);
  await makeClaims(org.orgDb, marker);
  await makeCredits(org.orgDb, marker);
  await makeDrafts(org.orgDb, marker);
  await makeWeights(org.orgDb, marker);
  await makeProposal(org.orgDb, marker);
  await makeInvoices(org.orgDb, marker);
  await makeReports(org.orgDb, marker);
  await makeBranding(org.orgDb, marker);
  const finish = async () => {
    const connection = {
      id: randomUUID(),
      provider,
      name: marker,
      accountId: marker,
      scope: '',
      settings: { account: marker },
      backfillFrom: '2026-01-01',
    };
    const syncId = randomUUID();
    const seal = () => ({ ciphertext: Buffer.alloc(64, 1), keyId: 'k1' });
    await insertBillingConnection(org.orgDb, connection, syncId, seal);
    await endRun(org.orgDb, 'billing_sync', syncId, { status: 'failed' });
    await makeOldThings(api, org, marker, connection.id);
    await makeOpenWork(org, options, connection.id);
  };
  return { org, finish };
}

/** Open work of every kind; none of it is sent to Temporal. */
async function makeOpenWork(
  org: TestOrganization,
  { marker, provider, prices }: { marker: string; provider: FetchedProvider; prices: PriceBook },
  connectionId: string,
): Promise<Pick<Owned, 'openRunId' | 'openSyncId' | 'emptySyncId' | 'openRepriceId'>> {
  const [openRunId, openSyncId, emptySyncId, openRepriceId] = Array.from({ length: 4 }, randomUUID) as [
    string,
    string,
    string,
    string,
  ];
  const window = { windowStartMicros: MARCH.fromMicros, windowEndMicros: MARCH.toMicros };
  await insertRun(org.orgDb, GAP_RUNS, { id: openRunId, period: '7d', provider, ...window });
  await takeGapRunTurn(org.orgDb, openRunId, 2);
  await insertGapRunUnits(org.orgDb, openRunId, {
    units: [{ provider, day: '2026-03-10', inputMark: 'mark' }],
    unchangedUnits: 0,
    observedSince: {},
    dayOffsets: {},
  });
  await insertRun(org.orgDb, SYNC_RUNS, { id: emptySyncId, connectionId, trigger: 'request' });
  await endRun(org.orgDb, 'billing_sync', emptySyncId, { status: 'failed' });
  await insertRun(org.orgDb, SYNC_RUNS, { id: openSyncId, connectionId, trigger: 'request' });
  const chunk = {
    report: 'costs',
    feed: 'cost',
    bucketWidth: '1d',
    startMicros: MARCH.fromMicros,
    endMicros: MARCH.toMicros,
  } as const;
  await insertSyncChunks(org.orgDb, openSyncId, [chunk], null);
  await insertRun(org.orgDb, REPRICE_RUNS, {
    id: openRepriceId,
    ...window,
    provider: null,
    model: marker,
    requestedBy: marker,
  });
  await startRepriceRun(org.orgDb, openRepriceId, prices.version);
  // A page of a part that is not read yet: nothing rests on it.
  await recordFetchedPage(org.orgDb, {
    id: randomUUID(),
    connectionId,
    runId: openSyncId,
    ordinal: 0,
    pageNo: 0,
    report: 'costs',
    requestKey: marker,
    requestPath: '/',
    sha256: 'f'.repeat(64),
    body: Buffer.from(marker),
    providerRequestId: null,
    fetchedAtMicros: MARCH.fromMicros,
    nextCursor: null,
    buckets: [],
  });
  return { openRunId, openSyncId, emptySyncId, openRepriceId };
}

/** Data that people enter: prices and keys. */
async function makeEntries(
  org: TestOrganization,
  marker: string,
  moreKeys: readonly string[] = [],
): Promise<Pick<Owned, 'ownPrice'>> {
  const ownPrice: NewOwnPrice = {
    id: randomUUID(),
    kind: 'contract',
    provider: 'openai',
    model: '*',
    discountPercent: 1_000_000_000_000n,
    rates: null,
    batchMultiplier: null,
    effectiveFrom: '2026-01-01',
    effectiveTo: null,
    source: { document: marker, clause: null, url: null },
    createdBy: marker,
  };
  await insertOwnPrice(org.orgDb, ownPrice, OWN_PRICE_LIMITS);
  const key = providerKeyOf(marker);
  const keys = [key, ...moreKeys.map((providerKeyId) => ({ ...key, providerKeyId }))];
  await org.orgDb.transaction((inside) => upsertProviderKeys(inside, keys, marker));
  return { ownPrice };
}

/** An entry of a key at a provider; the same id in every organization. */
export const providerKeyOf = (name: string) => ({
  provider: 'openai' as const,
  providerKeyId: 'key_1',
  providerAccountId: null,
  name,
  project: null,
  teamId: null,
  status: 'active' as const,
  activeFromMicros: null,
  revokedAtMicros: null,
});

/** A handle of an organization that has nothing. */
export async function makeStranger(api: TestApi): Promise<OrgDb> {
  return new OrgDb(api.database.database, (await api.addOrganization('stranger')).orgId);
}

/** The look of its reports. */
async function makeBranding(orgDb: OrgDb, marker: string): Promise<object> {
  await upsertBranding(orgDb, {
    brandColor: '#123456',
    orgName: marker,
    footerText: marker,
    logo: { id: randomUUID(), sha256: 'a'.repeat(64), width: 1, height: 1 },
  });
  return {};
}
