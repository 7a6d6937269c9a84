import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OrgDb } from '../../../db/orgDb.js';
import { insertRule } from '../../../db/policies/enforcementRules.js';
import { insertModeledCalls, insertModeledRules } from '../../../db/policies/modeledSavings.js';
import { SAVINGS_RUNS, succeedSavingsRun, takeSavingsRun } from '../../../db/policies/savingsRuns.js';
import { insertRun } from '../../../db/runs/runTable.js';
import { microsFromDate } from '../../../domain/period.js';
import { removeOldSavings } from '../../../usecases/installation/retention.js';
import { standardPeriod } from '../../../usecases/policies/savings.js';
import { endRun } from '../../../usecases/runs/endRun.js';
import { createTestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

const NOW = microsFromDate(new Date());
let test: TestDatabase;
let orgDb: OrgDb;
let ruleId: string;

beforeAll(async () => {
  test = await createTestDatabase();
  const { orgId } = await createTestOrganization(test.database);
  orgDb = new OrgDb(test.database, orgId);
  ruleId = randomUUID();
  const scope = { teamId: null, feature: null, model: null };
  const config = { maxTokens: 1 };
  const rule = {
    id: ruleId,
    name: null,
    type: 'token_ceiling',
    config,
    scope,
    enabled: true,
    mode: 'block',
  } as const;
  await insertRule(orgDb, { ...rule, createdBy: 'test' });
});
afterAll(() => test?.close());

/** A run with some calls that ended so; its id. */
async function aRun(
  end: 'succeeded' | 'failed' | 'running',
  { daysAgo = 0, calls = 3, named = false } = {},
): Promise<string> {
  const id = randomUUID();
  const period = { ...standardPeriod(NOW), isStandard: !named };
  await insertRun(orgDb, SAVINGS_RUNS, { id, ...period, cause: 'request', requestedBy: null });
  await takeSavingsRun(orgDb, id, { id: randomUUID(), priceVersion: 'v' });
  await insertModeledRules(orgDb, id);
  const verdict = { ruleId, action: 'block', savedPico: 1n, unpricedReason: null } as const;
  const judged = Array.from({ length: calls }, () => ({
    eventId: randomUUID(),
    timestampMicros: NOW,
    verdict,
  }));
  await insertModeledCalls(orgDb, id, judged);
  if (end === 'succeeded') await succeedSavingsRun(orgDb, id);
  if (end === 'failed') await endRun(orgDb, 'savings_run', id, { status: 'failed' });
  await test.superuser.query(
    'update savings_runs set created_at = now() - make_interval(days => $2) where id = $1',
    [id, daysAgo],
  );
  return id;
}

/** Runs that still have calls, and all that are there. */
async function left(): Promise<{ full: string[]; all: string[] }> {
  const full = await test.superuser.query(
    'select distinct run_id as id from modeled_calls where org_id = $1',
    [orgDb.orgId],
  );
  const all = await test.superuser.query('select id from savings_runs where org_id = $1', [orgDb.orgId]);
  const ids = ({ rows }: { rows: { id: string }[] }) => rows.map(({ id }) => id).sort();
  return { full: ids(full), all: ids(all) };
}

async function remove(): Promise<number> {
  let rows = 0;
  await removeOldSavings({
    database: test.database,
    report: async (removed) => {
      rows += removed.rows;
    },
  });
  return rows;
}

describe('the retention of savings runs', () => {
  it('keeps the two newest results, ten of named periods for a week, and what is at work; the runs themselves for 90 days', async () => {
    const gone = [
      await aRun('succeeded', { daysAgo: 3, calls: 7 }),
      await aRun('failed', { daysAgo: 1 }),
      await aRun('succeeded', { daysAgo: 8, named: true }),
      await aRun('succeeded', { daysAgo: 6, named: true }),
    ];
    const kept = [await aRun('succeeded', { daysAgo: 2 }), await aRun('succeeded', { daysAgo: 1 })];
    for (let daysAgo = 0; daysAgo < 10; daysAgo += 1)
      kept.push(await aRun('succeeded', { daysAgo: Math.floor(daysAgo / 2), named: true }));
    kept.push(await aRun('running'));
    expect(await remove()).toBe(7 + 3 + 3 + 3);
    expect(await left()).toEqual({ full: [...kept].sort(), all: [...kept, ...gone].sort() });
    expect(await remove()).toBe(0);
    await test.superuser.query(
      `update savings_runs set emptied_at = now() - interval '91 days' where id = $1`,
      [gone[0]],
    );
    expect(await remove()).toBe(1);
    expect((await left()).all).not.toContain(gone[0]);
  });
});
