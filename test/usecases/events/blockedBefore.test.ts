import { afterAll, beforeAll, expect, it } from 'vitest';
import { enforcementRules } from '../../../db/migrations/0022_enforcement_rules.js';
import { MIGRATIONS } from '../../../db/migrations/index.js';
import { anEvent, ingest } from '../../api/support/requests.js';
import { startTestApi, type TestApi } from '../../support/api.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

it('calls that were blocked before there were rules cost nothing from the migration on; no other row moves', async () => {
  const org = await api.addOrganization();
  const labels = { session_id: 's', team_id: 't' };
  await ingest(
    api,
    [
      anEvent({ ...labels, request_id: 'made', cost_usd: 2 }),
      anEvent({ ...labels, request_id: 'cost', status: 'blocked', prevented_usd: 1 }),
      anEvent({ ...labels, request_id: 'unpriced', status: 'blocked', model: 'none' }),
      anEvent({ ...labels, request_id: 'free', status: 'blocked' }),
    ],
    org.ingestKey,
  );
  const { superuser } = api.database;
  const read = async () => {
    const { rows } = await superuser.query<{ request_id: string; row: Record<string, unknown> }>(
      `select request_id, to_jsonb(e) as row from events e where org_id = $1 order by request_id`,
      [org.orgId],
    );
    return Object.fromEntries(rows.map(({ request_id: id, row }) => [id, row]));
  };
  const now = await read();
  // Simulates how an earlier version stored them.
  const client = await superuser.connect();
  try {
    const later = MIGRATIONS.slice(MIGRATIONS.indexOf(enforcementRules)).toReversed();
    for (const { down } of later) await client.query(`begin; ${down}; commit`);
    await client.query(
      `update events set cost_usd = 3, computed_cost_usd = 3, reported_cost_usd = 3, cost_source = 'reported', price_gaps = '{x}'
       where org_id = $1 and request_id = 'cost'`,
      [org.orgId],
    );
    await client.query(
      `update events set computed_cost_usd = null, cost_source = 'unpriced' where org_id = $1 and request_id = 'unpriced'`,
      [org.orgId],
    );
    for (const { up } of later.toReversed()) await client.query(`begin; ${up}; commit`);
  } finally {
    client.release();
  }
  expect(await read()).toEqual(now);
  expect(now.cost).toMatchObject({ cost_usd: 0, cost_source: 'computed', prevented_usd: 1 });
});
