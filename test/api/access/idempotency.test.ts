import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { assertRepeatable, type Endpoint, idempotencyOf } from '../../../api/endpoint.js';
import { pruneIdempotencyKeys } from '../../../db/access/idempotencyKeys.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import type { OperationsPlace } from '../support/operations/operation.js';
import { OPERATIONS } from '../support/operations.js';
import {
  aKey,
  override,
  overrideOf,
  perform,
  type RepeatsPlace,
  seenOf,
  startRepeatsPlace,
  startRun,
} from '../support/repeats.js';
import { anEvent, send } from '../support/requests.js';
import { readTenantDigest } from '../support/tenantDigest.js';

const OVERRIDES = '/api/v1/pricing/overrides';
const RUNS = '/api/v1/reconciliation/gap-explorer';

let at: RepeatsPlace;
let place: OperationsPlace;
let one: TestApi;
let other: TestApi;

beforeAll(async () => {
  at = await startRepeatsPlace();
  ({ place, one, other } = at);
});
afterAll(() => at?.close());

async function countOverrides(owner: TestOrganization): Promise<number> {
  const { rows } = await one.database.superuser.query(
    'select count(*)::int as count from own_prices where org_id = $1',
    [owner.orgId],
  );
  return rows[0].count;
}

/** Recognizes repeats itself; test/api/reports covers it. */
const OWN = ['createManagementReport'];
const REPEATABLE = ENDPOINTS.filter((endpoint) => idempotencyOf(endpoint) !== undefined);

describe('a repeated request', () => {
  it('is recognized by its Idempotency-Key at every POST and PATCH outside ingest, and nowhere else', () => {
    const others = ENDPOINTS.filter(({ method }) => method === 'post' || method === 'patch').filter(
      (endpoint) => !REPEATABLE.includes(endpoint) && !OWN.includes(endpoint.operationId),
    );
    expect(
      ENDPOINTS.filter(({ idempotency }) => idempotency === 'own').map(({ operationId }) => operationId),
    ).toEqual(OWN);
    // A message of MCP only reads.
    const scopes = others
      .filter(({ operationId }) => operationId !== 'mcp')
      .map(({ access }) => ('public' in access ? 'public' : access.scope));
    expect(new Set(scopes)).toEqual(new Set(['ingest', 'public']));
    expect(REPEATABLE.length).toBeGreaterThan(10);
    expect(REPEATABLE.every(({ method }) => method === 'post' || method === 'patch')).toBe(true);
  });

  it.each(REPEATABLE.map(({ operationId }) => operationId))(
    '%s: is done once and answered alike, by another process too; another request under its key is refused',
    async (name) => {
      const operation = OPERATIONS[name];
      if (!operation) throw new Error(`${name} has no entry in the list of operations`);
      const owner = await one.addOrganization();
      const request = await operation.request(place, owner);
      const key = aKey();
      const first = await perform(operation, request, { owner, key, api: one });
      expect(first.status, first.bytes.toString()).toBe(operation.status);
      expect(first.headers['idempotency-replayed']).toBeUndefined();
      const done = await readTenantDigest(one.database, owner.orgId);

      for (const [api, header] of [
        [other, key],
        [one, `"${key}"`],
      ] as const) {
        const again = await perform(operation, request, { owner, key: header, api });
        expect(seenOf(again)).toEqual(seenOf(first));
        expect(again.headers['idempotency-replayed']).toBe('true');
        expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
      }
      const changed = await perform(operation, request, { owner, key, query: 'other=1', api: one });
      expect([changed.status, changed.body.code]).toEqual([422, 'idempotency_key_reused']);
      const malformed = await perform(operation, request, { owner, key: 'two words', api: one });
      expect([malformed.status, malformed.body.code]).toEqual([400, 'invalid_idempotency_key']);
      expect(await readTenantDigest(one.database, owner.orgId)).toEqual(done);
    },
    180_000,
  );

  it('is documented at each of them: the header, its refusals, and the header of a repeat', async () => {
    const { body: document } = await send(one, { path: '/openapi.json', key: null });
    for (const { path, method, operationId } of ENDPOINTS) {
      const operation = document.paths[path][method];
      const named = (operation.parameters ?? []).filter((one: { in: string }) => one.in === 'header');
      const isRepeatable = REPEATABLE.some((endpoint) => endpoint.operationId === operationId);
      expect(
        named.map((one: { name: string; required?: boolean }) => [one.name, one.required ?? false]),
        operationId,
      ).toEqual(isRepeatable || OWN.includes(operationId) ? [['Idempotency-Key', false]] : []);
      if (!isRepeatable) continue;
      expect(operation.responses['400'].description).toContain('invalid_idempotency_key');
      expect(operation.responses['409'].description).toContain('idempotency_in_progress');
      expect(operation.responses['422'].description).toContain('idempotency_key_reused');
      for (const [status, response] of Object.entries<{ headers?: object }>(operation.responses))
        if (Number(status) < 400) expect(response.headers).toHaveProperty('Idempotency-Replayed');
    }
  });

  it('ingest, PUT and DELETE take the header for nothing: their repeats change nothing by themselves', async () => {
    const events = JSON.stringify({ events: [anEvent()] });
    const json = { 'content-type': 'application/json', 'idempotency-key': 'two words' };
    for (const duplicates of [0, 1]) {
      const { status, headers, body } = await send(one, {
        path: '/api/v1/ingest/events',
        key: one.ingestKey,
        headers: json,
        body: events,
      });
      expect([status, body.duplicates, headers['idempotency-replayed']]).toEqual([
        202,
        duplicates,
        undefined,
      ]);
    }
    const put = await send(one, {
      method: 'PUT',
      path: '/api/v1/provider-keys',
      headers: json,
      body: JSON.stringify({
        items: [{ provider: 'openai', provider_key_id: 'key_1', name: 'a', status: 'active' }],
      }),
    });
    expect(put.status).toBe(200);
    const gone = await send(one, {
      method: 'DELETE',
      path: `${OVERRIDES}/ovr_${'0'.repeat(32)}`,
      headers: { 'idempotency-key': 'two words' },
    });
    expect(gone.status).toBe(404);
  });
});

describe('the identity of a repeated request', () => {
  it('the value of its JSON body counts, not how it is written', async () => {
    const owner = await one.addOrganization();
    const key = aKey();
    const { json } = overrideOf(`model-${key}`);
    const reordered = Object.fromEntries(Object.entries(json).reverse());
    const texts = [JSON.stringify(json), JSON.stringify(reordered, null, 2)];
    const answers = [];
    for (const text of texts) {
      const body = { type: 'application/json', data: text };
      answers.push(await perform(override, { body }, { owner, key, api: one }));
    }
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[1]?.bytes).toEqual(answers[0]?.bytes);
    expect(await countOverrides(owner)).toBe(1);
    const { status } = await perform(override, overrideOf('another'), { owner, key, api: one });
    expect(status).toBe(422);
  });

  it('a trailing slash does not count: it is the same address', async () => {
    const key = aKey();
    const { json } = overrideOf(`model-${key}`);
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    const answers = [];
    for (const path of [OVERRIDES, `${OVERRIDES}/`])
      answers.push(await send(one, { path, headers, body: JSON.stringify(json) }));
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[1]?.headers['idempotency-replayed']).toBe('true');
  });

  it('a form counts by its file, the file’s name and its fields, however they are ordered and bounded', async () => {
    const owner = await one.addOrganization();
    const upload = { method: 'POST', path: '/api/v1/billing-imports' } as const;
    const key = aKey();
    const form = (boundary: string, fields: [string, string][], file: string, filename = 'bill.csv') => {
      const parts = fields.map(
        ([name, value]) =>
          `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
      );
      const bill = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${filename}"\r\ncontent-type: text/csv\r\n\r\n${file}\r\n`;
      const data = [...parts, bill, `--${boundary}--\r\n`].join('');
      return { body: { type: `multipart/form-data; boundary=${boundary}`, data } };
    };
    const csv = 'date,model,token_class,quantity,amount_usd\n2026-03-10,gpt-4o,input,10,1\n';
    const fields: [string, string][] = [
      ['provider', 'openai'],
      ['account', 'org-1'],
    ];
    const first = await perform(upload, form('one', fields, csv), { owner, key, api: one });
    expect(first.status, first.bytes.toString()).toBe(202);
    const again = await perform(upload, form('two', [...fields].reverse(), csv), { owner, key, api: other });
    expect(seenOf(again)).toEqual(seenOf(first));
    expect(again.headers['idempotency-replayed']).toBe('true');
    for (const [changed, text, name] of [
      [[...fields, ['format', 'plain_csv']], csv, 'bill.csv'],
      [fields, `${csv}2026-03-11,gpt-4o,input,10,1\n`, 'bill.csv'],
      [fields, csv, 'other.csv'],
    ] as [[string, string][], string, string][]) {
      const { status, body } = await perform(upload, form('one', changed, text, name), {
        owner,
        key,
        api: one,
      });
      expect([status, body.code]).toEqual([422, 'idempotency_key_reused']);
    }
  });

  it('a key counts for one API key, one organization and one operation', async () => {
    const [owner, stranger] = [await one.addOrganization(), await one.addOrganization()];
    const colleague = { adminKey: await one.addKey(owner.orgId, 'admin') };
    const key = aKey();
    const request = overrideOf(`model-${key}`);
    const ids = new Set<string>();
    for (const caller of [owner, colleague, stranger]) {
      const { status, headers, body } = await perform(override, request, { owner: caller, key, api: one });
      expect([status, headers['idempotency-replayed']]).toEqual([201, undefined]);
      ids.add(body.id);
    }
    expect(ids.size).toBe(3);
    const run = await perform(startRun, {}, { owner, key, api: one });
    expect([run.status, run.headers['idempotency-replayed']]).toEqual([202, undefined]);
  });

  it('a caller that lost its permission is refused as usual, and gets no kept answer', async () => {
    const owner = await one.addOrganization();
    const key = aKey();
    const request = overrideOf(`model-${key}`);
    expect((await perform(override, request, { owner, key, api: one })).status).toBe(201);
    const member = { adminKey: await one.addKey(owner.orgId, 'member') };
    expect((await perform(override, request, { owner: member, key, api: one })).status).toBe(403);
    expect(
      (await perform(override, request, { owner: { adminKey: 'tu_live_x' }, key, api: one })).status,
    ).toBe(401);
  });
});

describe('which answers are kept', () => {
  it('a refusal that the operation decided is repeated word for word', async () => {
    const owner = await one.addOrganization();
    const key = aKey();
    const cancel = { method: 'POST', path: `${RUNS}/runs/run_none/cancel` } as const;
    const first = await perform(cancel, {}, { owner, key, api: one });
    const again = await perform(cancel, {}, { owner, key, api: other });
    expect([first.status, first.body.code]).toEqual([404, 'not_found']);
    expect(seenOf(again)).toEqual(seenOf(first));
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(again.body.request_id).toBe(first.headers['x-request-id']);
  });

  it('an invalid request may be corrected under the same key', async () => {
    const owner = await one.addOrganization();
    const key = aKey();
    const wrong = await perform(override, { json: { provider: 'openai' } }, { owner, key, api: one });
    const unpriced = await perform(
      override,
      { json: { ...overrideOf('unheard-of').json, rates: { input: 1 } } },
      { owner, key, api: one },
    );
    expect([wrong.status, unpriced.status]).toEqual([400, 400]);
    const right = await perform(override, overrideOf(`model-${key}`), { owner, key, api: one });
    expect([right.status, right.headers['idempotency-replayed']]).toEqual([201, undefined]);
  });

  it('a temporary failure is tried again', async () => {
    const owner = await one.addOrganization();
    await perform(override, overrideOf('first'), { owner, api: one });
    const key = aKey();
    // Simulates another transaction that locks the row for longer than a statement waits.
    await one.database.superuser.query(`
      create function refuse_second() returns trigger language plpgsql as $$
        begin raise exception 'locked' using errcode = 'lock_not_available'; end $$;
      create trigger refuse_second before insert on own_prices for each row
        when (new.org_id = '${owner.orgId}') execute function refuse_second()`);
    const failed = await perform(override, overrideOf('second'), { owner, key, api: one });
    await one.database.superuser.query(
      'drop trigger refuse_second on own_prices; drop function refuse_second()',
    );
    expect([failed.status, failed.body.code]).toEqual([503, 'service_unavailable']);
    const again = await perform(override, overrideOf('second'), { owner, key, api: one });
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([201, undefined]);
    expect(await countOverrides(owner)).toBe(2);
  });

  it('for a day: then the key is free, whether or not its row has been removed', async () => {
    const owner = await one.addOrganization();
    const key = aKey();
    const request = overrideOf(`model-${key}`);
    const age = (hours: number) =>
      one.database.superuser.query(
        `update idempotency_keys set created_at = now() - make_interval(hours => $2) where org_id = $1`,
        [owner.orgId, hours],
      );
    await perform(override, request, { owner, key, api: one });
    await age(23);
    expect((await perform(override, request, { owner, key, api: one })).headers['idempotency-replayed']).toBe(
      'true',
    );
    await age(24);
    const anew = await perform(override, request, { owner, key, api: one });
    expect([anew.status, anew.headers['idempotency-replayed']]).toEqual([201, undefined]);
    expect((await perform(override, request, { owner, key, api: one })).bytes).toEqual(anew.bytes);
    expect(await countOverrides(owner)).toBe(2);
    await perform(startRun, {}, { owner, key, api: one });
    await age(24);
    const run = await perform(startRun, {}, { owner, key, api: one });
    expect([run.status, run.headers['idempotency-replayed']]).toEqual([202, undefined]);
    await age(24);
    await perform(startRun, {}, { owner, key: aKey(), api: one });
    expect(await pruneIdempotencyKeys(one.database.database, 1)).toBe(1);
    expect(await pruneIdempotencyKeys(one.database.database)).toBe(1);
    expect(await pruneIdempotencyKeys(one.database.database)).toBe(0);
    const { rows } = await one.database.superuser.query(
      'select operation from idempotency_keys where org_id = $1',
      [owner.orgId],
    );
    expect(rows).toEqual([{ operation: 'startGapRun' }]);
  });

  it('sealed: the table shows neither a body nor a secret', async () => {
    const owner = await one.addOrganization();
    const key = aKey();
    const model = `model-${key}`;
    await perform(override, overrideOf(model), { owner, key, api: one });
    const { rows } = await one.database.superuser.query(
      'select t::text as line, ciphertext from idempotency_keys t where org_id = $1',
      [owner.orgId],
    );
    expect(rows.length).toBe(1);
    expect(rows[0].line.includes(Buffer.from(model).toString('hex'))).toBe(false);
    expect(rows[0].ciphertext.includes(model)).toBe(false);
  });
});

describe('endpoints that take the header', () => {
  const endpoint = ENDPOINTS.find(({ operationId }) => operationId === 'startGapRun') as Endpoint;

  it('must allow repeats to be recognized, or the service does not start', () => {
    expect(() => assertRepeatable(ENDPOINTS)).not.toThrow();
    const streams = { 'text/csv': 'binary' } as const;
    for (const wrong of [
      { ...endpoint, streams },
      { ...endpoint, streams, idempotency: 'afterwards' },
      { ...endpoint, access: { scope: 'usage:read', workspace: 'own' } },
    ] as Endpoint[])
      expect(() => assertRepeatable([wrong])).toThrow('startGapRun');
  });
});
