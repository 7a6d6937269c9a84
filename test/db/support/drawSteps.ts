import fc from 'fast-check';
import type { UsageDimension, UsageFilter, UsageQuery } from '../../../db/usage/usage.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { microsOfDay } from '../../../domain/period.js';
import { aCall, aUsage } from '../../support/aCall.js';

/** Drawn calls start within these days. */
export const FIRST = microsOfDay('2026-02-02');
export const DAYS = 3n;
export const HOUR = 3_600_000_000n;

/** A question about totals, without paging. */
export type Question = Pick<UsageQuery, 'filter' | 'fromMicros' | 'toMicros'> & { dimension: UsageDimension };

const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);

/** Times in three days, often exactly on an hour or a day, or a microsecond before. */
const time: fc.Arbitrary<bigint> = fc
  .tuple(fc.bigInt({ min: 0n, max: DAYS * 24n - 1n }), oneOf(0n, 1n, HOUR - 1n, 1_234_567_891n))
  .map(([hour, inside]) => FIRST + hour * HOUR + inside);

const count = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 5_000 }),
  fc.integer({ min: 0, max: 1_000_000_000 }),
);

const usage = fc
  .record({ input: count, output: count, cacheRead: count, cacheCreation: count, long: count, audio: count })
  .map(({ long, audio, ...counts }) =>
    aUsage({
      ...counts,
      cacheCreation5m: long <= counts.cacheCreation ? counts.cacheCreation - long : null,
      cacheCreation1h: long <= counts.cacheCreation ? long : null,
      inputAudio: audio,
      reasoning: Math.min(counts.output, 7),
      cached: counts.cacheRead,
    }),
  );

/** Calls whose labels, response ids and spans have so few values that they often coincide. */
const call: fc.Arbitrary<CallRecord> = fc
  .record({
    startMicros: time,
    lasts: oneOf(0n, 1_500_000n, HOUR),
    model: oneOf(['openai', 'gpt-4o'], ['openai', 'gpt-4o-mini'], ['anthropic', 'claude-sonnet-4-5'], [
      'openai',
      'no-such-model',
    ] as const),
    billedBy: oneOf('openai', 'anthropic', 'unknown') as fc.Arbitrary<CallRecord['billedBy']>,
    responseModel: oneOf(null, 'gpt-4o-2024-08-06'),
    request: fc.integer({ min: 1, max: 12 }),
    response: oneOf(null, null, 'resp_1', 'resp_2', 'resp_3'),
    span: oneOf<readonly [string, string | null] | null>(
      null,
      null,
      ['1', null],
      ['2', '1'],
      ['3', '1'],
      ['4', '3'],
    ),
    sessionId: oneOf('', 's1', 's2'),
    teamId: oneOf(null, 't1', 't2'),
    feature: oneOf(null, 'f1', 'f2'),
    projectId: oneOf(null, 'p1', 'p2'),
    userId: oneOf(null, 'u1', 'u2'),
    serviceTier: oneOf(null, 'priority', 'flex'),
    isBatch: fc.boolean(),
    status: oneOf('ok', 'ok', 'ok', 'error', 'cancelled', 'blocked') as fc.Arbitrary<CallRecord['status']>,
    kind: oneOf('sdk_event', 'otel_span') as fc.Arbitrary<CallRecord['kind']>,
    usage: fc.option(usage, { freq: 4 }),
    reportedCostPico: fc.option(fc.bigInt({ min: 0n, max: 10n ** 16n }), { freq: 2 }),
    reportedClasses: fc.integer({ min: 1, max: 4 }),
    scopeName: oneOf('a', 'b'),
    serviceName: oneOf('checkout', 'search'),
    httpStatus: oneOf(null, 200, 429),
    missing: oneOf<readonly string[]>([], [], ['cache_read'], ['output']),
  })
  .map(({ lasts, model: [provider, model], request, response, span, missing, ...rest }) =>
    aCall({
      ...rest,
      origin: { ...aCall().origin, usageMissing: [...missing] },
      provider: provider as CallRecord['provider'],
      model,
      endMicros: rest.startMicros + lasts,
      responseId: response,
      requestId: response ?? `req_${request}`,
      trace: span && {
        traceId: '0123456789abcdef0123456789abcdef',
        spanId: span[0].padStart(16, '0'),
        parentSpanId: span[1]?.padStart(16, '0') ?? null,
      },
    }),
  );

export const filter: fc.Arbitrary<UsageFilter> = oneOf<UsageFilter>(
  {},
  {},
  { provider: 'openai' },
  { model: 'gpt-4o' },
  { teamId: 't1' },
  { teamId: 't1', feature: 'f2' },
  { sessionId: 's1' },
  { kind: 'otel_span' },
  { model: 'gpt-4o', sessionId: 's2' },
  { projectId: 'p1' },
  { boundProjectId: 'p1' },
  { boundProjectId: 'p2' },
  { boundProjectId: 'p1', teamId: 't1' },
  { boundProjectId: 'p1', projectId: 'p2' },
  { boundProjectId: 'p1', kind: 'otel_span' },
);
export const DIMENSIONS = [
  'model',
  'provider',
  'team',
  'feature',
  'project',
  'key',
  'user',
  'session',
  'day',
] as const;
export const question = fc.record({
  dimension: oneOf<UsageDimension>(...DIMENSIONS),
  filter,
  fromMicros: fc.option(time, { nil: undefined }),
  toMicros: fc.option(time, { nil: undefined }),
});

/** Something that happens to an organization's events, or a read of their totals. */
export type Step =
  | { do: 'ingest'; batches: CallRecord[][]; withFold: boolean }
  | { do: 'repeat' }
  | { do: 'fold' }
  | { do: 'sweep' }
  /** By one of the test's price books, alone or beside other writes. */
  | { do: 'reprice'; book: number; beside: CallRecord[] }
  | { do: 'read'; questions: Question[] };

export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('ingest' as const),
      batches: fc.array(fc.array(call, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
      withFold: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'repeat' }) },
  { weight: 2, arbitrary: fc.constant<Step>({ do: 'fold' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'sweep' }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('reprice' as const),
      book: fc.integer({ min: 0, max: 2 }),
      beside: fc.array(call, { maxLength: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      questions: fc.array(question, { minLength: 1, maxLength: 3 }),
    }),
  },
);
