import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SpanTree } from '../../../domain/events/callGroups.js';
import { compareReports, isSameCall, mergeReport } from '../../../domain/events/callReport.js';
import type { CallRecord, SpanLink, TokenUsage } from '../../../domain/events/event.js';
import { resolveCalls } from '../../../domain/events/resolveCalls.js';
import type { Biller, Provider } from '../../../domain/providers.js';
import { aCall } from '../../support/aCall.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
const START = 1_790_000_000_000_000n;

/** How one report of a call differs from the truth: missing fields and other names. */
interface View {
  hasId: boolean;
  cacheRead: boolean;
  cacheWrite: boolean;
  split: boolean;
  reasoning: boolean;
  unmetered: boolean;
  dated: boolean;
  extraOutput: number;
  source: string;
  labels: [user: string | null, team: string | null, session: string | null];
  word: Provider;
  host: Biller | null;
  tier: string | null;
  stop: string;
  cost: bigint | null;
  /** Spans between this one and the one around it, which are no calls. */
  gap: number;
}

interface TrueCall {
  usage: [
    input: number,
    cacheRead: number,
    write5m: number,
    write1h: number,
    output: number,
    reasoning: number,
  ];
  chain: View[];
  apart: View[];
}

const label = (name: string) => fc.option(fc.constantFrom(name, `${name}-2`), { nil: null });
const view: fc.Arbitrary<View> = fc.record({
  hasId: fc.boolean(),
  cacheRead: fc.boolean(),
  cacheWrite: fc.boolean(),
  split: fc.boolean(),
  reasoning: fc.boolean(),
  unmetered: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
  dated: fc.boolean(),
  extraOutput: fc.constantFrom(0, 0, 0, 1),
  source: fc.constantFrom('anthropic_sdk', 'openinference', 'traceloop', 'langfuse', 'otel'),
  labels: fc.tuple(label('user'), label('team'), label('session')),
  word: fc.constantFrom<Provider>('anthropic', 'anthropic', 'openai', 'aws_bedrock'),
  host: fc.constantFrom<Biller | null>(null, null, 'unknown', 'anthropic', 'aws_bedrock'),
  tier: fc.constantFrom(null, 'auto', 'standard'),
  stop: fc.constantFrom('unknown', 'end_turn', 'stop'),
  cost: fc.constantFrom(null, 0n, 5_000n),
  gap: fc.nat(2),
});
const tokens = fc.nat(5_000);
const trueCall: fc.Arbitrary<TrueCall> = fc.record({
  usage: fc
    .tuple(tokens, tokens, tokens, tokens, tokens, fc.nat(100))
    .map(
      ([input, read, short, long, output, share]) =>
        [input, read, short, long, output, Math.floor((output * share) / 100)] as TrueCall['usage'],
    ),
  chain: fc.array(view, { minLength: 1, maxLength: 4 }),
  apart: fc.array(view, { maxLength: 2 }),
});

interface World {
  calls: CallRecord[];
  links: SpanLink[];
}

function usageOf([input, read, short, long, output, reasoning]: TrueCall['usage'], one: View): TokenUsage {
  const cacheRead = one.cacheRead ? read : 0;
  const cacheCreation = one.cacheWrite ? short + long : 0;
  const hasSplit = one.cacheWrite && one.split;
  return {
    input: input + read + short + long - cacheRead - cacheCreation,
    cacheRead,
    cacheCreation,
    cacheCreation5m: hasSplit ? short : null,
    cacheCreation1h: hasSplit ? long : null,
    output: output + one.extraOutput,
    inputAudio: 0,
    outputAudio: 0,
    reasoning: one.reasoning ? reasoning : 0,
    cached: 0,
  };
}

function tell(call: TrueCall, one: View, id: string, trace: SpanLink, order: number): CallRecord {
  const usage = one.unmetered ? null : usageOf(call.usage, one);
  const missing = [
    ...(one.cacheRead ? [] : ['cache_read']),
    ...(one.cacheWrite ? [] : ['cache_write_5m']),
    ...(one.cacheWrite && one.split ? [] : ['cache_write_1h']),
    ...(one.reasoning ? [] : ['reasoning']),
  ];
  const startMicros = START + BigInt(order) * 10n;
  return aCall({
    kind: 'otel_span',
    provider: one.word,
    billedBy: one.host ?? one.word,
    billerFromHost: one.host !== null,
    model: one.dated ? 'claude-sonnet-4-5-20250929' : 'claude-sonnet-4-5',
    startMicros,
    endMicros: START + 1_000_000n - BigInt(order) * 10n,
    responseId: one.hasId ? id : null,
    requestId: one.hasId ? id : `${trace.traceId}:${trace.spanId}`,
    sessionId: one.labels[2] ?? trace.traceId,
    userId: one.labels[0],
    teamId: one.labels[1],
    serviceTier: one.tier,
    stopReason: one.stop,
    reportedCostPico: one.cost,
    usage,
    origin: {
      usageSource: one.source,
      inputSemantics: 'inclusive',
      usageMissing: missing,
      usageRaw: null,
      usageFlags: [],
    },
    reportedClasses: usage === null ? 0 : 6 - missing.length,
    scopeName: one.source,
    trace,
  });
}

/** Every call in a separate trace, its chain nested with spans between, the others in other traces. */
function worldOf(calls: TrueCall[]): World {
  const world: World = { calls: [], links: [] };
  let next = 1;
  calls.forEach((call, index) => {
    const traceId = hex(index + 1, 32);
    let parent: string | null = null;
    const place = (): SpanLink => {
      const link = { traceId, spanId: hex(next++, 16), parentSpanId: parent };
      parent = link.spanId;
      return link;
    };
    call.chain.forEach((one) => {
      for (let step = 0; step < one.gap; step += 1) world.links.push(place());
      world.calls.push(tell(call, one, `msg_${index}`, place(), next));
    });
    for (const one of call.apart) {
      const trace = { traceId: hex(1000 + next, 32), spanId: hex(next++, 16), parentSpanId: null };
      world.calls.push(tell(call, one, `msg_${index}`, trace, next));
    }
  });
  return world;
}

/** A store as the service keeps it: live reports, all members of their calls, and every span seen. */
class Store {
  readonly #links: SpanLink[] = [];
  #groups: { live: CallRecord; members: CallRecord[] }[] = [];

  add(calls: CallRecord[], links: SpanLink[]): void {
    this.#links.push(...links, ...calls.flatMap(({ trace }) => trace ?? []));
    const resolved = resolveCalls(calls, links);
    resolved.forEach(({ call, supersededBy }, index) => {
      if (supersededBy !== null) return;
      const members = calls.filter((_, other) => other === index || resolved[other]?.supersededBy === index);
      this.#groups.push({ live: call, members });
    });
    while (this.#joinTwo());
  }

  #joinTwo(): boolean {
    const tree = new SpanTree(this.#links);
    for (const one of this.#groups) {
      for (const other of this.#groups) {
        if (one === other || !one.members.some((a) => other.members.some((b) => isSameCall(a, b, tree))))
          continue;
        const [winner, loser] =
          compareReports(other.live, one.live, tree) > 0 ? [other.live, one.live] : [one.live, other.live];
        const call = mergeReport(winner, loser, tree);
        this.#groups = this.#groups.filter((group) => group !== one && group !== other);
        this.#groups.push({ live: call, members: [...one.members, ...other.members] });
        return true;
      }
    }
    return false;
  }

  get live(): CallRecord[] {
    return inOrder(this.#groups.map((group) => group.live));
  }
}

function inOrder(calls: CallRecord[]): CallRecord[] {
  const key = ({ trace, startMicros }: CallRecord) => `${trace?.traceId}${trace?.spanId}${startMicros}`;
  return calls.map((call) => ({ ...call })).sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function liveOf({ calls, links }: World): CallRecord[] {
  return inOrder(
    resolveCalls(calls, links)
      .filter(({ supersededBy }) => supersededBy === null)
      .map(({ call }) => call),
  );
}

const worlds = fc.array(trueCall, { minLength: 1, maxLength: 3 }).map(worldOf);
/** An order of the items, and after which of them a request ends. */
const orders = fc.array(fc.tuple(fc.double({ noNaN: true }), fc.boolean()), { minLength: 60, maxLength: 60 });

type Item = { call: CallRecord } | { link: SpanLink };

function shuffled(world: World, order: [number, boolean][]): Item[] {
  const items: Item[] = [...world.calls.map((call) => ({ call })), ...world.links.map((link) => ({ link }))];
  return items
    .map((item, index) => ({ item, key: order[index % order.length]?.[0] ?? 0, index }))
    .sort((a, b) => a.key - b.key || a.index - b.index)
    .map(({ item }) => item);
}

describe('the reports of a call', () => {
  it('end in the same live call in any order inside one request', () => {
    fc.assert(
      fc.property(worlds, orders, (world, order) => {
        const items = shuffled(world, order);
        const calls = items.flatMap((item) => ('call' in item ? [item.call] : []));
        const links = items.flatMap((item) => ('link' in item ? [item.link] : []));
        expect(liveOf({ calls, links })).toEqual(liveOf(world));
      }),
      { verbose: 1, numRuns: propertyRuns(125) },
    );
  });

  it('end in the same live call in any order and any split into requests', () => {
    fc.assert(
      fc.property(worlds, orders, (world, order) => {
        const store = new Store();
        let calls: CallRecord[] = [];
        let links: SpanLink[] = [];
        shuffled(world, order).forEach((item, index) => {
          if ('call' in item) calls.push(item.call);
          else links.push(item.link);
          if (order[index % order.length]?.[1] !== true) return;
          store.add(calls, links);
          calls = [];
          links = [];
        });
        store.add(calls, links);
        expect(store.live).toEqual(liveOf(world));
      }),
      { verbose: 1, numRuns: propertyRuns(250) },
    );
  });

  it('are counted as the call that was made, whatever a wrapper blocked under its response id', () => {
    const blocked = fc.array(fc.tuple(view, fc.nat(2), fc.bigInt({ min: 0n, max: 10n ** 12n })), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(worlds, blocked, orders, (world, blocks, order) => {
        const blockedCalls = blocks.map(([one, index, preventedPico], place): CallRecord => {
          const trace = {
            traceId: hex(5_000 + place, 32),
            spanId: hex(9_000 + place, 16),
            parentSpanId: null,
          };
          const call = { usage: [9_999, 9, 9, 9, 9_999, 9], chain: [], apart: [] } as TrueCall;
          const told = { ...one, hasId: true, word: 'anthropic', host: null } as const;
          const id = `msg_${index}`;
          return {
            ...tell(call, told, id, trace, 500 + place),
            status: 'blocked',
            trace: null,
            kind: 'sdk_event',
            preventedPico,
            reportedCostPico: null,
          };
        });
        const all = { calls: [...world.calls, ...blockedCalls], links: world.links };
        const store = new Store();
        for (const item of shuffled(all, order))
          store.add('call' in item ? [item.call] : [], 'link' in item ? [item.link] : []);
        expect(store.live).toEqual(liveOf(all));
        const counted = ({
          status,
          usage,
          reportedCostPico,
          billedBy,
          responseModel,
          stopReason,
          startMicros,
        }: CallRecord) =>
          status === 'blocked'
            ? []
            : [{ usage, reportedCostPico, billedBy, responseModel, stopReason, startMicros }];
        expect(liveOf(all).flatMap(counted)).toEqual(liveOf(world).flatMap(counted));
      }),
      { verbose: 1, numRuns: propertyRuns(125) },
    );
  });

  it('contain every class that any of them reports, and each token once', () => {
    fc.assert(
      fc.property(trueCall, (call) => {
        const chain = call.chain.map((one) => ({ ...one, unmetered: false, extraOutput: 0 }));
        const [live, ...others] = liveOf(worldOf([{ ...call, chain, apart: [] }]));
        const [input, read, short, long, output, reasoning] = call.usage;
        expect(others).toEqual([]);
        const knows = (part: keyof View) => chain.some((one) => one[part] === true);
        const cacheRead = knows('cacheRead') ? read : 0;
        const cacheCreation = knows('cacheWrite') ? short + long : 0;
        expect(live?.usage).toMatchObject({
          input: input + read + short + long - cacheRead - cacheCreation,
          cacheRead,
          cacheCreation,
          output,
          reasoning: knows('reasoning') ? reasoning : 0,
        });
        if (chain.some((one) => one.cacheWrite && one.split)) {
          expect(live?.usage).toMatchObject({ cacheCreation5m: short, cacheCreation1h: long });
        }
      }),
      { verbose: 1, numRuns: propertyRuns(75) },
    );
  });

  it('are not merged any further once they are resolved', () => {
    const atOneBiller = trueCall.map(({ chain, apart, ...call }) => {
      const named = (one: View): View => ({ ...one, word: 'anthropic', host: null });
      return worldOf([{ ...call, chain: chain.map(named), apart: apart.map(named) }]);
    });
    fc.assert(
      fc.property(atOneBiller, (world) => {
        const live = liveOf(world);
        expect(
          liveOf({
            calls: live,
            links: [...world.links, ...world.calls.flatMap(({ trace }) => trace ?? [])],
          }),
        ).toEqual(live);
      }),
      { verbose: 1 },
    );
  });
});
