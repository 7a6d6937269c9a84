import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { SCOPES } from '../../../domain/access/keyRules.js';
import type { TestOrganization } from '../../support/api.js';
import { isLongRun } from '../../support/propertyRuns.js';
import {
  ALL_SCOPES,
  type DeadKey,
  type LiveKey,
  makeDeadKeys,
  makeLiveKeys,
  NarrowedKeys,
  refusalOf,
} from '../support/keyKinds.js';
import {
  addressOf,
  bodyOf,
  type Operation,
  type OperationRequest,
  type OperationsPlace,
} from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';
import { type RawAnswer, send } from '../support/requests.js';

/** The answer to a workspace's key with all scopes where the whole organization is concerned. */
const WORKSPACE_REFUSAL = 'the key is bound to a workspace: use a key of the whole organization';
const UNAUTHENTICATED = {
  type: 'urn:problem:unauthenticated',
  status: 401,
  code: 'unauthenticated',
  message: 'a valid API key is needed: send the header Authorization: Bearer <key>',
};
/** Other addresses of operations, which no document names. */
const ALIASES: Record<string, { body: string; status: number }> = {
  '/api/v1/ingest/trace/v1/traces': { body: '{"resourceSpans":[]}', status: 202 },
  '/api/v1/ingest/logs': { body: '{"resourceLogs":[]}', status: 200 },
  '/api/v1/ingest/v1/logs': { body: '{"resourceLogs":[]}', status: 200 },
  '/api/v1/ingest/metrics': { body: '{"resourceMetrics":[]}', status: 200 },
  '/api/v1/ingest/v1/metrics': { body: '{"resourceMetrics":[]}', status: 200 },
};
/** Routes that are answered without a key and with any key, because they show no organization's data. */
const OPEN_ROUTES: Record<string, number> = {
  '/healthz': 200,
  '/readyz': 200,
  // This server listens on the loopback device only; elsewhere /metrics requires a token.
  '/metrics': 200,
  '/openapi.json': 200,
  '/docs': 200,
  '/docs/boot.js': 200,
  '/docs/swagger-ui.css': 200,
  '/docs/swagger-ui-bundle.js': 200,
  '/nowhere': 404,
  '/api/v1/nowhere': 404,
};

let place: OperationsPlace & { close(): Promise<void> };
let owner: TestOrganization;
let dead: DeadKey[];
let live: LiveKey[];
let narrowed: NarrowedKeys;

beforeAll(async () => {
  place = await startOperationsPlace();
  owner = await place.api.addOrganization();
  dead = await makeDeadKeys(place.api, owner);
  live = await makeLiveKeys(place.api, owner);
  narrowed = new NarrowedKeys(place.api, owner.orgId);
});
afterAll(() => place?.close());

function ask(
  operation: Operation,
  request: OperationRequest,
  header: string | undefined,
): Promise<RawAnswer> {
  const { headers, body } = bodyOf(request);
  return send(place.api, {
    method: operation.method,
    path: addressOf(operation, request),
    key: null,
    headers: { ...headers, ...(header === undefined ? {} : { authorization: header }) },
    ...(body === undefined ? {} : { body }),
  });
}

/** An answer's status and reason, without the values that are new each time. */
function told({ status, body, headers }: RawAnswer): object {
  if (status < 400) return { status };
  const { type, code, message } = body;
  const challenge = headers['www-authenticate'];
  return { type, status, code, message, ...(challenge === undefined ? {} : { challenge }) };
}

const forbidden = (message: string) => ({
  type: 'urn:problem:forbidden',
  status: 403,
  code: 'forbidden',
  message,
});

const NOT_FOUND = {
  type: 'urn:problem:not_found',
  status: 404,
  code: 'not_found',
  message: 'there is no session with this id',
};

/** The exact answer of an operation to a key that is known. */
function expectedOf(operation: Operation, { role, scopes, projectId }: LiveKey): object {
  const { access, alsoNeeds, hiddenWithout, status } = operation;
  if (access === 'public') return { status };
  if (access.role !== undefined && role !== access.role) return forbidden('admin role required');
  if (access.scope !== 'any' && !scopes.includes(access.scope)) return forbidden(refusalOf(access.scope));
  if (projectId !== undefined && access.workspace === 'refused') return forbidden(WORKSPACE_REFUSAL);
  if (alsoNeeds !== undefined && !scopes.includes(alsoNeeds)) return forbidden(refusalOf(alsoNeeds));
  if (hiddenWithout !== undefined && !scopes.includes(hiddenWithout)) return NOT_FOUND;
  return { status };
}

const isSuccess = (expected: object) => Object.keys(expected).length === 1;

/**
 * Requests of an operation: one shared request for reads, for refusals and for a project's keys; else one for each key.
 */
function requestsOf(operation: Operation) {
  const made = new Map<string | undefined, Promise<OperationRequest>>();
  return (willChange: boolean, projectId?: string): Promise<OperationRequest> => {
    if (willChange && operation.method !== 'GET') return operation.request(place, owner, projectId);
    const request = made.get(projectId) ?? operation.request(place, owner, projectId);
    made.set(projectId, request);
    return request;
  };
}

describe('the matrix', () => {
  it('has an entry for every operation of openapi.json, and none for another', async () => {
    const { body } = await send(place.api, { path: '/openapi.json', key: null });
    const documented = Object.entries(body.paths as Record<string, Record<string, { operationId: string }>>);
    const listed = documented.flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { operationId }]) => `${operationId}: ${method.toUpperCase()} ${path}`,
      ),
    );
    const entries = Object.entries(OPERATIONS).map(
      ([name, { method, path }]) => `${name}: ${method} ${path}`,
    );
    expect(entries.sort()).toEqual(listed.sort());
    expect([...ALL_SCOPES].sort()).toEqual([...SCOPES].sort());
    expect(ENDPOINTS.flatMap(({ aliases }) => aliases ?? [])).toEqual(Object.keys(ALIASES));
  });
});

const NAMES = Object.keys(OPERATIONS);

/**
 * Rotates keys that are equivalent for an endpoint over the operations, because trying all for each takes too long; the
 * long run tries all.
 */
const inTurns = <K>(keys: readonly K[], at: number, share: number): readonly K[] =>
  isLongRun() ? keys : keys.filter((_, index) => index % share === at % share);

/** Keys of an administrator that differ in how they came to be. */
const ALIKE = ['a secret within its grace', 'a new secret', 'a key that will expire'];

describe.each(NAMES)('%s', (name) => {
  const operation = OPERATIONS[name] as Operation;
  const { access } = operation;
  const requestFor = requestsOf(operation);
  const at = NAMES.indexOf(name);

  it('answers an unknown caller alike, whatever is wrong with the key', async () => {
    const request = await requestFor(false);
    const [none, ...others] = dead as [DeadKey, ...DeadKey[]];
    for (const { kind, header } of [none, ...inTurns(others, at, 4)]) {
      const expected =
        access === 'public'
          ? { status: operation.status }
          : { ...UNAUTHENTICATED, challenge: 'Bearer realm="api", error="invalid_token"' };
      expect(told(await ask(operation, request, header)), kind).toEqual(expected);
    }
  });

  it('answers each key by its role, its scopes and its workspace', async () => {
    const needed =
      access === 'public' || access.scope === 'any'
        ? []
        : [access.scope, ...(operation.alsoNeeds ? [operation.alsoNeeds] : [])];
    const alike = live.filter(({ kind }) => ALIKE.includes(kind));
    const apart = live.filter(({ kind }) => !ALIKE.includes(kind));
    for (const key of [...apart, ...inTurns(alike, at, ALIKE.length), ...(await narrowed.of(needed))]) {
      const expected = expectedOf(operation, key);
      const request = await requestFor(isSuccess(expected), key.projectId);
      const answer = await ask(operation, request, `Bearer ${key.key}`);
      expect(told(answer), `${key.kind}: ${answer.bytes}`).toEqual(expected);
    }
  });

  it('takes the key as a password where its clients know no other way, and nowhere else', async () => {
    const key = live[0]?.key ?? '';
    const basic = `Basic ${Buffer.from(`anybody:${key}`).toString('base64')}`;
    const isTaken = access === 'public' || access.alsoBasic === true;
    const answer = await ask(operation, await requestFor(isTaken), basic);
    expect(answer.status).toBe(isTaken ? operation.status : 401);
    const wrong = `Basic ${Buffer.from('anybody:sesame').toString('base64')}`;
    expect((await ask(operation, await requestFor(false), wrong)).status).toBe(
      access === 'public' ? operation.status : 401,
    );
  });
});

const OF_WORKSPACE = Object.entries(OPERATIONS).filter(
  ([, { access, ids }]) => access !== 'public' && access.workspace === 'own' && ids,
);

describe.each(OF_WORKSPACE)('%s with a key of a workspace', (_name, operation) => {
  it.each([
    ['of another workspace', 'another-project'],
    ['of no project', undefined],
  ])('answers for the id of a call %s as for one that nothing has', async (_kind, projectId) => {
    const member = live.find(({ kind }) => kind === 'the role member of a workspace');
    const header = `Bearer ${member?.key}`;
    const request = await operation.request(place, owner, projectId);
    const foreign = await ask(operation, request, header);
    const unknown = Object.fromEntries(Object.entries(operation.ids ?? {}).map(([id, draw]) => [id, draw()]));
    const nothing = await ask(operation, { ...request, params: { ...request.params, ...unknown } }, header);
    expect(foreign.status).toBe(404);
    expect(told(foreign)).toEqual(told(nothing));
  });
});

describe('a route that no document lists', () => {
  it.each(Object.entries(OPEN_ROUTES))('%s answers %i to every caller', async (path, status) => {
    for (const { kind, header } of [
      ...dead,
      ...live.map(({ kind, key }) => ({ kind, header: `Bearer ${key}` })),
    ]) {
      const headers = header === undefined ? {} : { authorization: header };
      expect((await send(place.api, { path, key: null, headers })).status, kind).toBe(status);
    }
  });

  it.each(Object.entries(ALIASES))(
    '%s is as closed as the operation behind it',
    async (path, { body, status }) => {
      for (const { kind, header } of dead) {
        const headers = {
          'content-type': 'application/json',
          ...(header === undefined ? {} : { authorization: header }),
        };
        expect((await send(place.api, { path, body, key: null, headers })).status, kind).toBe(401);
      }
      for (const { kind, key, scopes } of live) {
        const headers = { 'content-type': 'application/json' };
        const expected = scopes.includes('ingest') ? status : 403;
        expect((await send(place.api, { path, body, key, headers })).status, kind).toBe(expected);
      }
    },
  );
});
