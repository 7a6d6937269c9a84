import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { insertRule, updateRule } from '../../db/policies/enforcementRules.js';
import { listSavingsDue } from '../../db/policies/savingsRuns.js';
import { microsFromDate } from '../../domain/period.js';
import type { Rule } from '../../domain/policies/enforcement/rule.js';
import { openDueSavings } from '../../usecases/policies/savings.js';
import { anEvent, ingest } from '../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

const RULE = {
  name: null,
  type: 'token_ceiling',
  config: { maxTokens: 10 },
  scope: { teamId: null, feature: null, model: null },
  mode: 'block',
  createdBy: 'test',
} as const;

/** An organization with a rule, and nothing modeled: rules that are stored past the API open no run. */
async function anOrganization(enabled = true): Promise<{ org: TestOrganization; rule: Rule }> {
  const org = await api.addOrganization();
  const rule = { ...RULE, id: crypto.randomUUID(), enabled };
  await insertRule(org.orgDb, rule);
  return { org, rule };
}

const sql = (text: string, values: unknown[] = []) => api.database.superuser.query(text, values);
const isDue = async ({ orgId }: TestOrganization) =>
  (await listSavingsDue(api.database.database, 1_000)).includes(orgId);
const openRuns = async ({ orgId }: TestOrganization) =>
  (await sql(`select id, cause from savings_runs where org_id = $1 and status = 'queued'`, [orgId])).rows;

/** A standard run that ended some minutes ago after some duration. */
async function aRun(
  { orgId }: TestOrganization,
  minutesAgo: number,
  { status = 'succeeded', tookMinutes = 0 } = {},
): Promise<void> {
  const ended = `now() - make_interval(mins => ${minutesAgo})`;
  const began = `${ended} - make_interval(mins => ${tookMinutes})`;
  await sql(
    `insert into savings_runs (org_id, id, is_standard, window_start, window_end, cause, status, as_of, price_version, saved_usd, blocked,
       downgraded, created_at, started_at, finished_at)
     select $1, $2, true, ${began} - interval '30 days', ${began}, 'schedule', $3, ${began}, 'v', s, s, s, ${began}, ${began}, ${ended}
     from (select case when $3 = 'succeeded' then 0 end as s) t`,
    [orgId, crypto.randomUUID(), status],
  );
  // Makes the rules older than the run.
  await sql(
    `update enforcement_rules set created_at = now() - interval '9 days', updated_at = now() - interval '9 days' where org_id = $1`,
    [orgId],
  );
}

const aCallNow = ({ ingestKey }: TestOrganization, minutesAgo = 0) =>
  ingest(
    api,
    [anEvent({ timestamp: new Date(Date.now() - minutesAgo * 60_000 - 1_000).toISOString() })],
    ingestKey,
  );

describe('an automatic savings run', () => {
  it('is opened where there are enabled rules and no result, and nowhere twice', async () => {
    const { org } = await anOrganization();
    const { org: without } = await anOrganization(false);
    const now = microsFromDate(new Date());
    await Promise.all([1, 2].map(() => openDueSavings(api.database, now)));
    expect(await openRuns(org)).toMatchObject([{ cause: 'schedule' }]);
    expect(await openRuns(without)).toEqual([]);
    const messages = await sql(`select kind from outbox where org_id = $1`, [org.orgId]);
    expect(messages.rows).toEqual([{ kind: 'savings_run.start' }]);
    expect(await isDue(org)).toBe(false);
  });

  it('starts by the hour where calls came since, and by the day where none did', async () => {
    const { org } = await anOrganization();
    await aRun(org, 61);
    expect(await isDue(org)).toBe(false);
    await aCallNow(org, 70);
    expect(await isDue(org), 'a call that the result holds').toBe(false);
    await aCallNow(org);
    expect(await isDue(org)).toBe(true);
    const { org: fresh } = await anOrganization();
    await aRun(fresh, 30);
    await aCallNow(fresh);
    expect(await isDue(fresh), 'within the hour').toBe(false);
    const { org: quiet } = await anOrganization();
    await aRun(quiet, 24 * 60 + 1);
    expect(await isDue(quiet)).toBe(true);
  });

  it('takes a twentieth of the time at most', async () => {
    const { org } = await anOrganization();
    await aCallNow(org);
    await aRun(org, 150, { tookMinutes: 10 });
    expect(await isDue(org)).toBe(false);
    await sql('delete from savings_runs where org_id = $1', [org.orgId]);
    await aRun(org, 270, { tookMinutes: 10 });
    expect(await isDue(org)).toBe(true);
  });

  it('makes up for one that failed when the rules had changed', async () => {
    const { org, rule } = await anOrganization();
    await aRun(org, 300);
    await aRun(org, 90, { status: 'failed' });
    expect(await isDue(org)).toBe(false);
    await updateRule(org.orgDb, { ...rule, name: 'changed' });
    expect(await isDue(org)).toBe(true);
  });

  it('waits while as many are open as may be', async () => {
    const { org } = await anOrganization();
    const { rows } = await sql(
      `select count(*)::int as open from savings_runs where status in ('queued', 'running')`,
    );
    expect(await listSavingsDue(api.database.database, rows[0].open)).toEqual([]);
    expect(await isDue(org)).toBe(true);
  });
});
