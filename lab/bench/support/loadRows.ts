import type { Database } from '../../../db/client.js';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import { callRecordOf } from './callRecords.js';
import { foldEverything } from './fold.js';
import type { BenchOrganization } from './organizations.js';
import { Random } from './random.js';
import { formatCount } from './statistics.js';
import { Traffic } from './traffic.js';

const BATCH_ROWS = 2_000;
const CONNECTIONS = 4;
/** Concurrent batches, so many that no connection waits. */
const BATCHES_AHEAD = 6;
const OPEN_SESSIONS = 2_000;
const USERS = { first: 0, count: 10_000 };
/** Totals are folded while rows are added, as in production. */
const FOLD_EVERY_ROWS = 500_000;
const LOG_EVERY_ROWS = 1_000_000;

export interface LoadedWindow {
  fromMicros: bigint;
  toMicros: bigint;
}

/**
 * Fills an organization with calls spread evenly over a window, in chronological order, through the product's
 * write path (IngestWriter: row-level security, pricing, claims, payloads, all indexes), without HTTP.
 */
export async function loadRows(
  database: Database,
  organization: BenchOrganization,
  rows: number,
  window: LoadedWindow,
  seed: number,
): Promise<void> {
  const book = await loadPriceBook(database);
  const silent = { queueRows: () => undefined, batchRows: () => undefined };
  const writer = new IngestWriter(database, { of: async () => book }, CONNECTIONS, silent);
  const random = new Random(seed);
  const traffic = new Traffic(seed + 1, OPEN_SESSIONS, USERS);
  const stepMicros = (window.toMicros - window.fromMicros) / BigInt(rows);
  const pending = new Set<Promise<unknown>>();
  const started = performance.now();
  for (let at = 0; at < rows; at += BATCH_ROWS) {
    const count = Math.min(BATCH_ROWS, rows - at);
    const calls = Array.from({ length: count }, (_, index) =>
      callRecordOf(traffic.draw(), window.fromMicros + stepMicros * BigInt(at + index), random),
    );
    const sent = writer.submit({
      orgId: organization.orgId,
      keyId: organization.keyId,
      defaultProjectId: null,
      batch: { calls, rejections: [], ignored: 0, links: [] },
    });
    pending.add(sent);
    sent.finally(() => pending.delete(sent)).catch(() => undefined);
    if (pending.size >= BATCHES_AHEAD) await Promise.race(pending);
    if (at % FOLD_EVERY_ROWS === 0) await foldEverything(database);
    if (at > 0 && at % LOG_EVERY_ROWS === 0) logProgress(at, started);
  }
  await Promise.all(pending);
  await foldEverything(database);
  logProgress(rows, started);
}

function logProgress(rows: number, started: number): void {
  const seconds = (performance.now() - started) / 1000;
  process.stdout.write(
    `  ${formatCount(rows)} rows stored and folded in ${seconds.toFixed(0)} s (${formatCount(rows / seconds)}/s)\n`,
  );
}
