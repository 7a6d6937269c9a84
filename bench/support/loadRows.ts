import type { Database } from '../../db/client.js';
import { IngestWriter } from '../../db/ingestWriter.js';
import { loadPriceBook } from '../../db/queries/prices.js';
import type { CallRecord } from '../../domain/events/event.js';
import { callRecordOf } from './callRecords.js';
import { foldEverything } from './fold.js';
import type { BenchOrganization } from './organizations.js';
import { Random } from './random.js';
import { Traffic } from './traffic.js';

/** Calls of one batch: the most that the writer puts into one transaction. */
const BATCH_CALLS = 2_000;
const WRITERS = 4;
const MICROS_A_DAY = 86_400_000_000n;

export interface LoadPlan {
  organizations: readonly BenchOrganization[];
  /** Rows to add, spread evenly over the days in the order of their time. */
  rows: number;
  days: number;
  endMicros: bigint;
  seed: number;
}

/**
 * Adds calls through the product's write path (IngestWriter: resolved, hashed, priced, stored and committed in
 * batches of 2,000), as wrappers tell them: without a trace or a payload. Then folds everything. Only HTTP and the
 * mapping are left out.
 */
export async function loadRows(database: Database, plan: LoadPlan): Promise<void> {
  const book = await loadPriceBook(database);
  const writer = new IngestWriter(database, { current: () => book }, WRITERS, {
    queueRows: () => undefined,
    batchRows: () => undefined,
  });
  const random = new Random(plan.seed);
  const traffic = new Traffic(plan.seed, 10_000);
  const span = BigInt(plan.days) * MICROS_A_DAY;
  const start = plan.endMicros - span;
  const underWay = new Set<Promise<unknown>>();
  for (let at = 0; at < plan.rows; at += BATCH_CALLS) {
    const count = Math.min(BATCH_CALLS, plan.rows - at);
    const calls = Array.from({ length: count }, (_, index): CallRecord => {
      const micros = start + (span * BigInt(at + index)) / BigInt(plan.rows) + BigInt(random.below(1_000));
      return {
        ...callRecordOf(traffic.draw(), micros, random),
        kind: 'sdk_event',
        responseId: null,
        trace: null,
        payload: null,
      };
    });
    const { orgId, keyId } = plan.organizations[
      (at / BATCH_CALLS) % plan.organizations.length
    ] as BenchOrganization;
    const stored: Promise<unknown> = writer
      .submit({
        orgId,
        keyId,
        defaultProjectId: null,
        batch: { calls, rejections: [], ignored: 0, links: [] },
      })
      .finally(() => underWay.delete(stored));
    underWay.add(stored);
    if (underWay.size >= WRITERS * 2) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  await foldEverything(database);
}
