import type { Database } from '../../../db/client.js';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import { callRecordOf } from './callRecords.js';
import { BULK_COPIES, copyRows } from './copyRows.js';
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

/** From so many calls on, rows are copied inside Postgres, ten times as fast as the write path stores them. */
const BULK_ROWS_MIN = 1_000_000;

/**
 * Fills an organization with calls spread evenly over a window, in chronological order, and folds them. The product's
 * write path stores them (IngestWriter: row-level security, pricing, claims, payloads, all indexes), without HTTP; of
 * many calls every twentieth, and Postgres copies the others from those. The product folds all.
 *
 * @param url of the database's owner
 */
export async function loadRows(
  database: Database,
  url: string,
  organization: BenchOrganization,
  rows: number,
  window: LoadedWindow,
  seed: number,
): Promise<void> {
  const started = performance.now();
  const stepMicros = (window.toMicros - window.fromMicros) / BigInt(rows);
  const isBulk = rows >= BULK_ROWS_MIN;
  const written = isBulk ? rows / BULK_COPIES : rows;
  await writeRows(database, organization, written, {
    fromMicros: window.fromMicros,
    stepMicros: isBulk ? stepMicros * BigInt(BULK_COPIES) : stepMicros,
    seed,
    started,
  });
  if (isBulk) {
    await copyRows(url, organization.orgId, window, stepMicros);
    logProgress('copied', rows, started);
  }
  await foldEverything(database);
  logProgress('stored and folded', rows, started);
}

interface Writing {
  fromMicros: bigint;
  stepMicros: bigint;
  seed: number;
  started: number;
}

async function writeRows(
  database: Database,
  organization: BenchOrganization,
  rows: number,
  { fromMicros, stepMicros, seed, started }: Writing,
): Promise<void> {
  const book = await loadPriceBook(database);
  const silent = { queueRows: () => undefined, batchRows: () => undefined };
  const writer = new IngestWriter(database, { of: async () => book }, CONNECTIONS, silent);
  const random = new Random(seed);
  const traffic = new Traffic(seed + 1, OPEN_SESSIONS, USERS);
  const pending = new Set<Promise<unknown>>();
  for (let at = 0; at < rows; at += BATCH_ROWS) {
    const count = Math.min(BATCH_ROWS, rows - at);
    const calls = Array.from({ length: count }, (_, index) =>
      callRecordOf(traffic.draw(), fromMicros + stepMicros * BigInt(at + index), random),
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
    if (at > 0 && at % LOG_EVERY_ROWS === 0) logProgress('written', at, started);
  }
  await Promise.all(pending);
}

function logProgress(what: string, rows: number, started: number): void {
  const seconds = (performance.now() - started) / 1000;
  process.stdout.write(
    `  ${formatCount(rows)} rows ${what} in ${seconds.toFixed(0)} s (${formatCount(rows / seconds)}/s)\n`,
  );
}
