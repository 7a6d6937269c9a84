import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { foldAll } from '../../db/support/compareTotals.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anAttribute, anEvent, aSpan, ingest } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

function traceOf(service: string, scope: string, ...spans: unknown[]) {
  return {
    resourceSpans: [
      {
        resource: { attributes: [anAttribute('service.name', service)] },
        scopeSpans: [{ scope: { name: scope }, spans }],
      },
    ],
  };
}

async function health(org: TestOrganization) {
  const { status, body } = await api.get('/api/v1/ingest/health', org.adminKey);
  expect(status).toBe(200);
  return body;
}

const unmetered = { 'gen_ai.usage.input_tokens': undefined, 'gen_ai.usage.output_tokens': undefined };

describe('ingest health', () => {
  it('is empty before anything came in, over the last 30 days', async () => {
    const org = await api.addOrganization();
    const before = Date.now();
    const body = await health(org);
    expect(body).toMatchObject({ sources: [], instrumented_twice: [] });
    const month = 30 * 86_400_000;
    expect(Date.parse(body.since)).toBeGreaterThanOrEqual(before - month);
    expect(Date.parse(body.since)).toBeLessThanOrEqual(Date.now() - month);
  });

  it('shows by service and scope what came in and what is wrong with it, folded or not', async () => {
    const org = await api.addOrganization();
    const send = (body: object) => api.post('/api/v1/ingest/trace', body, org.ingestKey);
    await send(
      traceOf(
        'checkout',
        'scope-a',
        aSpan(),
        aSpan(unmetered),
        aSpan({ 'gen_ai.request.model': 'model-without-price' }),
      ),
    );
    await send(traceOf('checkout', 'scope-b', aSpan({ 'server.address': 'gateway.example.com' })));
    await send(
      traceOf(
        'checkout',
        'scope-a',
        aSpan({ 'gen_ai.usage.input_tokens': -1 }),
        aSpan({ 'gen_ai.usage.input_tokens': -1 }),
      ),
    );
    await send(
      traceOf('search', 'scope-a', aSpan({ 'gen_ai.system': 'nobody', 'gen_ai.request.model': 'x' })),
    );
    await ingest(
      api,
      [
        anEvent({
          _service: { name: 'batch' },
          timestamp: new Date(Date.now() - 31 * 86_400_000).toISOString(),
        }),
      ],
      org.ingestKey,
    );
    for (const fold of [false, true]) {
      if (fold) await foldAll(api.database.superuser, org.orgDb);
      const { sources } = await health(org);
      const facts = Object.fromEntries(
        sources.map(({ service, scope, last_seen, ...rest }: Record<string, unknown>) => [
          `${service} ${scope}`,
          { seen: last_seen !== null, ...rest },
        ]),
      );
      const none = {
        seen: true,
        calls: 0,
        unmetered: 0,
        unpriced: 0,
        price_gaps: 0,
        unknown_biller: 0,
        not_counted: 0,
        rejected: {},
      };
      expect(facts).toEqual({
        'checkout scope-a': { ...none, calls: 3, unmetered: 1, unpriced: 2, rejected: { invalid_number: 2 } },
        'checkout scope-b': { ...none, calls: 1, unknown_biller: 1, price_gaps: 1 },
        'search scope-a': { ...none, seen: false, rejected: { unknown_provider: 1 } },
      });
    }
  });

  it('names a service that two scopes report, with the calls and dollars that look counted twice', async () => {
    const org = await api.addOrganization();
    const start = BigInt(Date.now() - 3_600_000) * 1_000_000n;
    const spans = (offset: bigint) =>
      Array.from({ length: 6 }, (_, index) => {
        const at = start + BigInt(index) * 60_000_000_000n + offset;
        return aSpan(
          { 'gen_ai.usage.input_tokens': 1_000 + index },
          { startTimeUnixNano: String(at), endTimeUnixNano: String(at + 1_000_000n) },
        );
      });
    await api.post('/api/v1/ingest/trace', traceOf('checkout', 'scope-a', ...spans(0n)), org.ingestKey);
    await api.post(
      '/api/v1/ingest/trace',
      traceOf('checkout', 'scope-b', ...spans(3_000_000n)),
      org.ingestKey,
    );
    await api.post('/api/v1/ingest/trace', traceOf('search', 'scope-b', ...spans(5_000_000n)), org.ingestKey);
    const { instrumented_twice } = await health(org);
    expect(instrumented_twice).toEqual([
      {
        service: 'checkout',
        scopes: ['scope-a', 'scope-b'],
        calls: 6,
        cost_usd: expect.any(Number),
        counted_scopes: [],
        message: expect.stringContaining(
          'service checkout is instrumented twice: scope-a and scope-b; 6 calls, $',
        ),
      },
    ]);
    const { events } = (await api.get('/api/v1/events', org.adminKey)).body;
    expect(events.length).toBe(18);
    const oneReport = events
      .filter((_: unknown, index: number) => index % 3 === 0)
      .reduce((sum: number, event: { cost_usd: number }) => sum + event.cost_usd, 0);
    expect(instrumented_twice[0].cost_usd).toBeCloseTo(oneReport, 9);
  });

  it('takes a few coincidences for what they are, and shows nothing of another organization', async () => {
    const org = await api.addOrganization();
    for (const scope of ['scope-a', 'scope-b']) {
      const times = Array.from({ length: 4 }, (_, index) =>
        String(BigInt(Date.now() - 3_600_000 + index * 60_000) * 1_000_000n),
      );
      await api.post(
        '/api/v1/ingest/trace',
        traceOf(
          'checkout',
          scope,
          ...times.map((time) => aSpan({}, { startTimeUnixNano: time, endTimeUnixNano: time })),
        ),
        org.ingestKey,
      );
    }
    expect((await health(org)).instrumented_twice).toEqual([]);
    const other = await health(await api.addOrganization());
    expect([other.sources, other.instrumented_twice]).toEqual([[], []]);
  });
});
