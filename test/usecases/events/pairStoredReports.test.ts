import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import { alertsByEvent, putPolicy } from '../../api/support/policies.js';
import { anAttribute, aSpan } from '../../api/support/requests.js';
import { compareStored, foldAll } from '../../db/support/compareTotals.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { untilNothingHoldsBack } from '../../support/horizon.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const SDK = 'com.anthropic.sdk.python';
const OPENINFERENCE = 'openinference.instrumentation.anthropic';
const START = BigInt(Date.now() - 600_000) * 1_000_000n;

let api: TestApi;
let prices: PriceBook;
beforeAll(async () => {
  api = await startTestApi();
  prices = await loadPriceBook(api.database.database);
});
afterAll(() => api.close());

interface Told {
  scope: string;
  /** Milliseconds since the first call. */
  from?: number;
  to?: number;
  resource?: Record<string, string | number>;
  responseId?: string | undefined;
  output?: number;
  traceId?: string;
  spanId?: string;
  parentSpanId?: string;
  extra?: Record<string, unknown>;
}

const hex = (bytes: number) => randomBytes(bytes).toString('hex');
const INSTANCE = { 'service.name': 'checkout', 'service.instance.id': 'instance-1' };

/** A span of a call in a trace of its own, as the Anthropic SDK or another instrumentation reports it. */
function resourceSpansOf({ scope, from = 0, to = 1_000, resource = INSTANCE, ...told }: Told): unknown {
  const nanos = (ms: number) => String(START + BigInt(ms) * 1_000_000n);
  const span = aSpan(
    {
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.system': undefined,
      'gen_ai.request.model': 'claude-sonnet-4-5',
      'gen_ai.usage.input_tokens': 1_250,
      'gen_ai.usage.output_tokens': told.output ?? 300,
      'gen_ai.response.id': told.responseId,
      ...told.extra,
    },
    {
      traceId: told.traceId ?? hex(16),
      spanId: told.spanId ?? hex(8),
      ...(told.parentSpanId === undefined ? {} : { parentSpanId: told.parentSpanId }),
      startTimeUnixNano: nanos(from),
      endTimeUnixNano: nanos(to),
    },
  );
  const attributes = Object.entries(resource).map(([key, value]) => anAttribute(key, value));
  return { resource: { attributes }, scopeSpans: [{ scope: { name: scope }, spans: [span] }] };
}

/** Joins the scopes of equal resources into one entry, as exporters do. */
async function send(org: TestOrganization, ...told: Told[]): Promise<void> {
  const entries = new Map<string, { resource: unknown; scopeSpans: unknown[] }>();
  for (const one of told) {
    const { resource, scopeSpans } = resourceSpansOf(one) as { resource: unknown; scopeSpans: unknown[] };
    const key = JSON.stringify(resource);
    const entry = entries.get(key) ?? { resource, scopeSpans: [] };
    entry.scopeSpans.push(...scopeSpans);
    entries.set(key, entry);
  }
  const { status } = await api.post('/v1/traces', { resourceSpans: [...entries.values()] }, org.ingestKey);
  expect(status).toBe(202);
}

async function sweep(): Promise<void> {
  await untilNothingHoldsBack(api.database.superuser);
  while ((await sweepTraces(api.database.database, { of: async () => prices })).more);
}

interface Listed {
  id: string;
  superseded_by: string | null;
  request_id: string;
  cost_usd: number;
  cache_creation_1h: number | null;
  team_id: string | null;
}

async function list(org: TestOrganization, superseded = false): Promise<Listed[]> {
  const { body } = await api.get(`/api/v1/events?limit=1000&include_superseded=${superseded}`, org.adminKey);
  return body.events;
}

/** The number of counted calls, as listed and in totals. */
async function countCalls(org: TestOrganization): Promise<number> {
  const events = await list(org);
  const { body } = await api.get('/api/v1/usage/summary', org.adminKey);
  expect(body.call_count).toBe(events.length);
  expect(body.total_cost_usd).toBeCloseTo(
    events.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
    9,
  );
  return events.length;
}

const pairedOf = async (org: TestOrganization) =>
  (await api.get('/api/v1/ingest/health', org.adminKey)).body.paired_reports;

const sdk = (told: Partial<Told> = {}): Told => ({
  scope: SDK,
  from: 2,
  to: 998,
  responseId: `msg_${hex(8)}`,
  ...told,
});
const outer = (told: Partial<Told> = {}): Told => ({ scope: OPENINFERENCE, ...told });

describe('two reports of one call without a common id', () => {
  it('are one event at once if one request has both, also of a process that nothing names', async () => {
    const org = await api.addOrganization();
    const resource = { 'service.name': 'checkout' };
    await send(org, outer({ resource }), sdk({ resource, responseId: 'msg_1' }));
    expect(await countCalls(org)).toBe(1);
    const all = await list(org, true);
    expect(all).toHaveLength(2);
    const counted = all.find(({ superseded_by }) => superseded_by === null);
    expect(counted?.request_id).toBe('msg_1');
    expect(all.find(({ superseded_by }) => superseded_by !== null)?.superseded_by).toBe(counted?.id);
  });

  it.each([
    ['the one that counts first', [sdk(), outer()]],
    ['the one that counts last', [outer(), sdk()]],
  ])('are one event after the next sweep if they come in two requests, %s', async (_, told) => {
    const org = await api.addOrganization();
    for (const one of told) await send(org, one);
    expect(await countCalls(org)).toBe(2);
    await foldAll(api.database.superuser, org.orgDb);
    await sweep();
    expect(await countCalls(org)).toBe(1);
    await sweep();
    expect(await countCalls(org)).toBe(1);
    await foldAll(api.database.superuser, org.orgDb);
    await compareStored(api.database.superuser, org.orgDb.orgId);
  });

  it('are found when the sweep comes between them', async () => {
    const org = await api.addOrganization();
    await send(org, outer());
    await sweep();
    await send(org, sdk());
    await sweep();
    expect(await countCalls(org)).toBe(1);
    // The service is known to have both from now on.
    await send(org, outer({ from: 60_000, to: 61_000 }));
    await sweep();
    await send(org, sdk({ from: 60_000, to: 61_000 }));
    await sweep();
    expect(await countCalls(org)).toBe(2);
  });

  it.each([
    ['half an hour later', -30 * 60_000],
    ['52 milliseconds earlier', 52],
    ['half an hour earlier', 30 * 60_000],
  ])('are one event if the other instrumentation first reported a call that began %s', async (_, from) => {
    const org = await api.addOrganization();
    const late = { from, to: from + 1 };
    await send(org, sdk({ from: 0, to: 1 }), sdk(late));
    await sweep();
    await send(org, outer({ from: 0, to: 1 }));
    await sweep();
    expect(await countCalls(org)).toBe(2);
    await send(org, outer(late));
    await sweep();
    expect(await countCalls(org)).toBe(2);
  });

  it('complete each other: labels and lifetimes of cache writes', async () => {
    const org = await api.addOrganization();
    const write = { 'gen_ai.usage.cache_creation.input_tokens': 1_000 };
    const split = {
      ...write,
      'anthropic.usage.cache_creation.ephemeral_5m_input_tokens': 400,
      'anthropic.usage.cache_creation.ephemeral_1h_input_tokens': 600,
    };
    await send(org, outer({ extra: { ...write, team_id: 'growth' } }));
    await send(org, sdk({ extra: split, responseId: 'msg_2' }));
    await sweep();
    expect(await list(org)).toEqual([
      expect.objectContaining({ request_id: 'msg_2', cache_creation_1h: 600, team_id: 'growth' }),
    ]);
  });

  it.each<[string, Record<string, string | number>, Record<string, string | number>]>([
    ['two service.instance.id', INSTANCE, { ...INSTANCE, 'service.instance.id': 'instance-2' }],
    [
      'two process ids on a host',
      { 'host.name': 'web-1', 'process.pid': 7 },
      { 'host.name': 'web-1', 'process.pid': 8 },
    ],
    ['two hosts', { 'host.name': 'web-1', 'process.pid': 7 }, { 'host.name': 'web-2', 'process.pid': 7 }],
    ['an instance and none', INSTANCE, { 'service.name': 'checkout' }],
    ['two versions of a resource', INSTANCE, { ...INSTANCE, 'service.version': '2' }],
  ])('are two calls if their resources name %s, in one request and in two', async (_, one, other) => {
    for (const together of [true, false]) {
      const org = await api.addOrganization();
      const told = [outer({ resource: one }), sdk({ resource: other })] as const;
      if (together) await send(org, ...told);
      else for (const report of told) await send(org, report);
      await sweep();
      expect(await countCalls(org)).toBe(2);
    }
  });

  it('are one call if their resources name one process id on one host', async () => {
    const org = await api.addOrganization();
    const resource = { 'host.name': 'web-1', 'process.pid': 7 };
    await send(org, outer({ resource }));
    await send(org, sdk({ resource }));
    await sweep();
    expect(await countCalls(org)).toBe(1);
  });

  it('are two calls in two requests if nothing names the process', async () => {
    const org = await api.addOrganization();
    const resource = { 'service.name': 'checkout' };
    await send(org, outer({ resource }));
    await send(org, sdk({ resource }));
    await sweep();
    expect(await countCalls(org)).toBe(2);
  });

  it('give a later report the partner of another one that can have a new partner', async () => {
    const org = await api.addOrganization();
    await send(org, outer({ from: 0, to: 50 }), sdk({ from: 0, to: 200 }));
    await send(org, outer({ from: 120, to: 150 }));
    await sweep();
    expect(await countCalls(org)).toBe(2);
    await send(org, sdk({ from: 0, to: 40 }));
    await sweep();
    expect(await countCalls(org)).toBe(2);
  });

  it('are counted by ingest health, with the reports that have no partner', async () => {
    const org = await api.addOrganization();
    await send(org, outer(), sdk(), sdk({ from: 60_000, to: 61_000 }));
    await send(org, outer({ from: 120_000, to: 121_000 }));
    await send(org, sdk({ from: 120_000, to: 121_000 }));
    await sweep();
    const cost = (1_250 * 3 + 300 * 15) / 1e6;
    expect(await pairedOf(org)).toEqual([
      {
        service: 'checkout',
        scopes: [SDK, OPENINFERENCE],
        pairs: 2,
        leftovers: 1,
        not_counted_usd: expect.closeTo(2 * cost, 9),
        message: expect.stringContaining('reported 2 calls without a common id; each counts once'),
      },
    ]);
    expect(await countCalls(org)).toBe(3);
    expect(await pairedOf(await api.addOrganization())).toEqual([]);
  });

  it('leave one alert, which belongs to the event that counts', async () => {
    for (const together of [true, false]) {
      const org = await api.addOrganization();
      await putPolicy(api, org, 'approved_models', { models: ['claude-opus-4-5'] });
      if (together) await send(org, outer(), sdk());
      else {
        await send(org, outer());
        await send(org, sdk());
      }
      await sweep();
      const [counted] = await list(org);
      expect(await alertsByEvent(api, org.adminKey)).toEqual([`approved_models of ${counted?.id}`]);
    }
  });
});

describe('reports of which some are linked by a trace', () => {
  it('keep the place of their call: equal calls at once stay two', async () => {
    for (const order of [
      [0, 1, 2, 3],
      [0, 3, 1, 2],
      [3, 0, 2, 1],
      [1, 2, 0, 3],
    ]) {
      const org = await api.addOrganization();
      const traces = [hex(16), hex(16)];
      const told = traces.flatMap((traceId) => {
        const spanId = hex(8);
        return [outer({ traceId, spanId }), sdk({ traceId, parentSpanId: spanId })];
      });
      for (const place of order) {
        await send(org, told[place] as Told);
        await sweep();
      }
      expect(await countCalls(org)).toBe(2);
    }
  });

  it('keep the place of their call where the paired report would count in its trace', async () => {
    // Without response ids, the scope that counts in pairs is the outer one in the trace.
    const org = await api.addOrganization();
    const [traceId, spanId] = [hex(16), hex(8)];
    const plain = (told: Partial<Told>) => ({ ...sdk(told), responseId: undefined });
    await send(org, plain({}));
    await send(org, outer({ traceId, spanId }));
    await sweep();
    expect(await countCalls(org)).toBe(1);
    await send(org, plain({ traceId, parentSpanId: spanId }));
    await sweep();
    expect(await countCalls(org)).toBe(2);
  });
});

interface MadeCall {
  process: string;
  output: number;
  from: number;
  length: number;
  slack: number;
}

/** One scope reports three calls at once; the other one two of them, and the last one, which began later, after a sweep. */
const LATE_OTHER: [MadeCall[], [number, number][], boolean[]] = [
  [0, 0, 52].map((from) => ({ process: 'a', output: 300, from, length: 1, slack: 0 })),
  [1, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0].map((request) => [0, request]),
  [true, true, false, false, false],
];

describe('equal calls at once of two processes', () => {
  it('are as many calls as were made, in any order and any split over requests and sweeps', async () => {
    const call: fc.Arbitrary<MadeCall> = fc.record({
      process: fc.constantFrom('a', 'b'),
      output: fc.constantFrom(300, 301),
      from: fc.integer({ min: 0, max: 300 }),
      length: fc.integer({ min: 1, max: 300 }),
      slack: fc.integer({ min: 0, max: 45 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { minLength: 1, maxLength: 6 }),
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 4 })), { minLength: 12, maxLength: 12 }),
        fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
        async (calls, places, sweeps) => {
          const org = await api.addOrganization();
          const reports = calls.flatMap(({ process, output, from, length, slack }) => {
            const both = { output, resource: { 'service.name': 'shop', 'service.instance.id': process } };
            return [
              outer({ ...both, from, to: from + length }),
              sdk({ ...both, from: from - slack, to: from + length + slack }),
            ];
          });
          const requests: Told[][] = [[], [], [], [], []];
          const ordered = reports
            .map((report, index) => ({ report, place: places[index] as [number, number] }))
            .sort((one, other) => one.place[0] - other.place[0]);
          for (const { report, place } of ordered) requests[place[1]]?.push(report);
          for (const [index, request] of requests.entries()) {
            if (request.length > 0) await send(org, ...request);
            if (sweeps[index]) await sweep();
          }
          await sweep();
          expect(await countCalls(org)).toBe(calls.length);
          await foldAll(api.database.superuser, org.orgDb);
          await compareStored(api.database.superuser, org.orgDb.orgId);
        },
      ),
      { numRuns: propertyRuns(12), examples: [LATE_OTHER] },
    );
  });
});
