import { describe, expect, it } from 'vitest';
import type { Database } from '../../../db/client.js';
import { type IngestRequest, IngestWriter } from '../../../usecases/events/ingestWriter.js';
import {
  BATCH_ROWS_MAX,
  GATHERED_ROWS_MIN,
  QUEUE_ROWS_MAX,
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
  const aRequest = (orgId: string, rows = 1) => ({ orgId, rows });

  it('starts the first request of an idle organization at once', () => {
    const waiting = new WaitingRequests();
    waiting.add(aRequest('a'));
    expect(waiting.start()).toEqual([aRequest('a')]);
  });

  it('gathers the requests of an organization while a transaction of it is under way', () => {
    const waiting = new WaitingRequests();
    waiting.add(aRequest('a', 40));
    const first = waiting.start() ?? [];
    for (let index = 0; index < 39; index += 1) waiting.add(aRequest('a'));
    expect(waiting.start()).toBeUndefined();
    waiting.end(first);
    expect(waiting.start()).toHaveLength(39);
    expect(waiting.rows).toBe(0);
  });

  it('starts a second transaction once as many calls have gathered as the first one has, and no third one', () => {
    const waiting = new WaitingRequests();
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
    const waiting = new WaitingRequests();
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
    const waiting = new WaitingRequests();
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
