import { afterAll, beforeAll, expect, it } from 'vitest';
import { storeDrafts } from '../../lab/bench/support/benchClaims.js';
import { CLAIMS } from '../api/support/claims.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { asOwner } from '../support/database.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

it('the claims that the benchmark stores are drafts with a dispute each', async () => {
  const ids = await storeDrafts(asOwner(api.database.url), api.orgId, 2);
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) {
    const { status, body } = await api.get(`${CLAIMS}/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, status: 'draft', total_recoverable_cents: 12_345 });
    expect(body.dispute_ids).toHaveLength(1);
  }
});
