import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { statusOf } from '../../../api/problem.js';
import { ERROR_CODES } from '../../../domain/errors.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { type JsonSchema, validateJson } from '../support/jsonSchema.js';
import { anEvent, aSpan, aTrace, ingest, send } from '../support/requests.js';

let api: TestApi;
let document: OpenApi;

interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  security?: Record<string, unknown>[];
  parameters?: { name: string; in: string; required?: boolean; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
  'x-limit': string;
  responses: Record<
    string,
    { description: string; headers?: object; content?: Record<string, { schema: JsonSchema }> }
  >;
}
interface OpenApi {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, unknown> };
}

beforeAll(async () => {
  api = await startTestApi();
  document = (await send(api, { path: '/openapi.json', key: null })).body;
});
afterAll(() => api.close());

function operations(): [string, Operation][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method} ${path}`,
      operation,
    ]),
  );
}

describe('/openapi.json', () => {
  it('is an OpenAPI 3.1 document, the same for every caller, cached by its entity tag', async () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.info).toMatchObject({
      title: 'Trueup',
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    });
    const first = await send(api, { path: '/openapi.json', key: null });
    expect(first.headers['content-type']).toBe('application/json');
    const again = await send(api, {
      path: '/openapi.json',
      key: null,
      headers: { 'if-none-match': String(first.headers.etag) },
    });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
  });

  it('lists every endpoint once, with a unique id, a tag, a summary and how it is secured', () => {
    const listed = operations();
    expect(listed.map(([place]) => place).sort()).toEqual(
      ENDPOINTS.map((endpoint) => `${endpoint.method} ${endpoint.path}`).sort(),
    );
    expect(new Set(listed.map(([, operation]) => operation.operationId)).size).toBe(listed.length);
    for (const [place, operation] of listed) {
      expect(operation.summary.length, place).toBeGreaterThan(2);
      expect(operation.tags.length, place).toBe(1);
      const endpoint = ENDPOINTS.find((one) => one.operationId === operation.operationId);
      const schemes = (operation.security ?? []).flatMap((scheme) => Object.keys(scheme));
      expect(schemes.length > 0, place).toBe(!('public' in (endpoint?.access ?? {})));
      for (const scheme of schemes)
        expect(Object.keys(document.components.securitySchemes)).toContain(scheme);
    }
  });

  it('holds the parameters of each path, and every reference in it resolves', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
      for (const operation of Object.values(methods)) {
        const named = (operation.parameters ?? []).filter((one) => one.in === 'path').map((one) => one.name);
        expect(named.sort(), path).toEqual(inPath);
      }
    }
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, reference]) => reference ?? '',
    );
    expect(references.length).toBeGreaterThan(10);
    for (const reference of references) {
      const [, , group = '', name = ''] = reference.split('/');
      expect(document.components, reference).toHaveProperty([group, name]);
    }
  });

  it('states the default page size, and the default of each filter', () => {
    const defaults = (id: string) =>
      Object.fromEntries(
        (operations().find(([, { operationId }]) => operationId === id)?.[1].parameters ?? []).flatMap(
          ({ name, schema }) => ('default' in schema ? [[name, schema.default]] : []),
        ),
      );
    expect(defaults('listMatches')).toEqual({ limit: 100, offset: 0, format: 'json' });
    expect(defaults('getReviewQueue')).toEqual({
      status: 'open',
      direction: 'overcharge',
      limit: 100,
      offset: 0,
      format: 'json',
    });
    expect(defaults('getCoverage')).toEqual({ group_by: 'provider', limit: 100, offset: 0, format: 'json' });
    expect(defaults('exploreGaps')).toEqual({ period: '30d', limit: 10_000, offset: 0, format: 'json' });
    for (const [name, { parameters = [] }] of operations())
      for (const { name: parameter, schema } of parameters)
        if (parameter === 'limit') expect(schema, name).toHaveProperty('default');
  });

  it('names for each operation the problems that it can answer, each as problem+json', () => {
    const seen = new Set<string>();
    for (const [place, operation] of operations()) {
      const secured = (operation.security ?? []).length > 0;
      for (const status of ['500', '503', ...(secured ? ['401', '403'] : [])])
        expect(operation.responses[status]?.content, `${place} ${status}`).toHaveProperty([
          'application/problem+json',
        ]);
      for (const [status, response] of Object.entries(operation.responses)) {
        for (const [, code] of response.description.matchAll(/`([a-z_]+)`/g)) {
          if (Number(status) < 400) continue;
          expect(ERROR_CODES).toContain(code);
          expect(statusOf(code as (typeof ERROR_CODES)[number]), `${place} ${code}`).toBe(Number(status));
          seen.add(String(code));
        }
      }
    }
    expect(seen.size).toBeGreaterThan(10);
  });

  it('states which limits count each operation, and the headers of these limits', () => {
    const limits = new Map<string, number>();
    for (const [place, operation] of operations()) {
      limits.set(operation['x-limit'], (limits.get(operation['x-limit']) ?? 0) + 1);
      const isPublic = (operation.security ?? []).length === 0;
      expect(operation['x-limit'] === 'public', place).toBe(isPublic);
      for (const [status, { headers = {} }] of Object.entries(operation.responses)) {
        const names = Object.keys(headers);
        if (!isPublic || status === '429') expect(names, place).toContain('RateLimit-Policy');
        else expect(names, place).not.toContain('RateLimit-Policy');
        if (status === '429' || status === '503') expect(names, place).toContain('Retry-After');
      }
      expect(operation.responses['429']?.description, place).toContain('`rate_limited`');
    }
    expect(Object.fromEntries(limits)).toMatchObject({ ingest: 9, export: 7, gap_run: 1, reprice: 1 });
    expect(Object.fromEntries(limits)).toMatchObject({ billing_sync: 1, billing_import: 1 });
  });

  it('describes the real answers of the service: live answers pass the schemas of the document', async () => {
    await ingest(api, [anEvent({ payload: { a: 1 } }), anEvent({ model: 'unpriced-model' })]);
    const [event] = (await api.get('/api/v1/events?limit=1')).body.events;
    const json = { 'content-type': 'application/json' };
    const asked: [string, string, object?][] = [
      ['get /api/v1/events', '/api/v1/events?include_payload=true'],
      ['get /api/v1/events/{id}', `/api/v1/events/${event.id}`],
      ['get /api/v1/events/{id}', '/api/v1/events/x'],
      ['get /api/v1/events', '/api/v1/events?limit=0'],
      ['get /api/v1/usage/summary', '/api/v1/usage/summary'],
      ['get /api/v1/usage/records', '/api/v1/usage/records'],
      ['get /api/v1/usage/records', '/api/v1/usage/records?group_by=model'],
      ['get /api/v1/dashboard/breakdown/{dimension}', '/api/v1/dashboard/breakdown/day'],
      ['get /api/v1/ingest/health', '/api/v1/ingest/health'],
      ['get /api/v1/pricing/table', '/api/v1/pricing/table'],
      ['get /api/v1/pricing', '/api/v1/pricing?provider=openai'],
      ['get /api/v1/pricing/unpriced', '/api/v1/pricing/unpriced'],
      ['post /api/v1/ingest/events', '/api/v1/ingest/events', { events: [anEvent({ cost_usd: -1 })] }],
      [
        'post /api/v1/ingest/trace',
        '/api/v1/ingest/trace',
        aTrace(aSpan(), aSpan({ 'gen_ai.usage.input_tokens': -1 })),
      ],
      ['post /api/v1/ingest/trace', '/api/v1/ingest/trace', []],
    ];
    for (const [place, path, body] of asked) {
      const [method = '', template = ''] = place.split(' ');
      const operation = document.paths[template]?.[method];
      if (body !== undefined && !Array.isArray(body)) {
        const sent = operation?.requestBody?.content['application/json']?.schema as JsonSchema;
        expect(validateJson(document, sent, body), place).toEqual([]);
      }
      const answer = await send(api, {
        path,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: json }),
      });
      const type = String(answer.headers['content-type']);
      const schema = operation?.responses[String(answer.status)]?.content?.[type]?.schema;
      expect(schema, `${place} ${answer.status} ${type}`).toBeDefined();
      expect(validateJson(document, schema as JsonSchema, answer.body), place).toEqual([]);
      expect(validateJson(document, schema as JsonSchema, { wrong: true }), place).not.toEqual([]);
    }
  });

  it('has no example of an Idempotency-Key: the page would send every request under it', () => {
    const headers = operations().flatMap(([, { parameters = [] }]) =>
      parameters.filter((at) => at.in === 'header'),
    );
    expect(new Set(headers.map(({ name }) => name))).toEqual(new Set(['Idempotency-Key']));
    expect(headers.filter((at) => /"example/.test(JSON.stringify(at)))).toEqual([]);
  });

  it('has examples that pass their own schemas', () => {
    const wrong: string[] = [];
    let found = 0;
    const walk = (value: unknown, place: string): void => {
      if (Array.isArray(value)) for (const [index, item] of value.entries()) walk(item, `${place}/${index}`);
      if (typeof value !== 'object' || value === null) return;
      const holder = value as JsonSchema;
      // A parameter and a media type have their schema beside the example.
      const schema = (holder.schema ?? holder) as JsonSchema;
      for (const example of [
        ...(holder.example === undefined ? [] : [holder.example]),
        ...((holder.examples as unknown[]) ?? []),
      ]) {
        found += 1;
        for (const fault of validateJson(document, schema, example)) wrong.push(`${place}: ${fault}`);
      }
      for (const [key, inner] of Object.entries(value)) if (key !== 'example') walk(inner, `${place}/${key}`);
    };
    walk(document, '');
    expect(wrong).toEqual([]);
    expect(found).toBeGreaterThan(0);
  });
});

describe('/docs', () => {
  it('is a page whose every file comes from this server, under a policy that allows no other', async () => {
    const page = await send(api, { path: '/docs', key: null });
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/https?:|\*|unsafe/);
    for (const rule of ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])
      expect(policy).toContain(rule);
    const html = page.bytes.toString();
    expect(html).not.toMatch(/https?:\/\/|\/\/[a-z]|<script(?![^>]*src=)|<style|\s(?:style|on\w+)=/);
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)]
      .map(([, file]) => file ?? '')
      .filter((file) => !file.startsWith('data:'));
    expect(files.length).toBeGreaterThan(2);
    for (const file of files) {
      expect(file).toMatch(/^\/[^/]/);
      const answer = await send(api, { path: file, key: null });
      expect([answer.status, answer.bytes.length > 100], file).toEqual([200, true]);
      if (file.endsWith('.css'))
        expect(answer.bytes.toString()).not.toMatch(/@import|url\(\s*["']?(?:https?:)?\/\//);
    }
  });
});
