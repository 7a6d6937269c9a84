import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../db/client.js';
import { getEvent, listEvents } from '../../db/events/events.js';
import { insertOrganization } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import { insertRule } from '../../db/policies/enforcementRules.js';
import { putPolicy } from '../../db/policies/policies.js';
import { listFormerPrices } from '../../db/pricing/repriceRuns.js';
import { microsOfDay } from '../../domain/period.js';
import { closePeriod } from '../../usecases/billing/periods.js';
import { IngestWriter } from '../../usecases/events/ingestWriter.js';
import { meterPoints } from '../../usecases/events/meterPoints.js';
import { aBatch, aCall } from '../support/aCall.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { openTestPrices } from '../support/prices.js';
import { foldAll } from './support/compareTotals.js';
import { OWNED_POINT } from './support/ownedCalls.js';
import { otherPrices, repriceAll } from './support/repriceAll.js';

/** A label as a client may choose it. */
const PROJECT = `it's a "project" \\'; reset role; --`;
const OTHERS = 'another';

/** The columns that app_workspace reads, and the one with the owner of a row; null: a row of the whole organization. */
const READABLE: Record<string, string | null> = {
  alerts: 'project_id',
  enforcement_rules: null,
  event_adjustments: 'project_id',
  event_payloads: `(select project_id from events e where e.org_id = event_payloads.org_id and e.id = event_payloads.event_id)`,
  event_price_changes: `(select project_id from events e where e.org_id = event_price_changes.org_id and e.id = event_price_changes.event_id)`,
  events: 'project_id',
  ingest_rejections: 'project_id',
  metered_usage: 'project_id',
  paired_reports: `(select project_id from events e where e.org_id = paired_reports.org_id and e.id = paired_reports.event_id)`,
  period_closings: null,
  policies: null,
  project_adjustments: 'project_id',
  project_cells: 'project_id',
  rollup_state: null,
};

let test: TestDatabase;
let whole: OrgDb;
let bound: OrgDb;

beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 4 });
  const prices = await openTestPrices(test.database);
  const silent = { queueRows: () => undefined, batchRows: () => undefined };
  const writer = new IngestWriter(test.database, prices, 1, silent);
  const orgs = [randomUUID(), randomUUID()] as const;
  whole = new OrgDb(test.database, orgs[0]);
  bound = new OrgDb(test.database, orgs[0], { projectId: PROJECT });
  const tell = async (orgId: string, name: string) => {
    for (const projectId of [PROJECT, OTHERS, null]) {
      const call = aCall({ requestId: `${name} ${projectId}`, projectId, payload: { name } });
      const batch = {
        ...aBatch([call]),
        rejections: [
          {
            serviceName: name,
            scopeName: '',
            reason: 'invalid_number' as const,
            index: 0,
            label: '',
            message: '',
          },
        ],
      };
      await writer.submit({ orgId, keyId: `key_${'0'.repeat(10)}`, defaultProjectId: projectId, batch });
      const point = { ...OWNED_POINT, seriesId: randomUUID(), serviceName: name, hourMicros: 0n };
      await meterPoints(new OrgDb(test.database, orgId), projectId, [point]);
    }
  };
  for (const orgId of orgs) {
    const orgDb = new OrgDb(test.database, orgId);
    await insertOrganization(test.database, { id: orgId, name: 'two projects' });
    const none = {
      type: 'approved_models',
      config: { models: ['none'] },
      enabled: true,
      skipped: [],
    } as const;
    await putPolicy(orgDb, none, 'test');
    await insertRule(orgDb, {
      id: randomUUID(),
      name: null,
      type: 'token_ceiling',
      config: { maxTokens: 1 },
      scope: { teamId: null, feature: null, model: null },
      enabled: true,
      mode: 'block',
      createdBy: 'test',
    });
    await tell(orgId, 'in time');
    await closePeriod(test.database, orgId, {
      month: '2026-02',
      closedBy: 'key_test',
      nowMicros: microsOfDay('2026-03-02'),
    });
    await tell(orgId, 'late');
    await repriceAll(orgDb, otherPrices(prices.current(), 3n), {
      fromMicros: microsOfDay('2026-02-01'),
      toMicros: microsOfDay('2026-02-04'),
    });
    await foldAll(test.superuser, orgDb);
    await test.superuser.query(
      `insert into paired_reports (org_id, event_id, pair_key, start_at, end_at, service_name, scope_name)
       select org_id, id, 1, timestamp, end_at, service_name, scope_name from events where org_id = $1`,
      [orgId],
    );
  }
});
afterAll(() => test.close());

async function readableTables(): Promise<string[]> {
  const { rows } = await test.superuser.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm')
       and has_any_column_privilege('app_workspace', oid, 'SELECT') order by 1`,
  );
  return rows.map(({ name }) => name);
}

describe('the role of workspaces', () => {
  it('reads these tables and nothing else, no partition among them', async () => {
    expect(await readableTables()).toEqual(Object.keys(READABLE));
  });

  it('writes nothing, owns nothing, cannot log in, and bypasses nothing', async () => {
    const { rows: granted } = await test.superuser.query(
      `select relname, privilege from pg_class, unnest('{INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) privilege
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and has_table_privilege('app_workspace', oid, privilege)`,
    );
    expect(granted).toEqual([]);
    const { rows } = await test.superuser.query(
      `select rolcanlogin or rolsuper or rolbypassrls or rolcreatedb or rolcreaterole or rolreplication as powers,
         (select count(*)::int from pg_class where relowner = r.oid) as owned,
         (select count(*)::int from pg_auth_members where member = r.oid) as roles
       from pg_roles r where rolname = 'app_workspace'`,
    );
    expect(rows).toEqual([{ powers: false, owned: 0, roles: 0 }]);
  });

  it.each(Object.entries(READABLE))(
    'sees of %s the rows of its project and organization alone',
    async (table, project) => {
      const { rows } = await test.superuser.query<{ of: string | null; org: string; count: number }>(
        `select ${project ?? 'null'} as of, org_id as org, count(*)::int as count from ${table} group by 1, 2`,
      );
      const isOwn = (row: { of: string | null; org: string }) =>
        row.org === bound.orgId && (project === null || row.of === PROJECT);
      const own = rows.filter(isOwn);
      expect(own.length).toBe(1);
      expect(rows.length).toBeGreaterThan(own.length);
      expect(await bound.rows(`select count(*)::int as count from ${table}`)).toEqual([
        { count: own[0]?.count },
      ]);
    },
  );

  it('fails on a table that is not limited to a project, rather than answer with too much', async () => {
    for (const table of [
      'usage_rollups',
      'label_cells',
      'billing_cells',
      'api_keys',
      'workspaces',
      'period_totals',
    ])
      await expect(bound.rows(`select * from ${table}`), table).rejects.toThrow(
        `permission denied for table ${table}`,
      );
    await expect(bound.run('delete from events')).rejects.toThrow('permission denied');
  });
});

describe('a handle of a project', () => {
  const scope = `select current_user as role, current_setting('app.org_id', true) as org, current_setting('app.project_id', true) as project`;

  it('sets its project unchanged, in statements, transactions and what joins them', async () => {
    const expected = [{ role: 'app_workspace', org: bound.orgId, project: PROJECT }];
    expect(await bound.rows(scope)).toEqual(expected);
    const inside = await bound.transaction((outer) => outer.transaction((inner) => inner.rows(scope)));
    expect(inside).toEqual(expected);
    expect(await bound.transaction(async (own) => own.projectId)).toBe(PROJECT);
  });

  it('leaves nothing of it to the next one on its connection', async () => {
    const one = openDatabase({ ...test.database.options, poolMax: 1 });
    const [first, next] = [new OrgDb(one, bound.orgId, { projectId: PROJECT }), new OrgDb(one, bound.orgId)];
    const count = async (orgDb: OrgDb) =>
      (await listEvents(orgDb, {}, { limit: 10, offset: 0 }, false)).events.length;
    expect(await count(first)).toBe(2);
    expect(await next.rows(scope)).toEqual([{ role: 'app_rw', org: bound.orgId, project: '' }]);
    expect([await count(next), await count(first), await count(next)]).toEqual([6, 2, 6]);
    await one.close();
  });

  it('is left only explicitly, and not inside its transaction', async () => {
    expect(await bound.leaveProject('to look at all of it').rows(scope)).toEqual(await whole.rows(scope));
    expect(whole.leaveProject('is there already')).toBe(whole);
    expect(() => bound.leaveProject('')).toThrow(TypeError);
    await bound.transaction(async (inside) => {
      expect(() => inside.leaveProject('to look at all of it')).toThrow(TypeError);
    });
  });

  it('is its project’s again when a step across organizations is done', async () => {
    await bound.transaction(async (inside) => {
      await inside.unscoped('a step across organizations', (system) => system.rows('select 1'));
      expect(await inside.rows(scope)).toEqual([
        { role: 'app_workspace', org: bound.orgId, project: PROJECT },
      ]);
    });
  });

  it('reads former prices of its own events alone', async () => {
    const { events } = await listEvents(whole, {}, { limit: 10, offset: 0 }, false);
    for (const { id, projectId } of events) {
      expect((await listFormerPrices(whole, id)).length).toBe(1);
      expect((await listFormerPrices(bound, id)).length).toBe(projectId === PROJECT ? 1 : 0);
      const found = getEvent(bound, id, true);
      if (projectId === PROJECT) expect((await found).id).toBe(id);
      else await expect(found).rejects.toMatchObject({ code: 'not_found' });
    }
  });
});
