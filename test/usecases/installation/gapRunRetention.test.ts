import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Removed } from '../../../domain/installation/retention.js';
import { removeOldGapRuns } from '../../../usecases/installation/retention.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import {
  ACCOUNTS,
  aBilledOrganization,
  addCalls,
  dayAt,
  gapRunsOf,
  type Runs,
} from '../../support/incrementalRuns.js';

let api: TestApi;
let runs: Runs;

beforeAll(async () => {
  api = await startTestApi();
  runs = await gapRunsOf(api);
});
afterAll(() => api?.close());

const sql = (text: string, values: unknown[]) => api.database.superuser.query(text, values);

/** Units, buckets, unpublished explanations, and runs of an organization. */
async function kept({ orgId }: TestOrganization) {
  const { rows } = await sql(
    `select (select count(*)::int from gap_run_units where org_id = $1) as units, (select count(*)::int from gap_buckets where org_id = $1) as buckets,
       (select count(*)::int from gap_run_series where org_id = $1) as series, (select count(*)::int from gap_runs where org_id = $1) as runs`,
    [orgId],
  );
  return rows[0];
}

async function sweep(): Promise<number> {
  let rows = 0;
  const report = async (removed: Removed) => {
    rows += removed.rows;
  };
  await removeOldGapRuns({ database: api.database.database, report });
  return rows;
}

const age = ({ orgId }: TestOrganization, days: number) =>
  sql(
    `update gap_runs set finished_at = finished_at - make_interval(days => $2) where org_id = $1 and finished_at is not null`,
    [orgId, days],
  );

describe('the rows of gap runs', () => {
  it('are removed with a failed run, a week later, with its evidence', async () => {
    const org = await aBilledOrganization(api);
    const work = await runs.begin(org);
    await runs.match(work);
    await runs.explain(work);
    const stopped = await kept(org);
    expect(stopped).toEqual({ units: 6, buckets: 12, series: 2, runs: 1 });
    await sweep();
    expect(await kept(org)).toEqual(stopped);
    await sql(`update gap_runs set status = 'failed', finished_at = now() where org_id = $1`, [org.orgId]);
    await sweep();
    expect(await kept(org)).toEqual({ ...stopped, series: 0 });
    await age(org, 8);
    await sweep();
    expect(await kept(org)).toEqual({ units: 0, buckets: 0, series: 0, runs: 1 });
    await age(org, 400);
    await sweep();
    expect(await kept(org)).toEqual({ units: 0, buckets: 0, series: 0, runs: 0 });
  });

  it('stay where they are published, however old, and the next run still finds nothing changed', async () => {
    const org = await aBilledOrganization(api, [dayAt(2)]);
    await runs.run(org);
    await age(org, 1_000);
    const before = [await kept(org), await runs.published(org)];
    expect(await sweep()).toBe(0);
    expect([await kept(org), await runs.published(org)]).toEqual(before);
    expect((await runs.run(org)).units).toBe(0);
  });

  it('are removed where a newer run replaced them, and do not grow with the number of runs', async () => {
    const org = await aBilledOrganization(api);
    const other = await aBilledOrganization(api);
    await runs.run(other);
    await runs.run(org);
    const [first, others] = [await kept(org), await kept(other)];
    for (let at = 0; at < 4; at += 1) {
      await addCalls(api, org.orgId, { day: dayAt(at), account: ACCOUNTS[0] });
      await runs.run(org);
    }
    const id = randomUUID();
    await sql(
      `insert into gap_runs (org_id, id, period, status, window_start, window_end, finished_at) values ($1, $2, '7d', 'cancelled', now(), now(), now())`,
      [org.orgId, id],
    );
    await age(org, 401);
    await sweep();
    const { units, buckets } = await kept(org);
    expect({ units, buckets }).toEqual({ units: first.units, buckets: first.buckets });
    expect(await kept(other)).toEqual(others);
    const { rows } = await sql('select id from gap_runs where org_id = $1 and id = $2', [org.orgId, id]);
    expect(rows).toEqual([]);
    expect((await runs.run(org)).units).toBe(0);
  });
});
