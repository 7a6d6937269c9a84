import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiServer } from '../../../bin/wiring/apiServer.js';
import { MIGRATIONS } from '../../../db/migrations/index.js';
import { createLogger } from '../../../platform/logger.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { testBlobs, testExtractor } from '../../support/blobs.js';
import { testConnectors, testSecretKeys } from '../../support/connectors.js';
import { testOutbound } from '../../support/outbound.js';
import { anEvent, ingest, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const get = (path: string, headers: Record<string, string> = {}) => send(api, { path, key: null, headers });

describe('/healthz', () => {
  it('answers without a key and without the database, and shows no version', async () => {
    const answer = await get('/healthz');
    expect([answer.status, answer.body]).toEqual([200, { status: 'ok' }]);
  });
});

describe('/readyz', () => {
  it('is ready where Postgres is up and current; the workflow engine is named and does not fail it', async () => {
    const answer = await get('/readyz');
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        status: 'degraded',
        postgres: 'up',
        temporal: 'degraded',
        storage: 'ok',
        reasons: [expect.stringMatching(/^The workflow engine does not answer: /)],
      },
    ]);
  });

  it('is not ready while a migration is missing', async () => {
    const last = MIGRATIONS.at(-1)?.name;
    await api.database.superuser.query('delete from schema_migrations where name = $1', [last]);
    const answer = await get('/readyz');
    expect([answer.status, answer.body.postgres]).toEqual([503, 'behind']);
    expect(answer.headers['retry-after']).toBe('2');
    await api.database.superuser.query('insert into schema_migrations (name) values ($1)', [last]);
    expect((await get('/readyz')).status).toBe(200);
  });
});

describe('/metrics', () => {
  it('counts requests by operation and ingested items by what became of them, without names of tenants or models', async () => {
    await ingest(api, [anEvent({ model: 'gpt-4o', team_id: 'secret-team' })]);
    await api.post('/api/v1/ingest/events', { events: [anEvent({ cost_usd: -1 })] }, api.ingestKey);
    const answer = await get('/metrics');
    expect([answer.status, String(answer.headers['content-type']).split(';')[0]]).toEqual([
      200,
      'text/plain',
    ]);
    const text = answer.bytes.toString();
    expect(text).toMatch(/^trueup_ingest_items_total\{outcome="stored"\} 1$/m);
    expect(text).toMatch(/^trueup_ingest_rejections_total\{reason="invalid_number"\} 1$/m);
    expect(text).toMatch(
      /^trueup_http_request_duration_seconds_count\{operation="ingestEvents",status="202"\} 2$/m,
    );
    for (const secret of ['secret-team', 'gpt-4o', api.orgId, api.orgId.replaceAll('-', ''), api.adminKey])
      expect(text).not.toContain(secret);
    for (const line of text.split('\n'))
      if (line !== '' && !line.startsWith('#')) expect(line).toMatch(/^trueup_/);
  });

  it('need the token where one is set, and are closed where the service is reachable and none is', async () => {
    const cases = [
      [
        { loopback: true, metricsToken: 'token' },
        { 'Bearer token': 200, 'Bearer wrong': 401, '': 401 },
      ],
      [
        { loopback: false, metricsToken: 'token' },
        { 'Bearer token': 200, '': 401 },
      ],
      [
        { loopback: false, metricsToken: undefined },
        { '': 401, 'Bearer undefined': 401 },
      ],
    ] as const;
    for (const [settings, expected] of cases) {
      const { server, close } = await createApiServer({
        ...settings,
        database: api.database.database,
        logger: createLogger({ name: 'api', level: 'silent' }),
        connectors: testConnectors(),
        blobs: testBlobs(),
        renderInvoicePage: testExtractor().renderPage,
        outbound: testOutbound(),
        secretKeys: testSecretKeys(),
        checkResponses: true,
        baseUrl: () => 'http://127.0.0.1',
        ingestMaxBodyBytes: 1_000,
        eventRetentionDays: undefined,
        temporalStatus: async () => 'up',
        moveClaim: async () => ({ kind: 'unsent' }),
        demo: { load: () => undefined, remove: async () => undefined },
        kickDispatcher: () => undefined,
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const address = server.address() as { port: number };
      const there = { baseUrl: `http://127.0.0.1:${address.port}`, adminKey: api.adminKey };
      for (const [authorization, status] of Object.entries(expected)) {
        const answer = await send(there, {
          path: '/metrics',
          key: null,
          headers: authorization === '' ? {} : { authorization },
        });
        expect(answer.status, `${JSON.stringify(settings)} ${authorization}`).toBe(status);
      }
      expect((await send(there, { path: '/readyz', key: null })).body).toMatchObject({
        status: 'ok',
        temporal: 'up',
      });
      await close();
    }
  });
});

describe('every answer', () => {
  it('has a request id, is not to be stored and not to be sniffed, save what is public and dated', async () => {
    for (const path of ['/healthz', '/readyz', '/api/v1/events', '/nowhere', '/metrics']) {
      const answer = await send(api, { path });
      expect(answer.headers['cache-control'], path).toBe('no-store');
      expect(answer.headers['x-content-type-options'], path).toBe('nosniff');
      expect(answer.headers['x-request-id'], path).toBeDefined();
      expect(answer.headers['x-powered-by'], path).toBeUndefined();
    }
    expect((await get('/api/v1/pricing/table')).headers['cache-control']).toMatch(/^public, /);
  });
});
