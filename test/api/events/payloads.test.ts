import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SCOPES } from '../../../domain/access/keyRules.js';
import { createLogger } from '../../../platform/logger.js';
import type { TestOrganization } from '../../support/api.js';
import type { JsonSchema } from '../support/jsonSchema.js';
import {
  addressOf,
  bodyOf,
  type Operation,
  type OperationRequest,
  type OperationsPlace,
} from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';
import { anEvent, aSpan, aTime, aTrace, ingest, type RawAnswer, send } from '../support/requests.js';

/** Text of prompts, answers and tool data, which occurs in payloads only. */
const SAID = 'the-diagnosis-of-a-patient';
const ASKED = 'a-query-for-a-salary';
const GAVE = 'the-salary-of-a-person';
const TEXTS = [SAID, ASKED, GAVE];
const PAYLOAD_FIELDS = ['payload', 'tool_input', 'tool_output'];

interface Documented {
  operationId: string;
  parameters?: { name: string; in: string }[];
  responses: Record<string, { content?: Record<string, { schema?: JsonSchema }> }>;
}

let place: OperationsPlace & { close(): Promise<void> };
let owner: TestOrganization;
/** Everything but payloads:read. */
let key: string;
let documented: Documented[];
let schemas: Record<string, JsonSchema>;
/** Every line of the log, at its most talkative. */
let lines = '';

beforeAll(async () => {
  const destination = { write: (line: string) => (lines += line) };
  place = await startOperationsPlace({ logger: createLogger({ name: 'api', level: 'trace', destination }) });
  owner = await place.api.addOrganization();
  key = await place.api.addKey(owner.orgId, 'admin', { scopes: SCOPES.filter((s) => s !== 'payloads:read') });
  const { body } = await send(place.api, { path: '/openapi.json', key: null });
  documented = Object.values<Record<string, Documented>>(body.paths).flatMap((methods) =>
    Object.values(methods),
  );
  schemas = body.components.schemas;
  await ingest(
    place.api,
    [0, 1, 2].map((index) => aCall(index)),
    owner.ingestKey,
  );
  const span = aSpan({ 'gen_ai.input.messages': JSON.stringify([{ role: 'user', content: SAID }]) });
  expect((await place.api.post('/api/v1/ingest/trace', aTrace(span), owner.ingestKey)).status).toBe(202);
});
afterAll(() => place.close());

const aCall = (index: number) =>
  anEvent({
    timestamp: aTime(index),
    payload: { prompt: SAID },
    tool_input: { asked: ASKED },
    tool_output: { gave: GAVE },
    _service: { name: 'records', note: SAID },
  });

/** Whether a schema has a property with payloads at any depth. */
function showsPayload(schema: unknown, seen = new Set<unknown>()): boolean {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return false;
  seen.add(schema);
  const { $ref, properties } = schema as { $ref?: string; properties?: object };
  if ($ref !== undefined && showsPayload(schemas[$ref.split('/').at(-1) ?? ''], seen)) return true;
  if (properties !== undefined && PAYLOAD_FIELDS.some((name) => name in properties)) return true;
  return Object.values(schema).some((part) => showsPayload(part, seen));
}

/** Operations whose answers contain events, by their schema or as a stream without one. */
const showing = () =>
  documented.filter(({ responses }) =>
    Object.entries(responses).some(
      ([status, { content = {} }]) =>
        status < '300' && Object.values(content).some(({ schema }) => showsPayload(schema)),
    ),
  );
const taking = () =>
  documented.filter(({ parameters = [] }) => parameters.some(({ name }) => name === 'include_payload'));
const names = (operations: readonly Documented[]) => operations.map(({ operationId }) => operationId).sort();

const reads = new Map<string, Promise<OperationRequest>>();

/** A valid request of the owner; always the same one for operations that change nothing. */
function requestOf(name: string, operation: Operation): Promise<OperationRequest> {
  if (operation.method !== 'GET') return operation.request(place, owner);
  const request = reads.get(name) ?? operation.request(place, owner);
  reads.set(name, request);
  return request;
}

/** Sends a valid request of the owner, with include_payload as given. */
async function ask(name: string, as: string, includePayload: string | undefined): Promise<RawAnswer> {
  const operation = OPERATIONS[name] as (typeof OPERATIONS)[string];
  const { query: { include_payload: _usual, ...query } = {}, ...rest } = await requestOf(name, operation);
  const request = {
    ...rest,
    query: includePayload === undefined ? query : { ...query, include_payload: includePayload },
  };
  return send(place.api, {
    method: operation.method,
    path: addressOf(operation, request),
    key: as,
    ...bodyOf(request),
  });
}

const told = (answer: RawAnswer) => TEXTS.filter((text) => answer.bytes.includes(text));

describe('payloads', () => {
  it('are in no answer that has no include_payload to ask for them', () => {
    expect(names(showing()).length).toBeGreaterThan(1);
    expect(names(taking())).toEqual(expect.arrayContaining(names(showing())));
  });

  it.each(Object.keys(OPERATIONS))(
    'are not in the answer of %s to a key that may not read them',
    async (name) => {
      const isAsked = names(taking()).includes(name);
      // An operation that reads payloads without returning them is refused in every case.
      const always = !isAsked && OPERATIONS[name]?.alsoNeeds === 'payloads:read';
      for (const include of [undefined, 'false']) {
        const answer = await ask(name, key, include);
        expect(answer.status, String(answer.bytes)).toBe(always ? 403 : OPERATIONS[name]?.status);
        expect(told(answer)).toEqual([]);
      }
      if (!isAsked) return;
      for (const include of ['true', '1']) {
        const refused = await ask(name, key, include);
        expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
        expect(refused.body.detail).toBe('the key lacks the scope payloads:read');
        expect(told(refused)).toEqual([]);
      }
    },
  );

  it.each(Object.keys(OPERATIONS))(
    'are in the answer of %s to a key that may only when it asks',
    async (name) => {
      expect(told(await ask(name, owner.adminKey, undefined))).toEqual([]);
    },
  );

  it('are shown whole to a key that may read them, which shows what other keys do not see', async () => {
    for (const path of [
      '/api/v1/events?include_payload=true',
      `/api/v1/events/export?start=${aTime(86_400)}&end=${aTime(-86_400)}&include_payload=true`,
    ])
      expect(told(await send(place.api, { path, key: owner.adminKey }))).toEqual(TEXTS);
  });

  it('are not in the answer to what is refused, whole or in part, nor to what cannot be read', async () => {
    const refused = [
      { input_tokens: -1 },
      { timestamp: 'yesterday' },
      { model: undefined },
      { model: 'm'.repeat(300) },
      { provider: 7 },
      { cost_usd: 'much' },
    ].map((fault) => ({ ...aCall(5), ...fault }));
    const json = JSON.stringify({ events: refused });
    const traces = aTrace(
      aSpan({ 'gen_ai.input.messages': SAID, 'gen_ai.usage.input_tokens': -1 }),
      aSpan({ 'gen_ai.input.messages': SAID }, { startTimeUnixNano: 'soon' }),
    );
    const observation = {
      type: 'observation-create',
      body: {
        type: 'GENERATION',
        id: 'o',
        startTime: 'soon',
        input: SAID,
        output: GAVE,
        metadata: { said: SAID },
      },
    };
    const requests: [path: string, body: string][] = [
      ['/api/v1/ingest/events', json],
      ['/api/v1/ingest/events', json.slice(0, -3)],
      ['/api/v1/ingest/events', json.replace(`"${SAID}"`, SAID)],
      ['/api/v1/ingest/events', json.replace(`"${SAID}"`, `"${SAID}\u0000`)],
      ['/api/v1/ingest/events', `{"events":${'['.repeat(100)}"${SAID}"${']'.repeat(100)}}`],
      ['/api/v1/ingest/events', `"${SAID}"`],
      ['/api/v1/ingest/trace', JSON.stringify(traces)],
      ['/api/v1/ingest/trace', JSON.stringify(traces).replace(`"${SAID}"`, `'${SAID}'`)],
      ['/api/v1/ingest/observability', JSON.stringify(observation)],
      ['/api/v1/ingest/observability', JSON.stringify(observation).replace(`"${SAID}"`, SAID)],
    ];
    for (const [path, body] of requests) {
      const headers = { 'content-type': 'application/json' };
      const answer = await send(place.api, { path, key: owner.ingestKey, body, headers });
      expect(answer.status, path).toBeLessThan(500);
      expect(told(answer), `${path} ${body.slice(0, 80)}: ${answer.bytes}`).toEqual([]);
    }
  });

  it('are neither in the answer nor in the log when the database refuses what it was to store', async () => {
    const { superuser } = place.api.database;
    await superuser.query(
      `alter table event_payloads add constraint never check (event_id is null) not valid`,
    );
    const answer = await send(place.api, {
      path: '/api/v1/ingest/events',
      key: owner.ingestKey,
      body: JSON.stringify({ events: [aCall(9)] }),
      headers: { 'content-type': 'application/json' },
    });
    await superuser.query('alter table event_payloads drop constraint never');
    expect(answer.status).toBe(500);
    expect(told(answer)).toEqual([]);
    expect(lines).toContain('this is a bug');
  });

  it('are in no line of the log after all this', () => {
    expect(lines.split('\n').length).toBeGreaterThan(100);
    expect(TEXTS.filter((text) => lines.includes(text))).toEqual([]);
  });
});
