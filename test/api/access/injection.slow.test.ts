import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestOrganization } from '../../support/api.js';
import {
  addressOf,
  bodyOf,
  type Operation,
  type OperationRequest,
  type OperationsPlace,
} from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';
import { type RawAnswer, send } from '../support/requests.js';

/**
 * Texts that end a string, or begin a statement, a comment, an array, a pattern or a placeholder if they are pasted
 * into SQL.
 */
const INJECTIONS = [
  "'",
  '"',
  "x' or '1'='1",
  "x'; select pg_sleep(5); --",
  'x); drop table events cascade; --',
  "x' union select null, secret_hash from api_keys --",
  "\\'; select 1; --",
  "E'\\x27'",
  '$$; select 1; $$',
  '/* x */',
  'x/**/or/**/true',
  '{x,y}',
  '["x","y"]',
  '{"$ne":null}',
  '%',
  '_',
  '?',
  '??',
  ':name',
  '$1',
  'x\u02bc or 1=1 --',
  'x\u2019 or 1=1 --',
  'x\uff07 or 1=1 --',
  'x%27 or 1=1 --',
  'current_setting($$app.org_id$$)',
];
/** One text of each kind, for every string of every body. */
const BODY_INJECTIONS = ["x'; select pg_sleep(5); --", '"', '{"x"}', '? ?? :name $1', 'x\u02bc or 1=1 --'];
/** A harmless word; an injection must be answered in the same way. */
const WORD = 'zzzz';

interface Parameters {
  query: string[];
  path: string[];
}

let place: OperationsPlace & { close(): Promise<void> };
let owner: TestOrganization;
let other: TestOrganization;
let parameters: Map<string, Parameters>;

beforeAll(async () => {
  place = await startOperationsPlace();
  owner = await place.api.addOrganization('Owner');
  other = await place.api.addOrganization('Other');
  parameters = await readParameters();
});
afterAll(() => place.close());

async function readParameters(): Promise<Map<string, Parameters>> {
  const { body } = await send(place.api, { path: '/openapi.json', key: null });
  const found = new Map<string, Parameters>();
  for (const methods of Object.values(body.paths) as Record<string, Json>[]) {
    for (const operation of Object.values(methods)) {
      const named = (where: string) =>
        (operation.parameters ?? []).filter((one: Json) => one.in === where).map((one: Json) => one.name);
      found.set(operation.operationId, { query: named('query'), path: named('path') });
    }
  }
  return found;
}

// biome-ignore lint/suspicious/noExplicitAny: the document, and bodies of every operation
type Json = any;

function ask(operation: Operation, request: OperationRequest): Promise<RawAnswer> {
  return send(place.api, {
    method: operation.method,
    path: addressOf(operation, request),
    key: owner.adminKey,
    ...bodyOf(request),
  });
}

/** An answer without the parts that differ each time: times, and the sent text itself. */
function meaningOf({ status, body, bytes }: RawAnswer, text: string): string {
  if (status >= 400) return `${status} ${body.code}`;
  const said = typeof body === 'string' ? bytes.toString() : JSON.stringify(withoutText(body, text));
  return `${status} ${said.replace(/\d{4}-\d\d-\d\d[T0-9:.]*Z?/g, '')}`;
}

function withoutText(value: Json, text: string): Json {
  if (value === text) return '';
  if (Array.isArray(value)) return value.map((item) => withoutText(item, text));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutText(inner, text)]));
}

/** Every place of a text in a JSON value. */
function textsIn(value: Json, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value === 'string') return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    textsIn(inner, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}

function withText(value: Json, [step, ...rest]: readonly (string | number)[], text: string): Json {
  if (step === undefined) return text;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  copy[step] = withText(copy[step], rest, text);
  return copy;
}

describe('a text that would be SQL', () => {
  it('means in each parameter of each operation what any other text means there', async () => {
    let asked = 0;
    for (const [operationId, operation] of Object.entries(OPERATIONS)) {
      const known = parameters.get(operationId);
      expect(known, operationId).toBeDefined();
      const request = await operation.request(place, owner);
      const variants = [
        ...(known?.query ?? []).map((name) => (text: string) => ({
          ...request,
          query: { ...request.query, [name]: text },
        })),
        ...(known?.path ?? []).map((name) => (text: string) => ({
          ...request,
          params: { ...request.params, [name]: text },
        })),
      ];
      for (const variant of variants) {
        const plain = meaningOf(await ask(operation, variant(WORD)), WORD);
        const asks = INJECTIONS.map(async (text) => {
          const meaning = meaningOf(await ask(operation, variant(text)), text);
          expect(`${operationId} ${text} ${meaning}`).toBe(`${operationId} ${text} ${plain}`);
        });
        await Promise.all(asks);
        asked += asks.length;
      }
    }
    expect(asked).toBeGreaterThan(1_000);
  }, 300_000);

  it('is stored unchanged or refused in each text of each body, and ignored in names of parameters and fields', async () => {
    const { database } = place.api;
    const countOf = async () =>
      (
        await database.superuser.query('select count(*) as rows from api_keys where org_id = $1', [
          other.orgId,
        ])
      ).rows[0].rows;
    const before = await countOf();
    let asked = 0;
    for (const [operationId, operation] of Object.entries(OPERATIONS)) {
      const first = await operation.request(place, owner);
      const check = async (request: OperationRequest, what: string) => {
        const { status, bytes } = await ask(operation, request);
        const isOurs = status < 500 && !bytes.includes('syntax error');
        expect([operationId, what, isOurs], bytes.subarray(0, 300).toString()).toEqual([
          operationId,
          what,
          true,
        ]);
        asked += 1;
      };
      for (const text of BODY_INJECTIONS) {
        const checks = [check({ ...first, query: { ...first.query, [text]: text } }, `the name ${text}`)];
        if (typeof first.json === 'object' && first.json !== null) {
          checks.push(check({ ...first, json: { ...first.json, [text]: text } }, `the field ${text}`));
          for (const path of textsIn(first.json))
            checks.push(
              check({ ...first, json: withText(first.json, path, text) }, `${path.join('.')} = ${text}`),
            );
        }
        await Promise.all(checks);
      }
    }
    expect(asked).toBeGreaterThan(500);
    expect(await countOf()).toBe(before);
    expect((await place.api.get('/api/v1/events?limit=1', other.adminKey)).status).toBe(200);
  }, 300_000);
});
