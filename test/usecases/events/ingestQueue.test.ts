import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../../db/client.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import type { IngestRequest } from '../../../usecases/events/prepareBatch.js';
import {
  BATCH_ROWS_MAX,
  GATHERED_ROWS_MIN,
  QUEUE_ROWS_MAX,
  type Rest,
  SHARED_LINE_ROWS_MAX,
  SHARED_ROWS_MAX,
  type Start,
  WaitingRequests,
} from '../../../usecases/events/waitingRequests.js';
import type { Prices } from '../../../usecases/pricing/priceBookHolder.js';
import { aCall } from '../../support/aCall.js';

const BATCH = 10_000;
const calls = Array.from({ length: BATCH }, () => aCall({}));

/** A writer whose connections are all busy, so that accepted requests wait. */
function aBusyWriter() {
  const observer = { queueRows: () => undefined, batchRows: () => undefined };
  return new IngestWriter(undefined as unknown as Database, {} as unknown as Prices, 0, observer);
}

function aBatch(orgId: string): IngestRequest {
  const batch = { calls, links: [], rejections: [], ignored: 0 };
  return { orgId, keyId: 'key_1', defaultProjectId: null, batch };
}

/** Whether a batch enters the queue; else it is refused immediately. */
async function isTaken(writer: IngestWriter, orgId: string): Promise<boolean> {
  let isRefused = false;
  writer.submit(aBatch(orgId)).catch(() => {
    isRefused = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return !isRefused;
}

interface Report {
  orgId: string;
  rows: number;
  identities: readonly string[];
}

/** Waiting requests of organizations that share no transactions. */
class OwnTransactions<W extends Report> {
  readonly #waiting = new WaitingRequests<W>();

  get rows(): number {
    return this.#waiting.rows;
  }

  add(request: W): void {
    this.#waiting.add(request);
  }

  start(): W[] | undefined {
    return this.#waiting.start()?.batches[0];
  }

  end(taken: W[]): Rest | undefined {
    return this.#waiting.end({ batches: [taken], isShared: false })[0];
  }

  release(rest: Rest): void {
    this.#waiting.release(rest);
  }
}

describe('F-21: the queue of calls to be stored', () => {
  it('is filled by one organization to its half, so that another one still finds room', async () => {
    const writer = aBusyWriter();
    let taken = 0;
    while (await isTaken(writer, 'a')) taken += BATCH;
    expect(taken).toBe(QUEUE_ROWS_MAX / 2);
    expect(await isTaken(writer, 'b')).toBe(true);
    expect(await isTaken(writer, 'a')).toBe(false);
  });

  it('is never longer than its limit, except for one batch that comes to an empty one', async () => {
    const writer = aBusyWriter();
    let taken = 0;
    for (let index = 0; index < 10; index += 1) if (await isTaken(writer, `org-${index}`)) taken += BATCH;
    expect(taken).toBe(QUEUE_ROWS_MAX);
  });
});

describe('the gathering of requests into transactions', () => {
  const aRequest = (orgId: string, rows = 1) => ({ orgId, rows, identities: [] });

  it('starts the first request of an idle organization at once', () => {
    const waiting = new OwnTransactions();
    waiting.add(aRequest('a'));
    expect(waiting.start()).toEqual([aRequest('a')]);
  });

  it('gathers the requests of an organization while a transaction of it is under way', () => {
    const waiting = new OwnTransactions();
    waiting.add(aRequest('a', 40));
    const first = waiting.start() ?? [];
    for (let index = 0; index < 39; index += 1) waiting.add(aRequest('a'));
    expect(waiting.start()).toBeUndefined();
    waiting.end(first);
    expect(waiting.start()).toHaveLength(39);
    expect(waiting.rows).toBe(0);
  });

  it('starts a second transaction once as many calls have gathered as the first one has, and no third one', () => {
    const waiting = new OwnTransactions();
    waiting.add(aRequest('a', 40));
    const first = waiting.start() ?? [];
    waiting.add(aRequest('a', 40));
    expect(waiting.start()).toHaveLength(1);
    waiting.add(aRequest('a', 80));
    expect(waiting.start()).toBeUndefined();
    waiting.end(first);
    expect(waiting.start()).toHaveLength(1);
  });

  it('starts another transaction of a busy organization when enough calls have gathered', () => {
    const waiting = new OwnTransactions();
    waiting.add(aRequest('a', GATHERED_ROWS_MIN));
    waiting.start();
    waiting.add(aRequest('a', GATHERED_ROWS_MIN));
    waiting.start();
    waiting.add(aRequest('a', GATHERED_ROWS_MIN - 1));
    expect(waiting.start()).toBeUndefined();
    waiting.add(aRequest('a'));
    expect(waiting.start()).toHaveLength(2);
  });

  it('keeps taking turns between organizations, of which each waits for its own transactions', () => {
    const waiting = new OwnTransactions();
    const start = () => waiting.start() ?? [];
    waiting.add(aRequest('a', 3));
    const ofA = start();
    waiting.add(aRequest('a'));
    waiting.add(aRequest('b', BATCH_ROWS_MAX));
    waiting.add(aRequest('b'));
    waiting.add(aRequest('c'));
    const ofB = start();
    expect(ofB).toEqual([aRequest('b', BATCH_ROWS_MAX)]);
    expect(start()).toEqual([aRequest('c')]);
    expect(start()).toEqual([]);
    waiting.end(ofA);
    waiting.end(ofB);
    expect(start()).toEqual([aRequest('a')]);
    expect(start()).toEqual([aRequest('b')]);
    expect(start()).toEqual([]);
  });
});

describe('requests that report the same calls', () => {
  const aReport = (...identities: string[]) => ({ orgId: 'a', rows: identities.length, identities });

  it('wait for the transaction that reports them and then join one batch', () => {
    const waiting = new OwnTransactions();
    waiting.add(aReport('call 1'));
    const first = waiting.start() ?? [];
    const repeats = [aReport('call 1'), aReport('call 1', 'call 2'), aReport('call 1')];
    for (const repeat of repeats) waiting.add(repeat);
    expect(waiting.start()).toBeUndefined();
    expect(waiting.rows).toBe(4);
    waiting.end(first);
    expect(waiting.start()).toEqual(repeats);
    expect(waiting.rows).toBe(0);
  });

  it('do not wait where they are many, in two transactions at once', () => {
    const waiting = new OwnTransactions();
    const many = Array.from({ length: GATHERED_ROWS_MIN }, (_, index) => `call ${index}`);
    waiting.add(aReport(...many));
    const first = waiting.start() ?? [];
    waiting.add(aReport(...many));
    expect(waiting.start()).toBeUndefined();
    waiting.end(first);
    expect(waiting.start()).toHaveLength(1);
  });

  it('let requests with other calls of the organization pass', () => {
    const waiting = new OwnTransactions();
    waiting.add(aReport('call 1'));
    waiting.start();
    waiting.add(aReport('call 1'));
    waiting.add(aReport('call 2'));
    expect(waiting.start()).toEqual([aReport('call 2')]);
    expect(waiting.start()).toBeUndefined();
  });

  it('are not overtaken by later requests with one of their calls', () => {
    const waiting = new OwnTransactions();
    waiting.add(aReport('call 1'));
    const first = waiting.start() ?? [];
    waiting.add(aReport('call 1', 'call 2'));
    waiting.add(aReport('call 2'));
    expect(waiting.start()).toBeUndefined();
    waiting.end(first);
    expect(waiting.start()).toEqual([aReport('call 1', 'call 2'), aReport('call 2')]);
  });

  it('wait too where a full batch left them behind', () => {
    const waiting = new OwnTransactions();
    waiting.add(aReport('call 0'));
    const before = waiting.start() ?? [];
    const full = { ...aReport('call 1'), rows: BATCH_ROWS_MAX };
    for (const request of [full, aReport('call 1'), aReport('call 2')]) waiting.add(request);
    const first = waiting.start() ?? [];
    expect(first).toEqual([full]);
    waiting.end(before);
    expect(waiting.start()).toBeUndefined();
    waiting.end(first);
    expect(waiting.start()).toEqual([aReport('call 1'), aReport('call 2')]);
  });

  const aStorm = (reports: number) => {
    const waiting = new OwnTransactions();
    const report = () => waiting.add(aReport('call 1'));
    report();
    const first = waiting.start() ?? [];
    for (let index = 0; index < reports; index += 1) report();
    const firstRest = waiting.end(first);
    const repeats = waiting.start() ?? [];
    return { waiting, report, firstRest, repeats };
  };

  it('rest after a transaction of repeats, so that a storm of them leaves time to others', () => {
    const { waiting, report, firstRest, repeats } = aStorm(3);
    expect(firstRest).toBeUndefined();
    expect(repeats).toHaveLength(3);
    report();
    const rest = waiting.end(repeats) as Rest;
    expect(rest.calls).toEqual(new Set(['call 1']));
    report();
    expect(waiting.start()).toBeUndefined();
    waiting.add(aReport('call 2'));
    const other = waiting.start() ?? [];
    expect(other).toEqual([aReport('call 2')]);
    expect(waiting.end(other)).toBeUndefined();
    expect(waiting.start()).toBeUndefined();
    waiting.release(rest);
    expect(waiting.start()).toHaveLength(2);
    expect(waiting.rows).toBe(0);
  });

  it('rest too where they arrive only after the transaction', () => {
    const { waiting, report, repeats } = aStorm(3);
    const rest = waiting.end(repeats) as Rest;
    report();
    expect(waiting.start()).toBeUndefined();
    waiting.release(rest);
    expect(waiting.start()).toEqual([aReport('call 1')]);
  });

  it('rest each after their own transaction, where a storm has several calls', () => {
    const waiting = new OwnTransactions();
    const start = () => waiting.start() ?? [];
    const aLarge = (call: string) => ({ ...aReport(call), rows: BATCH_ROWS_MAX });
    const firsts = ['call 1', 'call 2'].map((call) => {
      waiting.add(aLarge(call));
      return start();
    });
    const report = () => {
      for (const call of ['call 1', 'call 2']) waiting.add(aLarge(call));
    };
    report();
    for (const first of firsts) waiting.end(first);
    const [two, one] = [start(), start()].map((repeats) => waiting.end(repeats) as Rest);
    report();
    expect(start()).toEqual([]);
    waiting.release(two as Rest);
    expect(start()).toEqual([aLarge('call 2')]);
    expect(start()).toEqual([]);
    waiting.release(one as Rest);
    expect(start()).toEqual([aLarge('call 1')]);
  });

  it('do not rest after a transaction of first reports', () => {
    const waiting = new OwnTransactions();
    waiting.add(aReport('call 1'));
    expect(waiting.end(waiting.start() ?? [])).toBeUndefined();
    waiting.add(aReport('call 1'));
    expect(waiting.end(waiting.start() ?? [])).toBeUndefined();
  });

  type Numbered = ReturnType<typeof aReport> & { number: number };

  it('are all stored once, whatever their order and calls, and never two transactions report one call', () => {
    const calls = fc.uniqueArray(
      fc.integer({ min: 0, max: 5 }).map((call) => `call ${call}`),
      { minLength: 1 },
    );
    const words = fc.constantFrom('start' as const, 'release' as const);
    const steps = fc.array(fc.oneof(calls, words, fc.nat(3)), { maxLength: 60 });
    fc.assert(
      fc.property(steps, (taken) => {
        const waiting = new OwnTransactions<Numbered>();
        const running: Numbered[][] = [];
        const stored: number[] = [];
        let sent = 0;
        const rests: Rest[] = [];
        const start = () => {
          const batch = waiting.start();
          if (batch === undefined) return false;
          const others = new Set(running.flat().flatMap(({ identities }) => identities));
          expect(batch.flatMap(({ identities }) => identities).filter((one) => others.has(one))).toEqual([]);
          running.push(batch);
          stored.push(...batch.map(({ number }) => number));
          return true;
        };
        const end = (index: number) => {
          const [ended] = running.splice(index % Math.max(running.length, 1), 1);
          const rest = ended && waiting.end(ended);
          if (rest) rests.push(rest);
        };
        const release = () => {
          const rest = rests.shift();
          if (rest) waiting.release(rest);
        };
        for (const step of taken) {
          if (step === 'start') start();
          else if (step === 'release') release();
          else if (typeof step === 'number') end(step);
          else waiting.add({ ...aReport(...step), number: sent++ });
        }
        while (running.length > 0 || waiting.rows > 0) {
          while (start());
          end(0);
          release();
        }
        expect(stored.sort((one, other) => one - other)).toEqual(Array.from({ length: sent }, (_, at) => at));
      }),
    );
  });
});

describe('organizations that share a transaction', () => {
  const aRequest = (orgId: string, rows = 1): Report => ({ orgId, rows, identities: [] });
  const all = () => true;
  const sizesOf = (start: Start<Report> | undefined) =>
    start?.batches.map((batch) => [batch[0]?.orgId, batch.reduce((sum, { rows }) => sum + rows, 0)]);
  const aQueue = (...requests: Report[]) => {
    const waiting = new WaitingRequests<Report>();
    for (const request of requests) waiting.add(request);
    return waiting;
  };

  it('start at once when the server is idle, each with its own batch, in the order of their ids', () => {
    const waiting = aQueue(aRequest('b', 2), aRequest('a'), aRequest('b'));
    const start = waiting.start(all);
    expect(start?.isShared).toBe(true);
    expect(sizesOf(start)).toEqual([
      ['a', 1],
      ['b', 3],
    ]);
    expect(waiting.rows).toBe(0);
  });

  it('start a second transaction once as many calls have gathered as the first one has, and no third one', () => {
    const waiting = aQueue(aRequest('a', 2), aRequest('b', 2));
    const first = waiting.start(all) as Start<Report>;
    waiting.add(aRequest('c', 3));
    expect(waiting.start(all)).toBeUndefined();
    waiting.add(aRequest('d'));
    expect(sizesOf(waiting.start(all))).toEqual([
      ['c', 3],
      ['d', 1],
    ]);
    waiting.add(aRequest('e', 50));
    expect(waiting.start(all)).toBeUndefined();
    waiting.end(first);
    expect(sizesOf(waiting.start(all))).toEqual([['e', 50]]);
  });

  it('are not divided over two transactions, because a statement costs as much as ten calls', () => {
    const waiting = aQueue(aRequest('a', 2), aRequest('b', 2));
    const first = waiting.start(all) as Start<Report>;
    for (const request of [aRequest('a', 3), aRequest('c', 4)]) waiting.add(request);
    expect(sizesOf(waiting.start(all))).toEqual([['c', 4]]);
    waiting.end(first);
    expect(sizesOf(waiting.start(all))).toBeUndefined();
    waiting.add(aRequest('a'));
    expect(sizesOf(waiting.start(all))).toEqual([['a', 4]]);
  });

  it('leave an organization with many waiting calls its own transaction', () => {
    const waiting = aQueue(aRequest('a', SHARED_LINE_ROWS_MAX + 1), aRequest('b', SHARED_LINE_ROWS_MAX));
    const starts = [waiting.start(all), waiting.start(all)];
    expect(starts.map((start) => start?.isShared)).toEqual([false, true]);
    expect(starts.map((start) => sizesOf(start)?.flat())).toEqual([
      ['a', SHARED_LINE_ROWS_MAX + 1],
      ['b', SHARED_LINE_ROWS_MAX],
    ]);
  });

  it('do not hold up an organization that may not share', () => {
    const waiting = aQueue(aRequest('a', 9), aRequest('b', 9));
    waiting.start((orgId) => orgId === 'a');
    waiting.start((orgId) => orgId === 'a');
    for (const orgId of ['a', 'c', 'd']) waiting.add(aRequest(orgId));
    const start = waiting.start((orgId) => orgId !== 'd');
    expect([start?.isShared, sizesOf(start)]).toEqual([false, [['d', 1]]]);
    expect(waiting.start((orgId) => orgId !== 'd')).toBeUndefined();
  });

  it('take turns with those that may not, beyond which they gather further', () => {
    const waiting = aQueue(aRequest('a'), aRequest('own'), aRequest('b'));
    const mayShare = (orgId: string) => orgId !== 'own';
    expect(sizesOf(waiting.start(mayShare))?.map(([orgId]) => orgId)).toEqual(['a', 'b']);
    expect(sizesOf(waiting.start(mayShare))?.map(([orgId]) => orgId)).toEqual(['own']);
  });

  it('share a transaction of limited size', () => {
    const many = Array.from({ length: 9 }, (_, index) => aRequest(`org-${index}`, SHARED_LINE_ROWS_MAX));
    const waiting = aQueue(...many);
    expect(waiting.start(all)?.batches).toHaveLength(SHARED_ROWS_MAX / SHARED_LINE_ROWS_MAX);
  });

  type Numbered = Report & { number: number };

  it('are all stored once, each only in one batch of a transaction, whatever the order of requests', () => {
    const orgIds = ['a', 'b', 'c', 'd'];
    const request = fc.record({
      orgId: fc.constantFrom(...orgIds),
      rows: fc.integer({ min: 0, max: 150 }),
      identities: fc.uniqueArray(fc.constantFrom('call 1', 'call 2'), { maxLength: 2 }),
    });
    const words = fc.constantFrom('start' as const, 'fail' as const, 'release' as const);
    const steps = fc.array(fc.oneof(request, words, fc.nat(3)), { maxLength: 60 });
    fc.assert(
      fc.property(steps, fc.subarray(orgIds), (taken, sharing) => {
        const waiting = new WaitingRequests<Numbered>();
        const running: Start<Numbered>[] = [];
        const stored: number[] = [];
        const rests: Rest[] = [];
        let sent = 0;
        const callsOf = (start: Start<Numbered>) =>
          start.batches.flat().flatMap(({ orgId, identities }) => identities.map((one) => `${orgId} ${one}`));
        const start = () => {
          const next = waiting.start((orgId) => sharing.includes(orgId));
          if (next === undefined) return false;
          const others = new Set(running.flatMap(callsOf));
          expect(callsOf(next).filter((one) => others.has(one))).toEqual([]);
          const members = next.batches.map((batch) => new Set(batch.map(({ orgId }) => orgId)));
          expect(members.map(({ size }) => size)).toEqual(members.map(() => 1));
          expect(new Set(members.flatMap((ids) => [...ids])).size).toBe(members.length);
          if (next.isShared)
            expect(sharing).toEqual(expect.arrayContaining(members.flatMap((ids) => [...ids])));
          else expect(members).toHaveLength(1);
          running.push(next);
          return true;
        };
        const end = (index: number, isStored = true) => {
          const [ended] = running.splice(index % Math.max(running.length, 1), 1);
          if (ended === undefined) return;
          rests.push(...waiting.end(ended));
          if (isStored) stored.push(...ended.batches.flat().map(({ number }) => number));
          else for (const failed of ended.batches.flat()) waiting.add(failed);
        };
        const release = () => {
          const rest = rests.shift();
          if (rest) waiting.release(rest);
        };
        for (const step of taken) {
          if (step === 'start') start();
          else if (step === 'fail') end(0, false);
          else if (step === 'release') release();
          else if (typeof step === 'number') end(step);
          else waiting.add({ ...step, number: sent++ });
        }
        for (let idle = 0; idle < 3; idle += 1) {
          while (start()) idle = 0;
          if (running.length > 0) idle = 0;
          end(0);
          release();
        }
        expect(stored.sort((one, other) => one - other)).toEqual(Array.from({ length: sent }, (_, at) => at));
        expect(waiting.rows).toBe(0);
      }),
    );
  });
});
