import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OrgDb } from '../../../db/orgDb.js';
import * as ownPrices from '../../../db/queries/ownPrices.js';
import * as providerKeys from '../../../db/queries/providerKeys.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { importBill } from '../../support/bills.js';
import { startTestEngine, type TestEngine } from '../../support/engine.js';
import { readTenantRows } from '../support/tenantRows.js';

/** Asks across organizations which of them have own prices. */
const NOT_TENANT = ['readOwnPriceRevisions'];
const BILL =
  'date,model,token_class,quantity,amount_usd,api_key\n2026-09-10,gpt-5.6-sol,input,1000,1,owned-by-a\n';

let api: TestApi;
let engine: TestEngine;
let owner: TestOrganization;
let entry: ownPrices.NewOwnPrice;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  await engine.startWorker();
  owner = await api.addOrganization();
  entry = {
    id: randomUUID(),
    kind: 'contract',
    provider: 'openai',
    model: '*',
    discountPercent: 1_000_000_000_000n,
    rates: null,
    batchMultiplier: null,
    effectiveFrom: '2026-01-01',
    effectiveTo: null,
    source: { document: 'owned-by-a', clause: null, url: null },
    createdBy: 'key_test',
  };
  await ownPrices.insertOwnPrice(owner.orgDb, entry, LIMITS);
  await providerKeys.upsertProviderKeys(owner.orgDb, [KEY], { changedBy: 'key_test', keysMax: 10 });
  await importBill(api, BILL, { provider: 'openai' }, owner.adminKey);
});
afterAll(async () => {
  await engine?.close();
  await api?.close();
});

const KEY = {
  provider: 'openai' as const,
  providerKeyId: 'key_1',
  providerAccountId: null,
  name: 'owned-by-a',
  project: null,
  teamId: null,
  status: 'active' as const,
  activeFromMicros: null,
  revokedAtMicros: null,
};
const LIMITS = { entriesMax: 10, allModelsMax: 10 };
const PAGE = { limit: 10, offset: 0 };

/** What each function tells an organization of the owner's rows; the writing ones write the organization's own. */
const CASES: Record<string, (db: OrgDb) => Promise<unknown>> = {
  insertOwnPrice: (db) =>
    ownPrices.insertOwnPrice(db, { ...entry, id: randomUUID(), source: SOURCE }, LIMITS),
  findOwnPrice: (db) => ownPrices.findOwnPrice(db, 'contract', entry.id),
  endOwnPrice: (db) =>
    ownPrices.endOwnPrice(db, { kind: 'contract', id: entry.id, endsOn: '2026-06-01', endedBy: 'key_b' }),
  listOwnPrices: (db) =>
    ownPrices.listOwnPrices(
      db,
      { kind: 'contract', provider: undefined, model: undefined, day: undefined },
      PAGE,
    ),
  loadOwnPrices: (db) => ownPrices.loadOwnPrices(db),
  listProviderKeys: (db) => providerKeys.listProviderKeys(db, { provider: undefined }, PAGE),
  findProviderKeys: (db) => providerKeys.findProviderKeys(db, [KEY]),
  upsertProviderKeys: (db) =>
    providerKeys.upsertProviderKeys(db, [{ ...KEY, name: 'changed' }], { changedBy: 'key_b', keysMax: 10 }),
  listSuspectKeys: (db) =>
    providerKeys.listSuspectKeys(db, {
      provider: null,
      fromDay: '2026-01-01',
      toDay: '2027-01-01',
      limit: 10,
    }),
};
const SOURCE = { document: 'another', clause: null, url: null };

const textOf = (value: unknown) =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}` : part)) ?? '';

describe('a query about own prices and provider keys', () => {
  it('has a case', () => {
    const functions = [ownPrices, providerKeys].flatMap((module) =>
      Object.entries(module).flatMap(([name, value]) => (typeof value === 'function' ? [name] : [])),
    );
    expect(functions.filter((name) => !NOT_TENANT.includes(name)).sort()).toEqual(Object.keys(CASES).sort());
  });

  it.each(Object.keys(CASES))('%s shows and changes nothing of another organization', async (name) => {
    const before = await readTenantRows(api.database.superuser, owner.orgId);
    const stranger = await api.addOrganization();
    const shown = textOf(await CASES[name]?.(stranger.orgDb));
    expect(shown).not.toContain('owned-by-a');
    expect(await readTenantRows(api.database.superuser, owner.orgId)).toEqual(before);
  });

  it.each(Object.keys(CASES))('%s shows or changes something of its own organization', async (name) => {
    const before = textOf(await readTenantRows(api.database.superuser, owner.orgId));
    const shown = textOf(await CASES[name]?.(owner.orgDb));
    const after = textOf(await readTenantRows(api.database.superuser, owner.orgId));
    expect(shown.includes('owned-by-a') || shown.includes('changed') || after !== before).toBe(true);
  });

  it('refuses an entry beyond the number that an organization can have, and stores nothing of it', async () => {
    const { orgDb } = await api.addOrganization();
    const insert = (model: string, limits: ownPrices.OwnPriceLimits) =>
      ownPrices.insertOwnPrice(orgDb, { ...entry, model, id: randomUUID() }, limits);
    expect(await insert('*', { entriesMax: 1, allModelsMax: 1 })).toBeDefined();
    expect(await insert('m', { entriesMax: 1, allModelsMax: 1 })).toBeUndefined();
    expect(await insert('*', { entriesMax: 2, allModelsMax: 1 })).toBeUndefined();
    expect((await ownPrices.loadOwnPrices(orgDb)).prices).toHaveLength(1);
    const keys = [KEY, { ...KEY, providerKeyId: 'key_2' }];
    expect(await providerKeys.upsertProviderKeys(orgDb, keys, { changedBy: 'x', keysMax: 1 })).toBe(false);
    expect(await providerKeys.listProviderKeys(orgDb, { provider: undefined }, PAGE)).toEqual([]);
  });
});
