import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SpanTree } from '../../../domain/events/callGroups.js';
import type { CallRecord, SpanLink } from '../../../domain/events/event.js';
import { resolveCalls, resolveCallsInSteps } from '../../../domain/events/resolveCalls.js';
import { aCall, aUsage } from '../../support/aCall.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { threadCpuMs } from '../../support/threadCpu.js';
import { PlainTree, resolvePlainly } from './plainResolver.js';

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
const START = 1_790_000_000_000_000n;

/** The fields of one call: few values each, so that calls meet often. */
const sayings = fc.record({
  model: fc.constantFrom('gpt-4o', 'gpt-4o-2024-08-06', 'gpt-4o-mini'),
  responseModel: fc.constantFrom(null, null, 'gpt-4o-2024-08-06', 'o3'),
  responseId: fc.constantFrom(null, null, null, 'a', 'b', 'c'),
  requestId: fc.constantFrom('r', 's', 't'),
  provider: fc.constantFrom('openai' as const, 'openai' as const, 'azure_openai' as const),
  billerFromHost: fc.boolean(),
  status: fc.constantFrom('ok' as const, 'ok' as const, 'ok' as const, 'error' as const, 'blocked' as const),
  tokens: fc.constantFrom(null, 1, 2, 3),
  reportedClasses: fc.constantFrom(0, 2, 2, 2, 3),
  start: fc.nat(4),
  end: fc.nat(4),
  scopeName: fc.constantFrom('one', 'two'),
  userId: fc.constantFrom(null, 'u', 'v'),
});
type Saying = typeof sayings extends fc.Arbitrary<infer S> ? S : never;

function callOf(saying: Saying, trace: SpanLink | null): CallRecord {
  const { tokens, start, end, ...rest } = saying;
  return aCall({
    ...rest,
    billedBy: rest.provider,
    startMicros: START + BigInt(start),
    endMicros: START + 10n + BigInt(end),
    usage: tokens === null ? null : aUsage({ input: tokens, output: 1 }),
    trace,
  });
}

/** A span by numbers; undefined: no parent. */
interface Placed {
  trace: number;
  span: number;
  parent: number | undefined;
}

function linkOf({ trace, span, parent }: Placed): SpanLink {
  return {
    traceId: hex(trace + 1, 32),
    spanId: hex(span + 1, 16),
    parentSpanId: parent === undefined ? null : hex(parent + 1, 16),
  };
}

/** Any span inside any other one, itself and circles among them, and one span reported with several parents. */
const anywhere = fc.record({
  trace: fc.constantFrom(0, 0, 0, 1),
  span: fc.nat(12),
  parent: fc.option(fc.nat(12), { nil: undefined, freq: 5 }),
});
const anyWorld = fc
  .array(fc.tuple(anywhere, fc.option(sayings, { nil: null, freq: 3 })), { minLength: 2, maxLength: 24 })
  .map(worldOf);

/** A tree: each span inside one that was made before it, mostly a near one, so that chains become long. */
const tree = fc
  .array(fc.tuple(fc.nat(3), fc.option(sayings, { nil: null, freq: 4 })), { minLength: 2, maxLength: 40 })
  .chain((items) =>
    fc.shuffledSubarray(
      items.map(([back, saying], index) => {
        const parent = index === 0 ? undefined : Math.max(0, index - 1 - back);
        return [{ trace: 0, span: index, parent }, saying] as [Placed, Saying | null];
      }),
      { minLength: items.length, maxLength: items.length },
    ),
  )
  .map(worldOf);

/** A chain that is longer than kinship reaches, with branches, of which only a few spans are calls; or a circle. */
const longWay = fc
  .record({
    length: fc.integer({ min: 250, max: 560 }),
    isCircle: fc.boolean(),
    calls: fc.array(fc.tuple(fc.nat(559), fc.boolean(), sayings), { minLength: 2, maxLength: 12 }),
  })
  .map(({ length, isCircle, calls }) => {
    const chain = Array.from({ length }, (_, span): [Placed, Saying | null] => [
      { trace: 0, span, parent: span === 0 ? (isCircle ? length - 1 : undefined) : span - 1 },
      null,
    ]);
    const hung = calls.map(([at, isOnChain, saying], index): [Placed, Saying | null] => {
      const span = at % length;
      return isOnChain
        ? [{ trace: 0, span, parent: chain[span]?.[0].parent }, saying]
        : [{ trace: 0, span: 1_000 + index, parent: span }, saying];
    });
    return worldOf([...chain, ...hung]);
  });

interface World {
  calls: CallRecord[];
  links: SpanLink[];
}

function worldOf(items: readonly [Placed, Saying | null][]): World {
  const world: World = { calls: [], links: [] };
  for (const [placed, saying] of items) {
    if (saying === null) world.links.push(linkOf(placed));
    else world.calls.push(callOf(saying, linkOf(placed)));
  }
  return world;
}

const bare = (resolved: ReturnType<typeof resolveCalls>) =>
  resolved.map(({ call: { prompts: _prompts, ...call }, supersededBy }) => ({ call, supersededBy }));

describe('resolving the calls of a batch', () => {
  it.each([
    ['spans with any parent, circles among them', anyWorld, propertyRuns(500)],
    ['trees', tree, propertyRuns(250)],
    ['chains and circles longer than kinship reaches', longWay, propertyRuns(40)],
  ])('resolves %s as the plain rules do', (_name, worlds, numRuns) => {
    fc.assert(
      fc.property(worlds, ({ calls, links }) => {
        expect(bare(resolveCalls(calls, links))).toEqual(bare(resolvePlainly(calls, links)));
      }),
      { numRuns, verbose: 1 },
    );
  });

  it('resolves calls without a trace, and a duplicate call, as the plain rules do', () => {
    const given = fc.array(fc.tuple(sayings, fc.option(anywhere, { nil: null }), fc.boolean()), {
      minLength: 2,
      maxLength: 12,
    });
    fc.assert(
      fc.property(given, (items) => {
        const calls = items.flatMap(([saying, placed, isTwice]) => {
          const call = callOf(saying, placed === null ? null : linkOf(placed));
          return isTwice ? [call, call] : [call];
        });
        expect(bare(resolveCalls(calls, []))).toEqual(bare(resolvePlainly(calls, [])));
      }),
      { numRuns: propertyRuns(250), verbose: 1 },
    );
  });

  it('nests spans as a walk up the trace does', () => {
    const links = fc.array(anywhere, { maxLength: 16 }).map((items) => items.map(linkOf));
    fc.assert(
      fc.property(links, fc.array(anywhere, { maxLength: 6 }), (known, others) => {
        const [quick, plain] = [new SpanTree(known), new PlainTree(known)];
        const asked = [...known, ...others.map(linkOf)];
        for (const one of asked)
          for (const other of asked) expect(quick.isInside(one, other)).toBe(plain.isInside(one, other));
      }),
      { numRuns: propertyRuns(125) },
    );
  });
});

const COUNT = 10_000;
/** Longest time of a step, and of all steps, on the processor. */
const STEP_MS_MAX = 50;
const ALL_MS_MAX = 2_000;
const plain: Saying = {
  model: 'gpt-4o',
  responseModel: null,
  responseId: null,
  requestId: 'r',
  provider: 'openai',
  billerFromHost: false,
  status: 'ok',
  tokens: 1,
  reportedClasses: 2,
  start: 0,
  end: 0,
  scopeName: 'one',
  userId: null,
};
const LEVELS = 256;
const shapes: [
  name: string,
  parent: (index: number) => number | undefined,
  say?: (index: number) => object,
][] = [
  ['a star', (index) => (index === 0 ? undefined : 0)],
  ['a chain', (index) => (index === 0 ? undefined : index - 1)],
  ['a chain from its end', (index) => (index === COUNT - 1 ? undefined : index + 1)],
  ['a comb', (index) => (index === 0 ? undefined : index % 2 === 1 ? index - 1 : index - 2)],
  ['a brush', (index) => (index === 0 ? undefined : Math.min(index - 1, LEVELS))],
  [
    'a brush of two models',
    (index) => (index === 0 ? undefined : Math.min(index - 1, LEVELS)),
    (index) => ({ model: index <= LEVELS && index > 0 ? 'gpt-4o' : 'gpt-4o-mini' }),
  ],
  [
    'a brush from its end, of two models',
    (index) => (index === COUNT - 1 ? undefined : Math.max(index + 1, COUNT - LEVELS)),
    (index) => ({ model: index >= COUNT - LEVELS && index < COUNT - 1 ? 'gpt-4o' : 'gpt-4o-mini' }),
  ],
  ['a circle', (index) => (index + 1) % COUNT],
  ['a circle with a brush', (index) => (index < LEVELS ? (index + 1) % LEVELS : index % LEVELS)],
  ['one response id', (index) => (index === 0 ? undefined : 0), () => ({ responseId: 'a' })],
  [
    'one response id in a brush',
    (index) => (index === 0 ? undefined : Math.min(index - 1, LEVELS)),
    () => ({ responseId: 'a' }),
  ],
  ['calls without usage', (index) => (index === 0 ? undefined : 0), () => ({ tokens: null })],
];

describe('resolving a trace of 10,000 calls', () => {
  it.each(shapes)('takes short steps for %s', (_name, parent, say) => {
    const calls = Array.from({ length: COUNT }, (_, index) =>
      callOf({ ...plain, ...say?.(index) }, linkOf({ trace: 0, span: index, parent: parent(index) })),
    );
    const steps = resolveCallsInSteps(calls, []);
    let longestMs = 0;
    let allMs = 0;
    for (let isDone = false; !isDone; ) {
      const before = threadCpuMs();
      isDone = steps.next().done === true;
      const tookMs = threadCpuMs() - before;
      longestMs = Math.max(longestMs, tookMs);
      allMs += tookMs;
    }
    expect(longestMs).toBeLessThan(STEP_MS_MAX);
    expect(allMs).toBeLessThan(ALL_MS_MAX);
  });
});
