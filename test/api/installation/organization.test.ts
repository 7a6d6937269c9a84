import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, send } from '../support/requests.js';

const ORGANIZATION = '/api/v1/organization';
const SETTINGS = `${ORGANIZATION}/settings`;
const DEFAULTS = {
  drop_payloads: false,
  holidays: [],
  time_zone: 'UTC',
  counted_scopes: [],
  chargeback_allocation: 'none',
};

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const patch = (path: string, body: unknown, key = api.adminKey) =>
  send(api, {
    method: 'PATCH',
    path,
    key,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const audited = async ({ orgId }: TestOrganization) => {
  const { rows } = await api.database.superuser.query<{ actor_id: string; details: string }>(
    `select actor_id, details from audit_log where org_id = $1 and action = 'settings.changed' order by seq`,
    [orgId],
  );
  return rows.map((row) => ({ actor: row.actor_id, details: JSON.parse(row.details) }));
};

describe('the organization', () => {
  it('shows its id, its name, its creation time and its settings', async () => {
    const one = await api.addOrganization('Northwind');
    const { status, body } = await api.get(ORGANIZATION, one.adminKey);
    expect(status).toBe(200);
    expect(body).toEqual({
      id: `org_${one.orgId.replaceAll('-', '')}`,
      name: 'Northwind',
      created_at: expect.stringMatching(/Z$/),
      settings: DEFAULTS,
    });
    expect((await api.get(SETTINGS, one.adminKey)).body).toEqual(DEFAULTS);
  });

  it('is renamed by an admin alone, and the log records the old name and the new one', async () => {
    const one = await api.addOrganization('Before');
    const { status, body } = await patch(ORGANIZATION, { name: ' After ' }, one.adminKey);
    expect({ status, name: body.name }).toEqual({ status: 200, name: 'After' });
    expect((await patch(ORGANIZATION, { name: 'After' }, one.adminKey)).status).toBe(200);
    expect((await patch(ORGANIZATION, {}, one.adminKey)).body.name).toBe('After');
    expect((await audited(one)).map(({ details }) => details)).toEqual([
      { fields: ['name'], new_name: 'After', old_name: 'Before' },
    ]);
    expect((await api.get(ORGANIZATION)).body.name).toBe('Test');
  });

  it('is shown to members and auditors, changed by admins alone, and refused to ingest keys and keys of a workspace', async () => {
    const one = await api.addOrganization();
    const workspace = await api.addWorkspace(one.orgId, 'search');
    const keys = {
      member: await api.addKey(one.orgId, 'member'),
      auditor: await api.addKey(one.orgId, 'auditor'),
      ingest: one.ingestKey,
      workspace: await api.addKey(one.orgId, 'member', { workspaceId: workspace }),
    };
    const statuses: Record<string, number[]> = {};
    for (const [who, key] of Object.entries(keys))
      statuses[who] = [
        (await api.get(ORGANIZATION, key)).status,
        (await api.get(SETTINGS, key)).status,
        (await patch(ORGANIZATION, { name: 'x' }, key)).status,
        (await patch(SETTINGS, { drop_payloads: true }, key)).status,
      ];
    expect(statuses).toEqual({
      member: [200, 200, 403, 403],
      auditor: [200, 200, 403, 403],
      ingest: [403, 403, 403, 403],
      workspace: [403, 403, 403, 403],
    });
    expect((await patch(SETTINGS, { drop_payloads: true }, keys.member)).body.detail).toBe(
      'admin role required',
    );
    expect((await api.get(SETTINGS, one.adminKey)).body).toEqual(DEFAULTS);
  });
});

describe('the settings', () => {
  it('change field by field; null takes a field back to its default, and a list is replaced as a whole', async () => {
    const one = await api.addOrganization();
    const change = async (body: object) => (await patch(SETTINGS, body, one.adminKey)).body;
    expect(await change({ drop_payloads: true })).toEqual({ ...DEFAULTS, drop_payloads: true });
    expect(
      await change({ holidays: ['2026-12-26', '2026-12-25', '2026-12-26'], time_zone: 'Europe/Berlin' }),
    ).toEqual({
      ...DEFAULTS,
      drop_payloads: true,
      holidays: ['2026-12-25', '2026-12-26'],
      time_zone: 'Europe/Berlin',
    });
    const scopes = [{ service: 'checkout', scope: 'sdk' }, { scope: 'openinference' }];
    expect(await change({ counted_scopes: scopes, holidays: ['2027-01-01'], drop_payloads: null })).toEqual({
      ...DEFAULTS,
      holidays: ['2027-01-01'],
      time_zone: 'Europe/Berlin',
      counted_scopes: [
        { service: 'checkout', scope: 'sdk' },
        { service: null, scope: 'openinference' },
      ],
    });
    expect(await change({})).toEqual((await api.get(SETTINGS, one.adminKey)).body);
    expect(await change({ holidays: null, time_zone: null, counted_scopes: null })).toEqual(DEFAULTS);
    const stored = await api.database.superuser.query('select settings from organizations where id = $1', [
      one.orgId,
    ]);
    expect(stored.rows).toEqual([{ settings: {} }]);
  });

  it('are recorded in the audit log with old and new values, once for each change that changed something', async () => {
    const one = await api.addOrganization();
    await patch(SETTINGS, { drop_payloads: true, holidays: ['2026-12-25'] }, one.adminKey);
    await patch(SETTINGS, { drop_payloads: true }, one.adminKey);
    await patch(SETTINGS, { holidays: [], counted_scopes: [{ service: 'a', scope: 'b' }] }, one.adminKey);
    const rows = await audited(one);
    expect(new Set(rows.map(({ actor }) => actor)).size).toBe(1);
    expect(rows.map(({ details }) => details)).toEqual([
      {
        fields: ['drop_payloads', 'holidays'],
        holidays_added: ['2026-12-25'],
        new_drop_payloads: true,
        old_drop_payloads: false,
      },
      {
        counted_scopes_added: ['a: b'],
        fields: ['holidays', 'counted_scopes'],
        holidays_removed: ['2026-12-25'],
      },
    ]);
  });

  it('leave their row alone where nothing changes: no ingest reads them again', async () => {
    const one = await api.addOrganization();
    const markOf = async () =>
      (await api.database.superuser.query('select xmin::text from organizations where id = $1', [one.orgId]))
        .rows[0].xmin;
    await patch(SETTINGS, { drop_payloads: true }, one.adminKey);
    const mark = await markOf();
    for (const body of [{ drop_payloads: true }, {}, { holidays: null }])
      expect((await patch(SETTINGS, body, one.adminKey)).status).toBe(200);
    expect(await markOf()).toBe(mark);
  });

  it('that were edited by hand in the database fail no request and no call, and a change repairs them', async () => {
    const one = await api.addOrganization();
    await api.database.superuser.query('update organizations set settings = $2 where id = $1', [
      one.orgId,
      {
        drop_payloads: true,
        holidays: [5],
        time_zone: '',
        counted_scopes: ['checkout'],
      },
    ]);
    const read = { ...DEFAULTS, drop_payloads: true };
    expect(await api.get(SETTINGS, one.adminKey)).toMatchObject({ status: 200, body: read });
    expect((await api.get('/api/v1/organization', one.adminKey)).body.settings).toEqual(read);
    const sent = await api.post('/api/v1/ingest/events', { events: [anEvent()] }, one.ingestKey);
    expect(sent).toMatchObject({ status: 202, body: { accepted: 1 } });
    expect((await patch(SETTINGS, { holidays: ['2026-12-25'] }, one.adminKey)).body).toEqual({
      ...read,
      holidays: ['2026-12-25'],
    });
    const { rows } = await api.database.superuser.query('select settings from organizations where id = $1', [
      one.orgId,
    ]);
    expect(rows).toEqual([{ settings: { drop_payloads: true, holidays: ['2026-12-25'] } }]);
  });

  it('that two admins change at the same time are both changed', async () => {
    const one = await api.addOrganization();
    const changes = [
      { drop_payloads: true },
      { holidays: ['2026-12-25'] },
      { time_zone: 'Asia/Tokyo' },
      { counted_scopes: [{ scope: 'sdk' }] },
      { chargeback_allocation: 'even' },
    ];
    const answers = await Promise.all(changes.map((body) => patch(SETTINGS, body, one.adminKey)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect((await api.get(SETTINGS, one.adminKey)).body).toEqual({
      drop_payloads: true,
      holidays: ['2026-12-25'],
      time_zone: 'Asia/Tokyo',
      counted_scopes: [{ service: null, scope: 'sdk' }],
      chargeback_allocation: 'even',
    });
  });

  it.each([
    [{ chargeback_allocation: 'all' }, 'chargeback_allocation'],
    [{ drop_payload: true }, 'drop_payload'],
    [{ drop_payloads: 'yes' }, 'drop_payloads'],
    [{ holidays: ['2026-02-30'] }, 'holidays.0'],
    [{ holidays: ['2026-12-25T00:00:00Z'] }, 'holidays.0'],
    [{ time_zone: 'Mars/Olympus' }, 'time_zone'],
    [{ time_zone: '+01:00' }, 'time_zone'],
    [{ time_zone: 'europe/berlin' }, 'time_zone'],
    [{ counted_scopes: [{ service: 'a' }] }, 'counted_scopes.0.scope'],
    [{ counted_scopes: [{ service: '', scope: 'a' }] }, 'counted_scopes.0.service'],
    [{ counted_scopes: [{ scope: 'a', org_id: 'b' }] }, 'counted_scopes.0'],
    [{ counted_scopes: [{ scope: 'caf\u00e9' }] }, 'counted_scopes.0.scope'],
    [{ org_id: 'org_1', id: 'x' }, 'org_id'],
  ])('refuse %j with 400 and the name of the field', async (body, field) => {
    const answer = await patch(SETTINGS, body);
    expect({ status: answer.status, code: answer.body.code }).toEqual({ status: 400, code: 'invalid_body' });
    expect(JSON.stringify(answer.body.errors)).toContain(field.split('.').at(-1) ?? '');
    expect((await api.get(SETTINGS)).body).toEqual(DEFAULTS);
  });

  it('hold ten years of holidays and not one day more', async () => {
    const days = Array.from({ length: 3_661 }, (_, index) =>
      new Date(Date.UTC(2026, 0, 1 + index)).toISOString().slice(0, 10),
    );
    const one = await api.addOrganization();
    expect((await patch(SETTINGS, { holidays: days }, one.adminKey)).status).toBe(400);
    const { status, body } = await patch(SETTINGS, { holidays: days.slice(1).reverse() }, one.adminKey);
    expect({ status, holidays: body.holidays }).toEqual({ status: 200, holidays: days.slice(1) });
  });

  it.each([[{ name: '' }], [{ name: 'x', settings: {} }], [{ demo_end_day: '2026-01-01' }]])(
    'are no part of the name: %j is 400',
    async (body) => {
      expect((await patch(ORGANIZATION, body)).status).toBe(400);
    },
  );
});
