import { randomUUID } from 'node:crypto';
import { OrgDb } from '../../../db/orgDb.js';
import {
  type BillingConnection,
  findBillingConnection,
  insertBillingConnection,
} from '../../../db/queries/billingConnections.js';
import { insertBillingPage, insertBillingSource } from '../../../db/queries/billingSources.js';
import { closePeriod } from '../../../db/queries/closePeriod.js';
import { listEvents } from '../../../db/queries/events.js';
import { listSyncPages, recordFetchedPage } from '../../../db/queries/fetchedPages.js';
import { insertGapRun, insertGapRunUnits, takeGapRunTurn } from '../../../db/queries/gapRuns.js';
import { insertOwnPrice, type NewOwnPrice } from '../../../db/queries/ownPrices.js';
import { upsertProviderKeys } from '../../../db/queries/providerKeys.js';
import { insertRepriceRun, startRepriceRun } from '../../../db/queries/repriceRuns.js';
import { foldUsage } from '../../../db/queries/rollups.js';
import { endRun } from '../../../db/queries/runStates.js';
import type { StoredEvent } from '../../../db/queries/storedEvents.js';
import { insertSyncChunks } from '../../../db/queries/syncChunks.js';
import { insertSyncRun } from '../../../db/queries/syncRuns.js';
import { findUuid } from '../../../domain/ids.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { anEvent, aSpan, aTime, ingest } from '../../api/support/requests.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { generateBills } from '../../support/billGenerator.js';
import { importBill, pollToEnd, runGaps } from '../../support/bills.js';
import { until } from '../../support/engine.js';
import { aConnection, CONNECTIONS, type FetchedProvider } from '../../support/fetchedBills.js';
import { otherPrices, repriceAll } from './repriceAll.js';
import { makeAccess } from './tenancyCases/access.js';
import { makeAlert } from './tenancyCases/alerts.js';
import { makeCredits, type OwnedCredits } from './tenancyCases/claimCredits.js';
import { makeEvidence, type OwnedEvidence } from './tenancyCases/claimEvidence.js';
import { makeClaims, type OwnedClaims } from './tenancyCases/claims.js';
import { makeDrafts, type OwnedDrafts } from './tenancyCases/drafts.js';
import { makeRules } from './tenancyCases/enforcementRules.js';
import { makeFindings, type OwnedFindings } from './tenancyCases/financial.js';
import { makePolicies } from './tenancyCases/policies.js';
import { makePolicyAlerts } from './tenancyCases/policyAlerts.js';
import { makeSavings, type OwnedSavings } from './tenancyCases/savings.js';
import { makeWebhooks, type OwnedWebhooks } from './tenancyCases/webhooks.js';
import { makeWeights, type OwnedWeights } from './tenancyCases/weights.js';

/** Everything that an organization can have, with the ids that queries take. */
export interface Owned
  extends OwnedWebhooks,
    OwnedSavings,
    OwnedFindings,
    OwnedWeights,
    OwnedClaims,
    OwnedCredits,
    OwnedEvidence,
    OwnedDrafts {
  org: TestOrganization;
  /** Stands in every label and name that is the organization's own. */
  marker: string;
  provider: FetchedProvider;
  prices: PriceBook;
  /** A call, and another one. */
  live: StoredEvent;
  other: StoredEvent;
  /** A day with a bill of `provider`. */
  day: string;
  /** An import that was read, and one that waits. */
  importId: string;
  openImportId: string;
  /** A gap run that has published, and one that is at work. */
  runId: string;
  openRunId: string;
  connection: BillingConnection;
  /** A sync that has ended, and one that waits; a page that the first has fetched. */
  syncRunId: string;
  openSyncId: string;
  pageId: string;
  /** One that has ended and of which nothing was asked. */
  emptySyncId: string;
  ownPrice: NewOwnPrice;
  /** A key of the organization, one of its workspaces. */
  keyId: string;
  workspaceId: string;
  /** An open alert of a call. */
  alertId: string;
  /** A re-pricing that has ended, and one that is at work; a call that the first priced anew. */
  repriceId: string;
  openRepriceId: string;
  repricedId: string;
  ruleId: string;
}

/** Bills of every organization name this key; the owner alone has entered it. */
const SHARED_KEY = 'key_shared';
export const CLOSED_MONTH = '2026-03';
export const MARCH = { fromMicros: 1_772_323_200_000_000n, toMicros: 1_775_001_600_000_000n };
export const OWN_PRICE_LIMITS = { entriesMax: 10, allModelsMax: 10 };
/** 90 days of two reports, on a machine that does other things too. */
const SYNC_WITHIN_MS = 150_000;
const FAR_MICROS = 4_000_000_000_000_000n;
const SECOND_PICO = 2n;

/** Has an organization own something of every kind, by the ways that there are. Needs a running worker. */
export async function makeOwned(
  api: TestApi,
  options: { marker: string; provider: FetchedProvider; prices: PriceBook; importedDaysAgo: number },
): Promise<Owned> {
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
  };
}

/**
 * Gives another organization the same kinds of rows, under the same days and models: what a statement may mix up. A
 * connection and its sync are made by hand, when nobody works any more: `finish`.
 */
export async function makeNeighbour(
  api: TestApi,
  options: { marker: string; provider: FetchedProvider; prices: PriceBook; importedDaysAgo: number },
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

/** Two of the calls that carry the organization's own label. */
async function findCalls({ orgDb }: TestOrganization, marker: string) {
  const { events } = await listEvents(orgDb, {}, { limit: 100, offset: 0 }, false);
  const [live, other] = events.filter((event) => event.teamId === marker) as [StoredEvent, StoredEvent];
  return { live, other };
}

/** Six calls, each told by two scopes of one service, without an id that would prove it. */
function twiceInstrumented(marker: string) {
  const start = BigInt(Date.now() - 3_600_000) * 1_000_000n;
  const spans = (offset: bigint) =>
    Array.from({ length: 6 }, (_, index) => {
      const at = start + BigInt(index) * 60_000_000_000n + offset;
      return aSpan({}, { startTimeUnixNano: String(at), endTimeUnixNano: String(at + 1_000n) });
    });
  const scopes = [0n, 1_000_000n].map((offset) => ({
    scope: { name: `${marker}-scope-${offset}` },
    spans: spans(offset),
  }));
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: marker } }] };
  return { resourceSpans: [{ resource, scopeSpans: scopes }] };
}

async function makeCalls(api: TestApi, org: TestOrganization, marker: string): Promise<void> {
  const labels = {
    team_id: marker,
    feature: marker,
    session_id: marker,
    user_id: marker,
    project_id: marker,
  };
  const first = anEvent({ ...labels, payload: { text: marker }, request_id: `${marker}-1` });
  await ingest(api, [first, anEvent({ ...labels, model: `${marker}-unpriced` })], org.ingestKey);
  await api.post('/api/v1/ingest/trace', twiceInstrumented(marker), org.ingestKey);
  const refused = anEvent({ cost_usd: -1, _service: { name: marker } });
  await api.post('/api/v1/ingest/events', { events: [refused] }, org.ingestKey);
  await foldUsage(api.database.database, org.orgId);
  const blocked = { status: 'blocked', blocked_rule_id: marker, prevented_usd: 1, timestamp: aTime(9) };
  await ingest(api, [anEvent({ ...labels, ...blocked })], org.ingestKey);
  // Not folded: a read adds it up itself.
  await ingest(api, [anEvent(labels)], org.ingestKey);
}

async function makeImports(
  api: TestApi,
  org: TestOrganization,
  {
    marker,
    provider,
    importedDaysAgo,
  }: { marker: string; provider: FetchedProvider; importedDaysAgo: number },
): Promise<Pick<Owned, 'day' | 'importId' | 'openImportId'>> {
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
  // On a day of its own: of one day only the best bill counts.
  const alone = new Date(Date.now() - (importedDaysAgo + 30) * 86_400_000).toISOString().slice(0, 10);
  const line = (key: string) => `${alone},${marker},input,1000,1,${key}`;
  const plain = `date,model,token_class,quantity,amount_usd,api_key\n${line(marker)}\n${line(SHARED_KEY)}\n`;
  await importBill(api, plain, { provider }, org.adminKey);
  const openImportId = randomUUID();
  await insertBillingSource(org.orgDb, {
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

/** March: a call and a bill, closed; then another bill of it, and its calls priced anew. */
async function makeClosedMonth(
  api: TestApi,
  org: TestOrganization,
  { marker, provider, prices }: { marker: string; provider: FetchedProvider; prices: PriceBook },
): Promise<Pick<Owned, 'repriceId' | 'repricedId'>> {
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

async function makeSync(
  api: TestApi,
  org: TestOrganization,
  provider: FetchedProvider,
): Promise<Pick<Owned, 'connection' | 'syncRunId' | 'pageId'>> {
  const { body } = await api.post(CONNECTIONS, aConnection(provider), org.adminKey);
  const synced = await until(
    'the sync and the gap run that follows it',
    () => api.get(body.sync.status_url, org.adminKey),
    (answer) => Boolean(answer.body.result?.gap_run_id),
    SYNC_WITHIN_MS,
  );
  const runs = '/api/v1/reconciliation/gap-explorer/runs';
  await pollToEnd(api, `${runs}/${synced.body.result.gap_run_id}`, 60_000, org.adminKey);
  const connection = await findBillingConnection(org.orgDb, findUuid('con', body.id) ?? '');
  const syncRunId = findUuid('run', body.sync.id) ?? '';
  const pageId = (await listSyncPages(org.orgDb, syncRunId, 0))[0]?.pageId ?? '';
  if (!connection || pageId === '') throw new Error('the sync brought no page');
  return { connection, syncRunId, pageId };
}

/** What only time makes, made by hand: what upkeep removes or gives to somebody else. */
async function makeOldThings(
  api: TestApi,
  org: TestOrganization,
  marker: string,
  connectionId: string,
): Promise<void> {
  const { superuser } = api.database;
  // Bills of nobody in particular, as they were before there was a connection.
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

/** Work of every kind that is under way: nothing of it goes to the engine. */
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
  await insertGapRun(org.orgDb, { id: openRunId, period: '7d', provider, ...window });
  await takeGapRunTurn(org.orgDb, openRunId, 2);
  await insertGapRunUnits(org.orgDb, openRunId, {
    units: [{ provider, day: '2026-03-10', inputMark: 'mark' }],
    unchangedUnits: 0,
    observedSince: {},
    dayOffsets: {},
  });
  await insertSyncRun(org.orgDb, { id: emptySyncId, connectionId, trigger: 'request' });
  await endRun(org.orgDb, 'billing_sync', emptySyncId, { status: 'failed' });
  await insertSyncRun(org.orgDb, { id: openSyncId, connectionId, trigger: 'request' });
  const chunk = {
    report: 'costs',
    feed: 'cost',
    bucketWidth: '1d',
    startMicros: MARCH.fromMicros,
    endMicros: MARCH.toMicros,
  } as const;
  await insertSyncChunks(org.orgDb, openSyncId, [chunk], null);
  await insertRepriceRun(org.orgDb, {
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

/** What people enter: prices and keys. */
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
  await upsertProviderKeys(org.orgDb, keys, { changedBy: marker, keysMax: 10 });
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
