import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { encodeLogsMessage, encodeTraceMessage } from '../support/otlpMessage.js';
import {
  aLiteLlmPayload,
  aLog,
  anEvent,
  aSpan,
  aTime,
  aTrace,
  ingest,
  type RawRequest,
  send,
} from '../support/requests.js';

let api: TestApi;
let org: TestOrganization;
let workspaceId: string;
/**
 * A member key and an ingest key of the workspace with the project `mine`, and an ingest key of the one with `theirs`.
 */
let member: string;
let sender: string;
let others: string;

beforeAll(async () => {
  api = await startTestApi();
  org = await api.addOrganization();
  workspaceId = await api.addWorkspace(org.orgId, 'mine');
  member = await api.addKey(org.orgId, 'member', { workspaceId });
  sender = await api.addKey(org.orgId, 'ingest', { workspaceId });
  others = await api.addKey(org.orgId, 'member', {
    workspaceId: await api.addWorkspace(org.orgId, 'theirs'),
  });
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };

type WayIn = (path: string, session: string, project: string | undefined) => RawRequest;

const asJson = (path: string, body: object): RawRequest => ({
  path,
  body: JSON.stringify(body),
  headers: JSON_TYPE,
});
const spansOf = (session: string, project: string | undefined) =>
  aTrace(aSpan({ 'session.id': session, ...(project === undefined ? {} : { project_id: project }) }));
const logsOf = (session: string, project: string | undefined) =>
  aLog({ 'session.id': session, ...(project === undefined ? {} : { project_id: project }) });
const asTrace: WayIn = (path, session, project) => asJson(path, spansOf(session, project));
const asProtobuf: WayIn = (path, session, project) => ({
  path,
  body: encodeTraceMessage(spansOf(session, project)),
  headers: { 'content-type': 'application/x-protobuf' },
});

/** Every way in, by the operation: a call of a session that names a project, or none. */
const WAYS_IN: Record<string, readonly WayIn[]> = {
  ingestTrace: [asTrace, asProtobuf],
  ingestTraceStandardPath: [asTrace, asProtobuf],
  ingestTraceLangfusePath: [asTrace, asProtobuf],
  ingestLangfuse: [
    (path, session, project) =>
      asJson(path, {
        batch: [
          {
            id: randomUUID(),
            type: 'generation-create',
            timestamp: aTime(),
            body: {
              id: randomUUID(),
              model: 'gpt-4o',
              startTime: aTime(),
              metadata: { session_id: session, ...(project ? { project_id: project } : {}) },
            },
          },
        ],
      }),
  ],
  ingestLitellm: [
    (path, session, project) =>
      asJson(path, [
        aLiteLlmPayload({
          metadata: {
            requester_metadata: { session_id: session, ...(project ? { project_id: project } : {}) },
          },
        }),
      ]),
  ],
  ingestLogs: [
    (path, session, project) => asJson(path, logsOf(session, project)),
    (path, session, project) => ({
      path,
      body: encodeLogsMessage(logsOf(session, project)),
      headers: { 'content-type': 'application/x-protobuf' },
    }),
  ],
  ingestObservability: [
    (path, session, project) =>
      asJson(path, {
        type: 'observation-create',
        body: {
          id: randomUUID(),
          type: 'GENERATION',
          model: 'gpt-4o',
          startTime: aTime(),
          usage: { input: 10, output: 5 },
          metadata: { provider: 'openai', session_id: session, ...(project ? { project_id: project } : {}) },
        },
      }),
  ],
  ingestEvents: [
    (path, session, project) =>
      asJson(path, {
        events: [anEvent({ session_id: session, ...(project ? { project_id: project } : {}) })],
      }),
  ],
};

/** Metrics never become events. */
const INGEST = ENDPOINTS.filter(
  ({ access, method, operationId }) =>
    method === 'post' && 'scope' in access && access.scope === 'ingest' && operationId !== 'ingestMetrics',
);

async function projectsOf(session: string): Promise<(string | null)[]> {
  const { body } = await api.get(`/api/v1/events?session_id=${session}`, org.adminKey);
  return body.events.map((event: { project_id: string | null }) => event.project_id);
}

describe('ingest with a key of a workspace', () => {
  it('has a request for every way in', () => {
    expect(Object.keys(WAYS_IN).sort()).toEqual(INGEST.map(({ operationId }) => operationId).sort());
  });

  describe.each(INGEST.map((endpoint) => [endpoint.operationId, endpoint.path] as const))(
    '%s',
    (operation, path) => {
      const ways = WAYS_IN[operation] as readonly WayIn[];

      it('gets the workspace’s project where it names none, and keeps the one that it names', async () => {
        for (const way of ways)
          for (const [key, project, expected] of [
            [sender, undefined, 'mine'],
            [member, undefined, 'mine'],
            [sender, 'of-its-own', 'of-its-own'],
            [org.ingestKey, undefined, null],
          ] as const) {
            const session = randomUUID();
            const answer = await send(api, { ...way(path, session, project), key });
            expect([200, 202, 207], String(answer.bytes)).toContain(answer.status);
            expect(await projectsOf(session)).toEqual([expected]);
          }
      });

      it('is refused without the scope to ingest, and nothing of it is stored', async () => {
        const auditor = await api.addKey(org.orgId, 'auditor', { workspaceId });
        const narrowed = await api.addKey(org.orgId, 'member', { workspaceId, scopes: ['events:read'] });
        for (const way of ways)
          for (const key of [auditor, narrowed]) {
            const session = randomUUID();
            const answer = await send(api, { ...way(path, session, undefined), key });
            expect(answer.status).toBe(403);
            expect(answer.body.detail).toBe('the key lacks the scope ingest');
            expect(await projectsOf(session)).toEqual([]);
          }
      });
    },
  );

  it('is seen by the keys of its project alone, also where the call names another one', async () => {
    const session = randomUUID();
    await ingest(api, [anEvent({ session_id: session, project_id: 'theirs' })], sender);
    const seenBy = async (key: string) =>
      (await api.get(`/api/v1/events?session_id=${session}`, key)).body.count;
    expect([await seenBy(member), await seenBy(others), await seenBy(org.adminKey)]).toEqual([0, 1, 1]);
  });

  it('that was refused is counted for its workspace alone', async () => {
    const service = `service-${randomUUID()}`;
    const refused = anEvent({ cost_usd: -1, _service: { name: service } });
    for (const key of [sender, others, others, org.ingestKey])
      await api.post('/api/v1/ingest/events', { events: [refused] }, key);
    const countFor = async (key: string) => {
      const { body } = await api.get('/api/v1/ingest/health', key);
      return body.sources.find((source: { service: string }) => source.service === service)?.rejected;
    };
    expect(await countFor(member)).toEqual({ invalid_number: 1 });
    expect(await countFor(others)).toEqual({ invalid_number: 2 });
    expect(await countFor(org.adminKey)).toEqual({ invalid_number: 4 });
  });
});

describe('one call that keys of several workspaces report', () => {
  const report = (responseId: string, session: string, index: number) =>
    anEvent({
      request_id: responseId,
      response_id: responseId,
      session_id: session,
      timestamp: aTime(index),
      payload: session,
    });

  const listOf = async (key: string, query: string) =>
    (await api.get(`/api/v1/events?include_superseded=true&include_payload=true&${query}`, key)).body.events;

  it('counts once, in one project, and each key sees its own project’s report alone', async () => {
    const response = `resp_${randomUUID()}`;
    const [mine, theirs] = [`mine-${randomUUID()}`, `theirs-${randomUUID()}`];
    await ingest(api, [report(response, mine, 1)], member);
    await ingest(api, [report(response, theirs, 2)], others);
    const all = await listOf(org.adminKey, 'limit=1000');
    const told = all.filter((event: { request_id: string }) => event.request_id === response);
    expect(told.length).toBe(2);
    expect(
      told.filter((event: { superseded_by: string | null }) => event.superseded_by === null).length,
    ).toBe(1);
    for (const [key, project] of [
      [member, 'mine'],
      [others, 'theirs'],
    ] as const) {
      const seen = (await listOf(key, 'limit=1000')).filter(
        (event: { request_id: string }) => event.request_id === response,
      );
      const expected = told.filter((event: { project_id: string }) => event.project_id === project);
      expect(seen).toEqual(expected);
    }
  });

  it.each([
    ['first', 0],
    ['last', 1],
  ])('has the project of the only workspace among them, whose key reported it %s', async (_, place) => {
    for (const isOneBatch of [false, true]) {
      const response = `resp_${randomUUID()}`;
      const send = (key: string, index: number) =>
        ingest(api, [report(response, `${index}-${response}`, index)], key);
      const keys = place === 0 ? [member, org.ingestKey] : [org.ingestKey, member];
      if (isOneBatch) await Promise.all(keys.map(send));
      else for (const [index, key] of keys.entries()) await send(key, index);
      const live = (await api.get('/api/v1/events?limit=1000', org.adminKey)).body.events.filter(
        (event: { request_id: string }) => event.request_id === response,
      );
      expect(live.map((event: { project_id: string | null }) => event.project_id)).toEqual(['mine']);
    }
  });
});
