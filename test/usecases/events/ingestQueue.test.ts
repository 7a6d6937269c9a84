import { describe, expect, it } from 'vitest';
import type { Database } from '../../../db/client.js';
import { type IngestRequest, IngestWriter, QUEUE_ROWS_MAX } from '../../../usecases/events/ingestWriter.js';
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
