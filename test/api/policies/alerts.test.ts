import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALERT_STATUSES, SEVERITIES } from '../../../domain/policies/alert.js';
import { POLICY_TYPES } from '../../../domain/policies/policy.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { type AlertToStore, storeAlerts } from '../support/alerts.js';
import { putPolicy } from '../support/policies.js';
import { anEvent, ingest } from '../support/requests.js';

const PATH = '/api/v1/alerts';
const SEED = testSeed();
const RUNS = propertyRuns(6);

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api.close());

/** A time in March 2026, by its microsecond. */
const at = (micros: number) => `2026-03-10T12:00:00.${String(micros).padStart(6, '0')}Z`;

const idsOf = (body: { alerts: { id: string }[] }) => body.alerts.map(({ id }) => id);
const list = async (org: TestOrganization, query = '') =>
  idsOf((await api.get(`${PATH}?${query}`, org.adminKey)).body);
const acknowledge = (id: string, key: string) => api.post(`${PATH}/${id}/acknowledge`, {}, key);

describe('an alert of a call', () => {
  it('contains the policy, the call and its labels as they were when it was stored', async () => {
    const org = await api.addOrganization();
    const policy = await putPolicy(api, org, 'approved_models', { models: ['gpt-4o-mini'] });
    const call = { team_id: 't', feature: 'f', session_id: 's', project_id: 'p', cost_usd: 0.25 };
    await ingest(api, [anEvent(call)], org.ingestKey);
    const event = (await api.get('/api/v1/events', org.adminKey)).body.events[0];
    const { body } = await api.get(PATH, org.adminKey);
    expect(body).toEqual({
      alerts: [
        {
          id: expect.stringMatching(/^alr_[0-9a-f]{32}$/),
          kind: 'policy',
          policy_type: 'approved_models',
          policy_id: policy.id,
          notice: null,
          event_id: event.id,
          subject: { type: 'event', id: event.id },
          severity: 'medium',
          status: 'open',
          message: expect.any(String),
          details: { model: 'gpt-4o' },
          provider: 'openai',
          model: 'gpt-4o',
          team_id: 't',
          feature: 'f',
          session_id: 's',
          project_id: 'p',
          cost_usd: 0.25,
          event_timestamp: event.timestamp,
          created_at: expect.any(String),
          acknowledged_at: null,
          acknowledged_by: null,
        },
      ],
      count: 1,
      offset: 0,
      has_more: false,
      next_cursor: null,
    });
    const one = await api.get(`${PATH}/${body.alerts[0].id}`, org.adminKey);
    expect([one.status, one.body]).toEqual([200, body.alerts[0]]);
  });

  it('contains null, not a missing field, for an unknown cost', async () => {
    const org = await api.addOrganization();
    await putPolicy(api, org, 'approved_models', { models: ['x'] });
    await ingest(api, [anEvent({ model: 'no-such-model' })], org.ingestKey);
    expect((await api.get(PATH, org.adminKey)).body.alerts).toMatchObject([
      { model: 'no-such-model', cost_usd: null },
    ]);
  });

  it('stays, with the id of the call, when the call itself was removed for its age', async () => {
    const org = await api.addOrganization();
    await putPolicy(api, org, 'approved_models', { models: ['x'] });
    await ingest(api, [anEvent()], org.ingestKey);
    await api.database.superuser.query('delete from events where org_id = $1', [org.orgId]);
    const [alert] = (await api.get(PATH, org.adminKey)).body.alerts;
    expect(alert.event_id).toMatch(/^evt_/);
    expect((await api.get(`/api/v1/events/${alert.event_id}`, org.adminKey)).status).toBe(404);
    expect((await acknowledge(alert.id, org.adminKey)).body.status).toBe('acknowledged');
  });

  it('is answered by the alert that counts, where two events turned out to be one call', async () => {
    const org = await api.addOrganization();
    const [standing, between] = [randomUUID(), randomUUID()];
    const [, first = '', second = ''] = await storeAlerts(api, org.orgId, [
      { id: standing },
      { id: between, mergedInto: standing },
      { mergedInto: between },
    ]);
    const [shown] = await list(org);
    expect(await list(org)).toHaveLength(1);
    for (const id of [first, second]) {
      expect((await api.get(`${PATH}/${id}`, org.adminKey)).body.id).toBe(shown);
    }
    expect((await acknowledge(second, org.adminKey)).body).toMatchObject({
      id: shown,
      status: 'acknowledged',
    });
    expect(await list(org, 'status=open')).toEqual([]);
    await api.database.superuser.query('delete from alerts where id = $1', [standing]);
    expect((await api.get(`${PATH}/${first}`, org.adminKey)).status).toBe(404);
  });
});

describe(`the feed (TEST_SEED=${SEED})`, () => {
  const typeOf = fc.constantFrom(...POLICY_TYPES, null);
  const MODELS = ['gpt-4o', 'gpt-4o-mini', 'a model'];
  const alertOf = fc.record({
    policyType: typeOf,
    severity: fc.constantFrom(...SEVERITIES),
    status: fc.constantFrom(...ALERT_STATUSES),
    model: fc.constantFrom(...MODELS),
    projectId: fc.constantFrom('p', 'q', null),
    micros: fc.integer({ min: 0, max: 5 }),
  });
  const filterOf = fc.record(
    {
      kind: fc.constantFrom('policy', 'notice'),
      policy_type: fc.constantFrom(...POLICY_TYPES),
      severity: fc.constantFrom(...SEVERITIES),
      status: fc.constantFrom(...ALERT_STATUSES),
      model: fc.constantFrom(...MODELS, 'of no alert'),
      since: fc.integer({ min: 0, max: 2 }).map(at),
      until: fc.integer({ min: 2, max: 5 }).map(at),
    },
    { requiredKeys: [] },
  );

  it('has what every filter lets through, newest first, in pages of any size; a workspace’s key its project’s alone', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(alertOf, { maxLength: 12 }),
        filterOf,
        fc.integer({ min: 1, max: 4 }),
        fc.boolean(),
        async (drawn, filter, limit, isOfProject) => {
          const org = await api.addOrganization();
          const alerts = drawn.map(({ micros, ...alert }) => ({
            ...alert,
            createdAt: at(micros),
            projectId: alert.policyType === null ? null : alert.projectId,
          }));
          const ids = await storeAlerts(api, org.orgId, alerts);
          const key = isOfProject
            ? await api.addKey(org.orgId, 'member', { workspaceId: await api.addWorkspace(org.orgId, 'p') })
            : org.adminKey;
          const expected = alerts
            .map((alert, index) => ({ ...alert, id: ids[index] as string }))
            .filter((alert) => isLetThrough(alert, filter) && (!isOfProject || alert.projectId === 'p'))
            .sort((a, b) =>
              a.createdAt === b.createdAt ? order(b.id, a.id) : order(b.createdAt, a.createdAt),
            )
            .map(({ id }) => id);
          const query = new URLSearchParams({ ...filter, limit: String(limit) });
          expect(await walk(key, query)).toEqual(expected);
          const byOffset = await api.get(`${PATH}?${query}&offset=2`, key);
          expect(idsOf(byOffset.body)).toEqual(expected.slice(2, 2 + limit));
        },
      ),
      { seed: SEED, numRuns: RUNS },
    );
  });

  it('shows each alert that was there when a walk began once, whatever comes in meanwhile at the same times', async () => {
    const times = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(times, fc.array(times, { maxLength: 4 }), async (first, later) => {
        const org = await api.addOrganization();
        const store = (micros: readonly number[]) =>
          storeAlerts(
            api,
            org.orgId,
            micros.map((one) => ({ createdAt: at(one) })),
          );
        const there = await store(first);
        const waiting = [...later];
        const seen = await walk(org.adminKey, new URLSearchParams({ limit: '2' }), async () => {
          const next = waiting.shift();
          if (next) await store(next);
        });
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen.filter((id) => there.includes(id)).sort()).toEqual([...there].sort());
        const positions = await list(org, 'limit=1000');
        expect(seen).toEqual(positions.filter((id) => seen.includes(id)));
      }),
      { seed: SEED, numRuns: RUNS },
    );
  });

  it('has both bounds in it; a date is the whole day', async () => {
    const org = await api.addOrganization();
    const days = ['2026-03-09T23:59:59.999999Z', '2026-03-10T00:00:00Z', '2026-03-10T23:59:59.999999Z'];
    const ids = await storeAlerts(
      api,
      org.orgId,
      days.map((createdAt) => ({ createdAt })),
    );
    expect(await list(org, `since=${days[1]}&until=${days[2]}`)).toEqual([ids[2], ids[1]]);
    expect(await list(org, 'since=2026-03-10&until=2026-03-10')).toEqual([ids[2], ids[1]]);
    expect(await list(org, `since=${days[0]}&until=${days[0]}`)).toEqual([ids[0]]);
    const answer = await api.get(`${PATH}?since=2026-03-11&until=2026-03-10`, org.adminKey);
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_range']);
  });

  it('refuses values that no alert can have, naming the field and the allowed values; any text may be a model', async () => {
    const wrong = {
      kind: 'alert',
      policy_type: 'no_such_policy',
      severity: 'critical',
      status: 'closed',
      since: 'yesterday',
      limit: '0',
      offset: '-1',
      cursor: 'x',
    };
    const all = await api.get(`${PATH}?${new URLSearchParams({ ...wrong, cursor: 'x'.repeat(2_000) })}`);
    expect(all.status).toBe(400);
    expect(all.body.errors.map(({ field }: { field: string }) => field).sort()).toEqual(
      Object.keys(wrong).sort(),
    );
    for (const [field, word] of Object.entries(wrong)) {
      const { status, body } = await api.get(`${PATH}?${field}=${word}`);
      expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_parameter', field]);
    }
    const { body } = await api.get(`${PATH}?severity=critical`);
    expect(body.errors[0].message).toBe('must be low, medium or high');
    expect((await api.get(`${PATH}?model=of%20no%20alert`)).body.alerts).toEqual([]);
    expect((await api.get(`${PATH}?kind=notice&policy_type=approved_models`)).body.alerts).toEqual([]);
  });
});

describe('acknowledging', () => {
  const logOf = async (org: TestOrganization) =>
    (await api.get('/api/v1/audit-log?action=alert.acknowledged', org.adminKey)).body.records;

  it('records who was the first; a repeat by any caller changes nothing and is not in the log', async () => {
    const org = await api.addOrganization();
    const [id = ''] = await storeAlerts(api, org.orgId, [{}]);
    const member = await api.addKey(org.orgId, 'member');
    const first = await acknowledge(id, member);
    expect(first.body).toMatchObject({
      status: 'acknowledged',
      acknowledged_by: `key_${member.split('_')[2]}`,
    });
    const repeats = [await acknowledge(id, org.adminKey), await acknowledge(id, member)];
    expect(repeats.map(({ status, body }) => [status, body])).toEqual([
      [200, first.body],
      [200, first.body],
    ]);
    expect((await api.get(`${PATH}/${id}`, org.adminKey)).body).toEqual(first.body);
    expect(await logOf(org)).toMatchObject([{ subject: { type: 'alert', id } }]);
  });

  it('has one first of many at once', async () => {
    const org = await api.addOrganization();
    const [id = ''] = await storeAlerts(api, org.orgId, [{}]);
    const keys = await Promise.all(Array.from({ length: 6 }, () => api.addKey(org.orgId, 'member')));
    const answers = await Promise.all(keys.map((key) => acknowledge(id, key)));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.acknowledged_by}`)).size).toBe(1);
    expect(await logOf(org)).toHaveLength(1);
  });

  it('is for notices too, and needs alerts:write: an auditor and a key of a workspace may only read', async () => {
    const org = await api.addOrganization();
    const [notice = '', alert = '', others = ''] = await storeAlerts(api, org.orgId, [
      { policyType: null },
      { projectId: 'p' },
      { projectId: 'q' },
    ]);
    const auditor = await api.addKey(org.orgId, 'auditor');
    const workspaceId = await api.addWorkspace(org.orgId, 'p');
    const ofProject = await api.addKey(org.orgId, 'member', { workspaceId });
    for (const key of [auditor, ofProject]) expect((await acknowledge(alert, key)).status).toBe(403);
    expect((await api.get(`${PATH}/${alert}`, ofProject)).status).toBe(200);
    for (const id of [notice, others]) expect((await api.get(`${PATH}/${id}`, ofProject)).status).toBe(404);
    expect((await acknowledge(notice, org.adminKey)).body).toMatchObject({
      kind: 'notice',
      policy_type: null,
      policy_id: null,
      event_id: null,
      event_timestamp: null,
      model: null,
      cost_usd: null,
      status: 'acknowledged',
    });
  });

  it('of a malformed id, or of another organization, is 404', async () => {
    const [org, other] = [await api.addOrganization(), await api.addOrganization()];
    const [id = ''] = await storeAlerts(api, other.orgId, [{}]);
    for (const one of [id, `alr_${'0'.repeat(32)}`, 'alr_1', `evt_${'0'.repeat(32)}`]) {
      const answer = await acknowledge(one, org.adminKey);
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
      expect((await api.get(`${PATH}/${one}`, org.adminKey)).status).toBe(404);
    }
  });
});

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The rule of the filters, as in the documents. */
function isLetThrough(
  alert: AlertToStore & { createdAt: string },
  filter: Partial<Record<string, string>>,
): boolean {
  const isNotice = alert.policyType === null;
  const shown: Record<string, string | null | undefined> = {
    kind: isNotice ? 'notice' : 'policy',
    policy_type: alert.policyType,
    severity: alert.severity,
    status: alert.status,
    model: isNotice ? null : alert.model,
  };
  return (
    Object.entries(shown).every(([name, value]) => filter[name] === undefined || filter[name] === value) &&
    (filter.since === undefined || alert.createdAt >= filter.since) &&
    (filter.until === undefined || alert.createdAt <= filter.until)
  );
}

/** The ids of all pages, by their cursors; `between` happens after each page. */
async function walk(
  key: string,
  query: URLSearchParams,
  between: () => Promise<void> = async () => undefined,
): Promise<string[]> {
  const seen: string[] = [];
  for (let cursor: string | null = null; ; ) {
    const at = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await api.get(`${PATH}?${query}${at}`, key);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body.count).toBe(body.alerts.length);
    expect(body.has_more).toBe(body.next_cursor !== null);
    seen.push(...idsOf(body));
    cursor = body.next_cursor;
    if (cursor === null) return seen;
    await between();
  }
}
