import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { publicId } from '../../../domain/ids.js';
import type { JsonSchema } from '../support/jsonSchema.js';
import { addressOf, type Operation, type OperationsPlace } from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';
import { send } from '../support/requests.js';

/** Fields that a sender must never be able to set. */
const FOREIGN = ['org_id', 'status', 'role', 'id', '__proto__', 'constructor', 'created_at'];

let place: OperationsPlace & { close(): Promise<void> };
// biome-ignore lint/suspicious/noExplicitAny: the document is walked as it is
let document: any;

beforeAll(async () => {
  place = await startOperationsPlace();
  document = (await send(place.api, { path: '/openapi.json', key: null })).body;
});
afterAll(() => place?.close());

const isIngest = (name: string) =>
  ENDPOINTS.some(
    ({ operationId, access, idempotency }) =>
      operationId === name && idempotency === 'ignored' && !('public' in access) && access.scope === 'ingest',
  );
const WITH_BODY = ENDPOINTS.filter(({ body }) => body !== undefined).map(({ operationId }) => operationId);
const OUTSIDE_INGEST = ENDPOINTS.map(({ operationId }) => operationId).filter((name) => !isIngest(name));

function operationOf(name: string): Operation {
  const operation = OPERATIONS[name];
  if (!operation) throw new Error(`${name} has no entry in the list of operations`);
  return operation;
}

/** Paths of the objects inside a value. */
function placesOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (Array.isArray(value)) return value.flatMap((item, index) => placesOf(item, [...path, index]));
  if (typeof value !== 'object' || value === null) return [];
  return [path, ...Object.entries(value).flatMap(([name, inner]) => placesOf(inner, [...path, name]))];
}

/** A copy of a value with one more field in the object at `path`, as JSON text: a name such as __proto__ is one too. */
function withField(value: unknown, path: (string | number)[], name: string): string {
  const copy = structuredClone(value);
  let target = copy as Record<string | number, unknown>;
  for (const step of path) target = target[step] as Record<string | number, unknown>;
  Object.defineProperty(target, name, { value: 'planted', enumerable: true, configurable: true });
  return JSON.stringify(copy);
}

/** The schemas that may apply at a path of a body. */
function schemasAt(schema: JsonSchema, path: readonly (string | number)[]): JsonSchema[] {
  if (typeof schema.$ref === 'string')
    return schemasAt(document.components.schemas[schema.$ref.split('/').at(-1) ?? ''], path);
  const choices = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (list as JsonSchema[]) ?? []);
  const own = choices.flatMap((choice) => schemasAt(choice, path));
  const [step, ...rest] = path;
  if (step === undefined) return [schema, ...own];
  const inner =
    typeof step === 'number' ? schema.items : (schema.properties as JsonSchema | undefined)?.[step];
  return [...(inner ? schemasAt(inner as JsonSchema, rest) : []), ...own];
}

describe('a body outside ingest', () => {
  it.each(WITH_BODY.filter((name) => !isIngest(name)))(
    '%s: is refused when it has another field in any of its objects, and the answer names the field',
    async (name) => {
      const operation = operationOf(name);
      const owner = await place.api.addOrganization();
      const request = await operation.request(place, owner);
      const schema =
        document.paths[operation.path][operation.method.toLowerCase()].requestBody.content['application/json']
          .schema;
      let planted = 0;
      for (const path of placesOf(request.json)) {
        for (const field of FOREIGN) {
          const isOwn = schemasAt(schema, path).some((one) => Object.hasOwn(one.properties ?? {}, field));
          if (isOwn) continue;
          planted += 1;
          const { status, body } = await send(place.api, {
            method: operation.method,
            path: addressOf(operation, request),
            key: owner.adminKey,
            headers: { 'content-type': 'application/json' },
            body: withField(request.json, path, field),
          });
          const where = [...path, field].join('.');
          expect([status, body.code], where).toEqual([400, 'invalid_body']);
          expect(body.errors, where).toContainEqual(expect.objectContaining({ in: 'body', field: where }));
          expect(body.detail).toContain(field);
        }
      }
      expect(planted).toBeGreaterThan(FOREIGN.length - 3);
    },
    180_000,
  );

  it('is closed in the documents too: no object of it takes further fields', () => {
    const open: string[] = [];
    const walk = (schema: JsonSchema, where: string): void => {
      for (const one of schemasAt(schema, [])) {
        const properties = (one.properties ?? {}) as Record<string, JsonSchema>;
        const isChoice = one.oneOf !== undefined || one.anyOf !== undefined;
        if (one.type === 'object' && one.additionalProperties === undefined && !isChoice) open.push(where);
        for (const [name, inner] of Object.entries(properties)) walk(inner, `${where}.${name}`);
        if (one.items) walk(one.items as JsonSchema, `${where}[]`);
      }
    };
    for (const name of WITH_BODY.filter((one) => !isIngest(one))) {
      const { method, path } = operationOf(name);
      walk(document.paths[path][method.toLowerCase()].requestBody.content['application/json'].schema, name);
    }
    expect(open).toEqual([]);
  });
});

const WITHOUT_BODY = ENDPOINTS.filter(
  ({ method, body, streams }) => method !== 'get' && !body && !streams,
).map(({ operationId }) => operationId);

describe('an operation that takes no body', () => {
  it.each(WITHOUT_BODY)('%s refuses fields in a JSON body, by their names', async (name) => {
    const operation = operationOf(name);
    const owner = await place.api.addOrganization();
    const request = await operation.request(place, owner);
    const sendBody = (json: unknown) =>
      send(place.api, {
        method: operation.method,
        path: addressOf(operation, request),
        key: owner.adminKey,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(json),
      });
    const refused = await sendBody({ period: '7d', notes: 'mine' });
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_body']);
    expect(refused.body.errors.map((issue: { field: string }) => issue.field)).toEqual(['period', 'notes']);
    const list = await sendBody(['7d']);
    expect([list.status, list.body.code]).toEqual([400, 'invalid_body']);
    expect((await sendBody({})).status).toBe(operation.status);
  });
});

describe('a body of ingest', () => {
  it.each(Object.keys(OPERATIONS).filter(isIngest))(
    '%s: ignores unknown fields, and stores them nowhere',
    async (name) => {
      const operation = operationOf(name);
      const [owner, stranger] = [await place.api.addOrganization(), await place.api.addOrganization()];
      const request = await operation.request(place, owner);
      for (const path of placesOf(request.json)) {
        // Attributes are the sender's own words: names and values, which are kept as such.
        if (path.includes('attributes') || path.includes('metadata')) continue;
        let text = JSON.stringify(request.json);
        for (const field of ['org_id', 'role', '__proto__', 'constructor'])
          text = withField(JSON.parse(text), path, field);
        text = text.replaceAll('planted', stranger.orgId);
        const answer = await send(place.api, {
          method: operation.method,
          path: addressOf(operation, request),
          key: owner.ingestKey,
          headers: { 'content-type': 'application/json' },
          body: text,
        });
        expect(answer.status, path.join('.')).toBe(operation.status);
        // OTLP's own answers name no organization.
        if (operation.status === 202)
          expect(answer.body.organization_id, path.join('.')).toBe(publicId('org', owner.orgId));
      }
      const { rows } = await place.api.database.superuser.query(
        'select count(*) filter (where org_id = $1)::int as own, count(*) filter (where org_id = $2)::int as others from events',
        [owner.orgId, stranger.orgId],
      );
      // Metrics never become events.
      if (name === 'ingestMetrics') expect(rows[0].own).toBe(0);
      else expect(rows[0].own).toBeGreaterThan(0);
      expect(rows[0].others).toBe(0);
    },
    180_000,
  );
});

describe('a query', () => {
  it.each(OUTSIDE_INGEST)(
    '%s: a duplicate parameter is refused, whether or not it is known',
    async (name) => {
      const operation = operationOf(name);
      const address = operation.path.replace(/\{(\w+)\}/g, 'none');
      const key = operation.access === 'public' ? null : place.api.adminKey;
      const json = WITH_BODY.includes(name) ? { 'content-type': 'application/json' } : {};
      for (const query of ['limit=1&limit=9', 'unheard=1&unheard=1', 'limit=1&offset=0&limit=1']) {
        const { status, body } = await send(place.api, {
          method: operation.method,
          path: `${address}?${query}`,
          key,
          headers: json,
        });
        const field = query.split('=')[0];
        expect([status, body.code], `${name}?${query}`).toEqual([400, 'invalid_parameter']);
        expect(body.errors).toEqual([{ in: 'query', field, message: 'given twice; give it once' }]);
      }
    },
  );
});

describe('a header', () => {
  it.each(['two words', 'a;b', '"unclosed', 'a"b', 'x'.repeat(129), '<script>', '%0d%0aSet-Cookie:x', 'ä'])(
    'Idempotency-Key: %s: is refused and repeated nowhere in the answer',
    async (value) => {
      const answer = await send(place.api, {
        method: 'POST',
        path: '/api/v1/reconciliation/gap-explorer/run',
        headers: { 'idempotency-key': Buffer.from(value).toString('latin1') },
      });
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_idempotency_key']);
      expect(answer.bytes.toString()).not.toContain(value);
      expect(JSON.stringify(answer.headers)).not.toContain(value);
    },
  );

  it('Idempotency-Key, sent twice, is refused', async () => {
    const response = await fetch(`${place.api.baseUrl}/api/v1/reconciliation/gap-explorer/run`, {
      method: 'POST',
      headers: [
        ['authorization', `Bearer ${place.api.adminKey}`],
        ['idempotency-key', 'one'],
        ['idempotency-key', 'two'],
      ],
    });
    const { code } = (await response.json()) as { code: string };
    expect([response.status, code]).toEqual([400, 'invalid_idempotency_key']);
  });
});
