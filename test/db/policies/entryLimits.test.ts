import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import * as providerKeys from '../../../db/billing/providerKeys.js';
import * as ownPrices from '../../../db/pricing/ownPrices.js';
import { putProviderKeys } from '../../../usecases/billing/providerKeys.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { providerKeyOf } from '../support/ownedThings.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const ENTRY: Omit<ownPrices.NewOwnPrice, 'id' | 'model'> = {
  kind: 'contract',
  provider: 'openai',
  discountPercent: 1_000_000_000_000n,
  rates: null,
  batchMultiplier: null,
  effectiveFrom: '2026-01-01',
  effectiveTo: null,
  source: { document: 'Order form 7', clause: null, url: null },
  createdBy: 'key_test',
};

it('refuses an entry beyond the number that an organization can have, and stores nothing of it', async () => {
  const { orgDb } = await api.addOrganization();
  const insert = (model: string, limits: ownPrices.OwnPriceLimits) =>
    orgDb.transaction((inside) =>
      ownPrices.insertOwnPrice(inside, { ...ENTRY, model, id: randomUUID() }, limits),
    );
  expect(await insert('*', { entriesMax: 1, allModelsMax: 1 })).toBeDefined();
  expect(await insert('m', { entriesMax: 1, allModelsMax: 1 })).toBeUndefined();
  expect(await insert('*', { entriesMax: 2, allModelsMax: 1 })).toBeUndefined();
  expect((await ownPrices.loadOwnPrices(orgDb)).prices).toHaveLength(1);
  const key = providerKeyOf('one');
  const keys = [key, { ...key, providerKeyId: 'key_2' }];
  const author = { caller: { keyId: 'key_test' }, requestId: 'req_test' };
  await expect(putProviderKeys(orgDb, keys, author, 1)).rejects.toMatchObject({ code: 'too_many_items' });
  const page = { limit: 10, offset: 0 };
  expect(await providerKeys.listProviderKeys(orgDb, { provider: undefined }, page)).toEqual([]);
});
