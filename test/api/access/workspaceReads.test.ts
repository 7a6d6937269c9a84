import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { OrgDb } from '../../../db/orgDb.js';
import { recordNotice } from '../../../db/policies/alerts.js';
import { putPolicy } from '../../../db/policies/policies.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { isLongRun } from '../../support/propertyRuns.js';
import { anAttribute, anEvent, aSpan, aTime, aTrace, ingest } from '../support/requests.js';

/**
 * A workspace key gets the answers of an organization that has only the workspace's calls. Each question is therefore
 * asked twice: in an organization with much other data, and in one with only these calls.
 */

const PROJECT = 'project-a';
const OTHERS = 'project-b';
const DAY_S = 86_400;
/**
 * In a closed month. The times differ, because calls of equal times are sorted by id, and ids differ between the two
 * homes.
 */
const OLD = `${aTime(70 * DAY_S).slice(0, 10)}T12:00:00.000Z`;

interface Home {
  orgId: string;
  adminKey: string;
  /** A key of the workspace. */
  key: string;
}

let api: TestApi;
/** Has other projects, and calls of none. */
let shared: Home & { othersKey: string };
/** Has no other data. */
let lone: Home;

beforeAll(async () => {
  api = await startTestApi();
  const keyOf = async (orgId: string, projectId: string) =>
    api.addKey(orgId, 'member', { workspaceId: await api.addWorkspace(orgId, projectId) });
  const [one, two] = [await api.addOrganization(), await api.addOrganization()];
  shared = { ...one, key: await keyOf(one.orgId, PROJECT), othersKey: await keyOf(one.orgId, OTHERS) };
  lone = { ...two, key: await keyOf(two.orgId, PROJECT) };
  // No model is approved, so that every call has an alert; and each organization has a notice, which belongs to no call.
  for (const { orgDb } of [one, two]) {
    const none = {
      type: 'approved_models',
      config: { models: ['none'] },
      enabled: true,
      skipped: [],
    } as const;
    await putPolicy(orgDb, none, 'test');
    await recordNotice(orgDb, {
      code: 'connection_broken',
      key: 'nobody-key',
      subject: { type: 'connection', id: 'nobody-connection' },
      severity: 'high',
      message: 'nobody-message',
      details: {},
      provider: 'openai',
    });
  }
  const times = aStory();
  await tell(shared.othersKey, 'b', times.map(later));
  await tell(await api.addKey(shared.orgId, 'member'), 'nobody', times.map(later));
  for (const home of [shared, lone]) await tell(home.key, 'a', times);
  for (const home of [shared, lone]) {
    const closed = await api.post(`/api/v1/periods/${OLD.slice(0, 7)}/close`, {}, home.adminKey);
    expect(closed.status).toBe(200);
  }
  await ingest(api, [late('b', 7)], shared.othersKey);
  for (const home of [shared, lone]) await ingest(api, [late('a', 1)], home.key);
}, 300_000);
afterAll(() => api.close());

/** Times of calls, the same for every reporter. */
function aStory(): string[] {
  return [0, 1, 2, 3, 4].map((index) => aTime(index * 1_000 + 1)).concat(OLD);
}

const later = (time: string) => new Date(Date.parse(time) + 250).toISOString();

/** Sends calls of every kind with `who` in every text; `times` are those of the plain ones. */
async function tell(key: string, who: string, times: readonly string[]): Promise<void> {
  const call = (timestamp: string, index: number) =>
    anEvent({
      timestamp,
      request_id: `${who}-${index}`,
      team_id: `${who}-team-${index % 2}`,
      feature: `${who}-feature`,
      session_id: `${who}-session-${index % 3}`,
      user_id: `${who}-user`,
      model: index === 1 ? `${who}-model` : 'gpt-4o',
      input_tokens: 100 * (index + 1) + who.length,
      payload: { prompt: `${who}-prompt` },
      tool_input: { asked: `${who}-prompt` },
      batch_id: `${who}-batch`,
      provider_account_id: `${who}-account`,
    });
  await ingest(api, times.map(call), key);
  const refused = anEvent({ timestamp: times[0], cost_usd: -1, _service: { name: `${who}-service` } });
  await api.post('/api/v1/ingest/events', { events: [refused] }, key);
  const traces = await api.post('/api/v1/ingest/trace', reportedTwice(who, times[0] as string), key);
  expect(traces.body).toMatchObject({ accepted: 13 });
}

/** Six calls of a service that two scopes report, without an id that would prove it, and one with an outer span. */
function reportedTwice(who: string, time: string) {
  const start = BigInt(Date.parse(time) - 3_600_000) * 1_000_000n;
  const scopes = [0n, 1_000_000n].map((offset) => ({
    scope: { name: `${who}-scope-${offset}` },
    spans: Array.from({ length: 6 }, (_, index) => {
      const at = start + BigInt(index) * 60_000_000_000n + offset;
      const id = `${who}${index}${offset}`;
      return aSpan(
        { 'gen_ai.conversation.id': `${who}-traced` },
        {
          traceId: hex(id, 32),
          spanId: hex(id, 16),
          startTimeUnixNano: `${at}`,
          endTimeUnixNano: `${at + 1_000n}`,
        },
      );
    }),
  }));
  const nested = aTrace(
    aSpan(
      { 'gen_ai.response.id': `${who}-response`, 'gen_ai.conversation.id': `${who}-outer` },
      { ...traced(who, start), spanId: hex(`${who}o`, 16), name: 'outer' },
    ),
  ).resourceSpans;
  const resource = { attributes: [anAttribute('service.name', `${who}-twice`)] };
  return { resourceSpans: [{ resource, scopeSpans: scopes }, ...nested] };
}

const hex = (text: string, chars: number) =>
  Buffer.from(text).toString('hex').padStart(chars, '1').slice(-chars);
const traced = (who: string, start: bigint) => ({
  traceId: hex(`${who}t`, 32),
  startTimeUnixNano: `${start - 7_000_000_000n}`,
  endTimeUnixNano: `${start - 5_000_000_000n}`,
});

/** A call of the closed month that came after its closing. */
const late = (who: string, calls: number) =>
  anEvent({
    timestamp: OLD.replace(/\d\dZ$/, `${calls}1Z`),
    request_id: `${who}-late`,
    team_id: `${who}-late`,
    session_id: `${who}-late`,
    user_id: `${who}-late`,
    input_tokens: 10_000 * calls,
  });

const GROUPS = ['model', 'session', 'project', 'user', 'provider', 'team', 'feature'];
/** Without `api_key_hash`, which depends on the key of the call. */
const CHARGED_BY = ['provider', 'model', 'team_id', 'feature', 'project_id', 'user_id', 'api_key_id'];
const DIMENSIONS = ['model', 'provider', 'team', 'feature', 'session', 'day'];
const WIDE = `${aTime(100 * DAY_S).slice(0, 10)}`;
const VIEWS = ['', `&as_of=${aTime(0).slice(0, 10)}`, `&as_of=2999-01-01`];
/** Filters by values of another project, or of none. */
const FOREIGN = [
  `project_id=${OTHERS}`,
  `project_id=${PROJECT}`,
  'team_id=b-team-1',
  'team_id=a-team-1',
  'feature=nobody-feature',
];

const each = (path: string, queries: readonly string[]) => queries.map((query) => `${path}?${query}`);
const product = (...sets: readonly (readonly string[])[]): string[] =>
  sets.reduce<string[]>((all, set) => all.flatMap((one) => set.map((other) => one + other)), ['']);

/** The request of each operation that answers a workspace's key with its own data; ids are those of its events. */
const QUESTIONS: Record<string, readonly string[]> = {
  listEvents: each('/api/v1/events', [
    '',
    'include_payload=true',
    'include_superseded=true&include_payload=true',
    'limit=2',
    'limit=2&offset=3',
    `since=${WIDE}`,
    ...FOREIGN,
    'session_id=b-session-1',
    'model=b-model',
    'model=a-model',
  ]),
  exportEvents: each(
    '/api/v1/events/export',
    product([`start=${WIDE}&end=${aTime(0).slice(0, 10)}`], ['', '&format=json', '&include_payload=true']),
  ),
  getEvent: ['/api/v1/events/{id}', '/api/v1/events/{id}?include_payload=true'],
  getEventCost: ['/api/v1/events/{id}/cost'],
  getUsageSummary: each(
    '/api/v1/usage/summary',
    product(
      GROUPS.map((group) => `group_by=${group}`),
      ['', `&from=${WIDE}`, `&from=${OLD.slice(0, 7)}-01&to=${OLD.slice(0, 10)}`, `&project_id=${OTHERS}`],
      VIEWS,
    ),
  ),
  getChargeback: each(
    '/api/v1/reports/chargeback',
    product(
      CHARGED_BY.map((dimension) => `dimension=${dimension}`),
      ['&period=90d', '&format=csv&period=90d', '&period=7d&allocation=none'],
    ),
  ),
  listUsageRecords: each(
    '/api/v1/usage/records',
    product(
      ['limit=3', 'limit=3&offset=1', ...GROUPS.map((group) => `group_by=${group}`)],
      ['', ...FOREIGN.map((one) => `&${one}`)],
    ),
  ),
  getDashboardBreakdown: DIMENSIONS.flatMap((dimension) =>
    each(
      `/api/v1/dashboard/breakdown/${dimension}`,
      product(['', ...FOREIGN.slice(0, 4)], [`&since=${WIDE}`], dimension === 'session' ? [''] : VIEWS),
    ),
  ),
  getIngestHealth: ['/api/v1/ingest/health'],
  listAlerts: each('/api/v1/alerts', [
    '',
    'limit=2',
    'limit=2&offset=1',
    `since=${WIDE}`,
    'kind=policy',
    'kind=notice',
    'policy_type=approved_models&status=open',
    'severity=medium&model=gpt-4o',
    'model=a-model',
    'model=b-model',
  ]),
  getAlert: ['/api/v1/alerts/{alert}'],
  listUnpricedModels: each('/api/v1/pricing/unpriced', ['', `since=${WIDE}`]),
};

/** An answer without the parts that differ between two organizations: ids of keys and events, and times. */
function comparable(text: string): string {
  return text
    .replace(/(evt|alr|org)_[0-9a-f]{32}/g, '$1')
    .replace(/key_[0-9A-Za-z]{10}/g, 'key')
    .replace(/("api_key_hash":)"[0-9a-f]{16}"/g, '$1"hash"')
    .replace(/("(?:ingested_at|created_at|from|to|as_of|since|until)":)"[^"]*"/g, '$1"time"')
    .replace(/("(?:instance|request_id)":)"(?:urn:request:)?[0-9a-f-]{36}"/g, '$1"request"')
    .replace(/("next_cursor":)"[^"]*"/g, '$1"cursor"')
    .replace(/cursor=[\w-]+/g, 'cursor=cursor');
}

async function ask(
  path: string,
  key: string,
): Promise<{ status: number; text: string; link: string | null }> {
  const response = await fetch(api.baseUrl + path, { headers: { authorization: `Bearer ${key}` } });
  const link = response.headers.get('link');
  return { status: response.status, text: await response.text(), link };
}

/** Every event of a workspace, superseded ones too, newest first. */
async function idsOf(key: string): Promise<string[]> {
  const { body } = await api.get('/api/v1/events?limit=1000&include_superseded=true', key);
  return body.events.map((event: { id: string }) => event.id);
}

/** A question with the ids of a home's own events or alerts, in their order. */
async function pathsOf(question: string, home: Home): Promise<string[]> {
  if (question.includes('{alert}')) {
    const { body } = await api.get('/api/v1/alerts?limit=1000', home.key);
    return body.alerts.map(({ id }: { id: string }) => question.replace('{alert}', id));
  }
  return question.includes('{id}')
    ? (await idsOf(home.key)).map((id) => question.replace('{id}', id))
    : [question];
}

const OWN_READS = ENDPOINTS.filter(
  ({ access, method }) => method === 'get' && 'workspace' in access && access.workspace === 'own',
);

/**
 * Only one in so many questions is asked; the number is coprime to those of groups, windows and filters, so that each
 * of them occurs.
 */
const SOME_OF = isLongRun() ? 1 : 7;
const someOf = (questions: readonly string[], pass: number): readonly string[] =>
  questions.length <= SOME_OF
    ? questions
    : questions.filter((_, index) => index === 0 || index % SOME_OF === pass % SOME_OF);

type Answer = Awaited<ReturnType<typeof ask>>;
/** Cached answers of the lone home, valid until its calls change. */
const aloneAnswers = new Map<string, Promise<Answer>>();

function askAlone(path: string): Promise<Answer> {
  const answer = aloneAnswers.get(path) ?? ask(path, lone.key);
  aloneAnswers.set(path, answer);
  return answer;
}

/** Differences between an operation's answers in the two homes, and the number of answers. */
async function compareHomes(
  operation: string,
  questions = QUESTIONS[operation] as readonly string[],
): Promise<{ answers: number; wrong: [number, string][] }> {
  const wrong: [number, string][] = [];
  let answers = 0;
  for (const question of questions) {
    const [paths, pathsAlone] = [await pathsOf(question, shared), await pathsOf(question, lone)];
    for (const [index, path] of paths.entries()) {
      const pathAlone = pathsAlone[index] ?? 'none';
      const [inShared, alone] = await Promise.all([ask(path, shared.key), askAlone(pathAlone)]);
      const isSame =
        inShared.status === alone.status &&
        comparable(inShared.text) === comparable(alone.text) &&
        comparable(inShared.link ?? '') === comparable(alone.link ?? '');
      if (!isSame || /\b(?:b|nobody)-[a-z]/.test(inShared.text)) wrong.push([inShared.status, path]);
      // Nothing seen is no proof unless there is something to see.
      else if (inShared.status === 200 && /"a-|gpt-4o/.test(inShared.text)) answers += 1;
    }
  }
  return { answers, wrong };
}

let isFolded = false;
/** Adds up the calls of both homes. */
async function foldOnce(): Promise<void> {
  if (isFolded) return;
  for (const { orgId } of [shared, lone])
    await foldAll(api.database.superuser, new OrgDb(api.database.database, orgId));
  aloneAnswers.clear();
  isFolded = true;
}

/** `compareHomes` for some of the questions. */
async function compareSome(operation: string, pass: number): Promise<[number, string][]> {
  const questions = someOf(QUESTIONS[operation] as readonly string[], pass);
  return (await compareHomes(operation, questions)).wrong;
}

/** Tables of which the role of workspaces may read something. */
async function readableTables(): Promise<string[]> {
  const { rows } = await api.database.superuser.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and has_table_privilege('app_workspace', oid, 'SELECT') order by 1`,
  );
  return rows.map(({ name }) => name);
}

async function setRowSecurity(state: 'enable' | 'disable', tables: readonly string[]): Promise<void> {
  for (const table of tables)
    await api.database.superuser.query(`alter table ${table} ${state} row level security`);
}

const withoutPredicates = () => vi.spyOn(OrgDb.prototype, 'projectId', 'get').mockReturnValue(undefined);

describe('a key of a workspace', () => {
  it('has questions for every operation that answers it with its own', () => {
    expect(Object.keys(QUESTIONS).sort()).toEqual(OWN_READS.map(({ operationId }) => operationId).sort());
  });

  describe('is answered as if its organization had nothing else', () => {
    it.each(Object.keys(QUESTIONS))('%s', async (operation) => {
      const { answers, wrong } = await compareHomes(operation);
      expect(wrong).toEqual([]);
      expect(answers).toBeGreaterThan(0);
    });

    it.each(Object.keys(QUESTIONS))('%s, also when its calls are in the totals', async (operation) => {
      await foldOnce();
      expect((await compareHomes(operation)).wrong).toEqual([]);
    });
  });

  describe('sees nothing else', () => {
    let tables: string[];

    beforeAll(async () => {
      tables = await readableTables();
    });
    afterEach(async () => {
      vi.restoreAllMocks();
      await setRowSecurity('enable', tables);
    });

    it.each(Object.keys(QUESTIONS))(
      'without row-level security, by the predicates of %s',
      async (operation) => {
        await setRowSecurity('disable', tables);
        expect(await compareSome(operation, 1)).toEqual([]);
      },
    );

    it.each(Object.keys(QUESTIONS))(
      'without the predicates of %s, by row-level security: it answers the same, or fails',
      async (operation) => {
        withoutPredicates();
        const wrong = await compareSome(operation, 2);
        expect(wrong.filter(([status]) => status !== 500)).toEqual([]);
      },
    );
  });

  it('finds no event of another project: the answer is that to an unknown id', async () => {
    const others = await idsOf(shared.othersKey);
    const all = await idsOf(shared.adminKey);
    const own = new Set(await idsOf(shared.key));
    expect(others.length).toBeGreaterThan(10);
    expect(all.length).toBeGreaterThan(own.size + others.length);
    const unknown = `evt_${'0123456789abcdef'.repeat(2)}`;
    for (const path of [
      '/api/v1/events/{id}',
      '/api/v1/events/{id}?include_payload=true',
      '/api/v1/events/{id}/cost',
    ]) {
      const expected = await ask(path.replace('{id}', unknown), shared.key);
      expect(expected.status).toBe(404);
      for (const id of all.filter((one) => !own.has(one))) {
        const { status, text } = await ask(path.replace('{id}', id), shared.key);
        expect([status, comparable(text)]).toEqual([404, comparable(expected.text)]);
      }
    }
  });

  it('pages by another key’s cursor through its own events alone', async () => {
    const own = new Set(await idsOf(shared.key));
    for (const path of ['/api/v1/events?limit=2', '/api/v1/usage/records?limit=2']) {
      for (const other of [shared.othersKey, shared.adminKey]) {
        let cursor = (await api.get(path, other)).body.next_cursor as string | null;
        const seen: string[] = [];
        while (cursor !== null) {
          const { body } = await api.get(`${path}&cursor=${cursor}`, shared.key);
          seen.push(...(body.events ?? body.records).map((event: { id: string }) => event.id));
          cursor = body.next_cursor;
        }
        expect(seen.length).toBeGreaterThan(0);
        expect(seen.filter((id) => !own.has(id))).toEqual([]);
      }
    }
  });

  it('sums to what the organization’s key sums for its project, in every view', async () => {
    for (const view of VIEWS)
      for (const group of GROUPS) {
        const query = `/api/v1/usage/summary?group_by=${group}&from=${WIDE}${view}`;
        const [own, filtered] = [
          await ask(query, shared.key),
          await ask(`${query}&project_id=${PROJECT}`, shared.adminKey),
        ];
        expect(own.status, query).toBe(view === VIEWS[1] ? 400 : 200);
        expect(comparable(own.text)).toBe(comparable(filtered.text));
      }
  });

  // Last, since it leaves the database open.
  it('is kept to its project by these two alone: with both removed every list and sum shows other projects', {
    timeout: 300_000,
  }, async () => {
    withoutPredicates();
    await api.database.superuser.query('grant select on all tables in schema public to app_workspace');
    await setRowSecurity('disable', await readableTables());
    for (const operation of Object.keys(QUESTIONS).filter((name) => !/^get(Event|Alert)/.test(name)))
      expect(
        (await compareSome(operation, 3)).map(([status]) => status),
        operation,
      ).toContain(200);
  });
});
