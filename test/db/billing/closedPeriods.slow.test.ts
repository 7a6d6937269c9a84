import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFirstMonth, findFrozenTotals, listPeriodClosings } from '../../../db/billing/periods.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import { foldUsage } from '../../../db/usage/rollups.js';
import type { UsageMeasures } from '../../../db/usage/usage.js';
import { endOfMonth, followingMonth, type Month, startOfMonth } from '../../../domain/billing/periods.js';
import { DomainError } from '../../../domain/errors.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { dayOf, isoFromMicros, MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { closePeriod } from '../../../usecases/billing/periods.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { aBatch, aCall } from '../../support/aCall.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { openTestPrices } from '../../support/prices.js';
import { askProduct, compareCells, foldAll } from '../support/compareTotals.js';
import { DIMENSIONS, FIRST, type Question, question, type Step, step } from '../support/drawSteps.js';
import { Ledger } from '../support/ledger.js';
import { readLiveEvents } from '../support/liveEvents.js';
import { otherPrices, repriceAll } from '../support/repriceAll.js';

const SEED = testSeed();
const RUNS = Number(process.env.TEST_RUNS ?? 6);

/** Drawn calls of three days are moved to the edges of three months. */
const DAYS = ['2026-01-31', '2026-02-28', '2026-03-01'].map(microsOfDay);
/** Those days and the next ones: a call may end on another day than it began. */
const ENDS = [...new Set(DAYS.flatMap((day) => [dayOf(day), dayOf(day + MICROS_PER_DAY)]))];
const MONTHS: readonly Month[] = ['2026-01', '2026-02', '2026-03', '2026-04', '2026-05'];

let test: TestDatabase;
let prices: PriceBookHolder;
let books: PriceBook[];

beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 10 });
  prices = await openTestPrices(test.database);
  const list = prices.current();
  books = [list, otherPrices(list, 3n), otherPrices(list, 2n, ['gpt-4o', 'gpt-4o-mini'])];
});
afterAll(() => test.close());

function move(micros: bigint): bigint {
  const day = (micros - FIRST) / MICROS_PER_DAY;
  return (DAYS[Number(day)] as bigint) + ((micros - FIRST) % MICROS_PER_DAY);
}

const moveCall = (call: CallRecord): CallRecord => {
  const startMicros = move(call.startMicros);
  return {
    ...call,
    startMicros,
    endMicros: startMicros + (call.endMicros - call.startMicros),
    hashTimestamp: isoFromMicros(startMicros),
  };
};

/**
 * Late rows are stored by project and user only for calls of a project, and are not stored by key for filtered
 * questions.
 */
function isUnanswered({ filter, dimension }: Question): boolean {
  const ofProject = filter.projectId !== undefined || filter.boundProjectId !== undefined;
  const missing = ofProject ? ['key'] : ['project', 'key', 'user'];
  return Object.keys(filter).length > 0 && missing.includes(dimension);
}

const moveQuestion = (asked: Question): Question => ({
  ...asked,
  // Only totals by label answer for closed months.
  filter: asked.filter.sessionId || asked.filter.kind ? {} : asked.filter,
  dimension: isUnanswered(asked) ? 'model' : asked.dimension,
  fromMicros: asked.fromMicros === undefined ? undefined : move(asked.fromMicros),
  toMicros: asked.toMicros === undefined ? undefined : move(asked.toMicros),
});

type PeriodStep = Step | { do: 'close' } | { do: 'wait'; days: bigint } | { do: 'ask'; asked: Question[] };

const periodStep: fc.Arbitrary<PeriodStep> = fc.oneof(
  { weight: 8, arbitrary: step },
  { weight: 3, arbitrary: fc.constant<PeriodStep>({ do: 'close' }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), days: fc.bigInt({ min: 1n, max: 25n }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      asked: fc.array(question, { minLength: 2, maxLength: 5 }),
    }),
  },
);

/** An organization whose days the test decides, with the product's answers and those of an independent ledger. */
class World {
  readonly ledger = new Ledger();
  readonly sent: CallRecord[][] = [];
  readonly #writer: IngestWriter;
  readonly orgDb: OrgDb;
  /** false: rows have the real clock's dates, and the ledger is not updated. */
  isDated = true;
  clockMicros = microsOfDay('2026-02-01') + 3_600_000_000n;
  closed: { month: Month; dayClosed: string }[] = [];
  /** First answers about closed months. */
  readonly frozen: { asked: Question; answer: unknown }[] = [];

  constructor(orgId: string) {
    this.orgDb = new OrgDb(test.database, orgId);
    this.#writer = new IngestWriter(test.database, prices, 4, {
      queueRows: () => undefined,
      batchRows: () => undefined,
    });
  }

  get closedUntil(): bigint | null {
    const last = this.closed.at(-1);
    return last === undefined ? null : endOfMonth(last.month);
  }

  async send(calls: readonly CallRecord[]): Promise<void> {
    const batch = aBatch(calls.map(moveCall));
    const request = {
      orgId: this.orgDb.orgId,
      keyId: `key_${'0'.repeat(10)}`,
      defaultProjectId: null,
      batch,
    };
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const outcome = await this.#writer.submit(request).catch((error: unknown) => {
        if (!(error instanceof DomainError) || error.code !== 'service_unavailable') throw error;
      });
      if (outcome) return;
    }
    throw new Error('ten times told to come back');
  }

  /** Runs writes, and dates the written rows to the test's day. */
  async onThisDay(work: () => Promise<unknown>): Promise<void> {
    if (!this.isDated) return void (await work());
    const { rows } = await test.superuser.query<{ xid: string }>('select pg_current_xact_id()::text as xid');
    await work();
    for (const table of ['events', 'event_adjustments'])
      await test.superuser.query(
        `update ${table} set ingested_at = $3 where org_id = $1 and ingest_xid >= $2`,
        [this.orgDb.orgId, rows[0]?.xid, isoFromMicros(this.clockMicros)],
      );
    await this.record();
  }

  async record(): Promise<void> {
    const live = await readLiveEvents(test.superuser, this.orgDb.orgId);
    this.ledger.record(live, this.clockMicros, this.closedUntil);
  }

  /** Closes the next month, when it is over. */
  async close(): Promise<void> {
    const month = this.closed.length === 0 ? '2026-01' : followingMonth(this.closed.at(-1)?.month ?? '');
    if (endOfMonth(month) > this.clockMicros || !MONTHS.includes(month)) return;
    const request = { month, closedBy: 'key_test', nowMicros: this.clockMicros };
    const first = await findFirstMonth(this.orgDb);
    if (this.closed.length === 0 && first !== undefined && month < first)
      return expect(closePeriod(test.database, this.orgDb.orgId, request)).rejects.toMatchObject({
        code: 'period_out_of_order',
      });
    expect(await closePeriod(test.database, this.orgDb.orgId, request)).toBe(true);
    expect(await closePeriod(test.database, this.orgDb.orgId, request)).toBe(false);
    await test.superuser.query('update period_closings set closed_at = $3 where org_id = $1 and month = $2', [
      this.orgDb.orgId,
      `${month}-01`,
      isoFromMicros(this.clockMicros),
    ]);
    this.closed.push({ month, dayClosed: dayOf(this.clockMicros) });
    await this.record();
    const window = { fromMicros: startOfMonth(month), toMicros: endOfMonth(month), filter: {} };
    for (const dimension of DIMENSIONS) {
      const asked = { ...window, dimension };
      this.frozen.push({
        asked,
        answer: await askProduct(this.orgDb, { ...asked, view: { kind: 'books' } }),
      });
    }
  }

  /** The product's answers to a question in every view that it can have, against the ledger's. */
  async compare(asked: Question): Promise<void> {
    const { orgDb, ledger } = this;
    const name = (view: string) =>
      `${view} ${JSON.stringify(asked, (_, value) => (typeof value === 'bigint' ? isoFromMicros(value) : value))}`;
    const ask = async (view: Parameters<Ledger['answer']>[1]) => {
      const answer = await askProduct(orgDb, { ...asked, view });
      expect(answer.groups, name(view.kind)).toEqual(ledger.answer(asked, view));
    };
    await ask({ kind: 'now' });
    await ask({ kind: 'books' });
    const late = await askProduct(orgDb, {
      ...asked,
      dimension: 'month',
      view: { kind: 'books' },
      only: 'adjustments',
    });
    expect(late.groups, name('late')).toEqual(ledger.answerLate(asked));
    for (const { month, dayClosed } of this.closed) {
      if (asked.toMicros === undefined || asked.toMicros > endOfMonth(month)) continue;
      for (const days of [1n, 3n, 30n])
        await ask({ kind: 'known', beforeDay: dayOf(microsOfDay(dayClosed) + days * MICROS_PER_DAY) });
    }
  }

  /** Checks that frozen totals have not changed, and that with late rows they equal the present totals. */
  async compareFrozen(): Promise<void> {
    for (const { asked, answer } of this.frozen)
      expect(await askProduct(this.orgDb, { ...asked, view: { kind: 'books' } })).toEqual(answer);
    for (const { month } of this.closed) {
      const asked = {
        dimension: 'provider' as const,
        filter: {},
        fromMicros: startOfMonth(month),
        toMicros: endOfMonth(month),
      };
      const { own, booked } = await findFrozenTotals(this.orgDb, month);
      const since = await askProduct(this.orgDb, { ...asked, view: { kind: 'now' }, only: 'adjustments' });
      const now = await askProduct(this.orgDb, { ...asked, view: { kind: 'now' } });
      const inBooks = await askProduct(this.orgDb, { ...asked, view: { kind: 'books' } });
      expect(plus(exact(own), since.groups)).toEqual(now.groups);
      expect(plus(exact(own), exact(booked))).toEqual(inBooks.groups);
    }
    const all = { dimension: 'model' as const, filter: {}, fromMicros: undefined, toMicros: undefined };
    const inBooks = await askProduct(this.orgDb, { ...all, view: { kind: 'books' } });
    expect(inBooks).toEqual(await askProduct(this.orgDb, { ...all, view: { kind: 'now' } }));
  }
}

type Sums = Map<string, Record<string, bigint>>;

function exact(totals: Map<string, UsageMeasures>): Sums {
  return new Map(
    [...totals].map(([key, sums]) => [
      key,
      Object.fromEntries(Object.entries(sums).map(([name, value]) => [name, BigInt(value)])),
    ]),
  );
}

function plus(one: Sums, other: Sums): Sums {
  const sums: Sums = new Map(one);
  for (const [key, added] of other) {
    const known = sums.get(key);
    sums.set(
      key,
      Object.fromEntries(Object.entries(added).map(([name, value]) => [name, value + (known?.[name] ?? 0n)])),
    );
  }
  return new Map([...sums].filter(([, sum]) => Object.values(sum).some((value) => value !== 0n)));
}

async function aNewWorld(): Promise<World> {
  const orgId = randomUUID();
  await insertOrganization(test.database, { id: orgId, name: 'books' });
  return new World(orgId);
}

const repriceWindow = { fromMicros: DAYS[0] as bigint, toMicros: endOfMonth('2026-03') };

async function take(world: World, action: PeriodStep): Promise<void> {
  const { orgDb } = world;
  if (action.do === 'ingest') {
    world.sent.push(...action.batches);
    await world.onThisDay(() => Promise.all(action.batches.map((calls) => world.send(calls))));
  } else if (action.do === 'repeat')
    await world.onThisDay(() => Promise.all(world.sent.slice(-3).map((calls) => world.send(calls))));
  else if (action.do === 'fold') await foldUsage(test.database, orgDb.orgId);
  else if (action.do === 'sweep') await world.onThisDay(() => sweepTraces(test.database, prices));
  else if (action.do === 'reprice')
    await world.onThisDay(() => repriceAll(orgDb, books[action.book] as PriceBook, repriceWindow));
  else if (action.do === 'wait') world.clockMicros += action.days * MICROS_PER_DAY;
  else if (action.do === 'close') await world.close();
  else
    for (const asked of action.do === 'read' ? action.questions : action.asked)
      await world.compare(moveQuestion(asked));
}

describe(`closed months (TEST_SEED=${SEED})`, () => {
  it(
    'never move, and with what came later sum to what is known, after any order of ingests, call reports, re-pricings, closings and folds',
    async () => {
      const run = await fc.check(
        fc.asyncProperty(fc.array(periodStep, { minLength: 8, maxLength: 24 }), async (steps) => {
          const world = await aNewWorld();
          for (const action of steps) await take(world, action);
          const questions = DIMENSIONS.map((dimension) => ({
            dimension,
            filter: {},
            fromMicros: undefined,
            toMicros: endOfMonth('2026-02'),
          }));
          for (const asked of questions) await world.compare(asked);
          await world.compareFrozen();
          await foldAll(test.superuser, world.orgDb);
          for (const asked of questions) await world.compare(asked);
          await world.compareFrozen();
          await compareCells(test.superuser, world.orgDb, ENDS);
        }),
        { seed: SEED, numRuns: RUNS, endOnFailure: true },
      );
      if (run.failed)
        throw new Error(`seed ${run.seed}, path ${run.counterexamplePath}`, { cause: run.errorInstance });
    },
    60_000 + RUNS * 20_000,
  );

  it(
    'never move from the moment of a closing on that runs beside ingest, re-pricing and folds',
    async () => {
      const run = await fc.check(
        fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 10 }), async (steps) => {
          const world = await aNewWorld();
          world.isDated = false;
          world.clockMicros = microsOfDay('2026-04-02');
          await world.send([aCall({ startMicros: FIRST })]);
          const busy = (action: Step) => take(world, action).catch(tolerate);
          const half = steps.slice(0, steps.length / 2).filter(writes);
          await Promise.all(half.map(busy));
          for (const month of ['2026-01', '2026-02'] as const) {
            await Promise.all([
              ...steps
                .slice(steps.length / 2)
                .filter(writes)
                .map(busy),
              foldUsage(test.database, world.orgDb.orgId).catch(tolerate),
              closeBesideOthers(world, month),
            ]);
            world.closed = (await listPeriodClosings(world.orgDb)).map((closing) => ({
              month: closing.month,
              dayClosed: dayOf(closing.closedAtMicros),
            }));
            const window = { fromMicros: startOfMonth(month), toMicros: endOfMonth(month), filter: {} };
            for (const dimension of ['model', 'user', 'day'] as const) {
              const asked = { ...window, dimension };
              const answer = await askProduct(world.orgDb, { ...asked, view: { kind: 'books' } });
              world.frozen.push({ asked, answer });
            }
          }
          await Promise.all(half.map(busy));
          await world.compareFrozen();
          await foldAll(test.superuser, world.orgDb);
          await world.compareFrozen();
        }),
        { seed: SEED, numRuns: RUNS, endOnFailure: true },
      );
      if (run.failed)
        throw new Error(`seed ${run.seed}, path ${run.counterexamplePath}`, { cause: run.errorInstance });
    },
    60_000 + RUNS * 20_000,
  );
});

const writes = (action: Step) => action.do !== 'read';

/** Tolerates an error that asks to retry: here another step retries. */
function tolerate(error: unknown): void {
  if (!(error instanceof DomainError)) throw error;
}

async function closeBesideOthers(world: World, month: Month): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const closed = await closePeriod(test.database, world.orgDb.orgId, {
      month,
      closedBy: null,
      nowMicros: world.clockMicros,
    }).catch(tolerate);
    if (closed !== undefined) return;
  }
  throw new Error('twenty times told to come back');
}
