import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { OrgDb } from '../../db/orgDb.js';
import { GAP_RUNS, type GapRun } from '../../db/reconciliation/gapRuns.js';
import { findRun } from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf, MICROS_PER_DAY, parseInstant } from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Provider } from '../../domain/providers.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

/** What the steps of a gap run need of the process. */
export interface RunDeps extends UseCaseDeps {
  prices: Prices;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  logger: Logger;
}

/** A step of a gap run. */
export interface RunWork {
  deps: RunDeps;
  orgDb: OrgDb;
  runId: string;
  /** Throws when the run was cancelled meanwhile: asked between pieces of work. */
  checkpoint(): void;
}

export function runWork(
  deps: RunDeps,
  ref: { orgId: string; runId: string },
  checkpoint: () => void = () => undefined,
): RunWork {
  return { deps, orgDb: orgDbOf(deps, ref.orgId), runId: ref.runId, checkpoint };
}

/** Days back from a run's end that a series is explained over. */
const EXPLAINED_DAYS = 400n;

export async function loadRun({ orgDb, runId }: RunWork): Promise<GapRun> {
  const run = await findRun(orgDb, GAP_RUNS, runId);
  if (!run) throw new DomainError('not_found', 'there is no gap run with this id');
  return run;
}

/** Days of a run, half-open. */
export interface RunWindow {
  provider: string | null;
  fromDay: string;
  toDay: string;
}

export function windowOf(run: GapRun): RunWindow {
  return { provider: run.provider, fromDay: dayOf(run.windowStartMicros), toDay: dayOf(run.windowEndMicros) };
}

/** The days over which the series are explained that the run finds changed. */
export function explainedWindowOf(run: GapRun): RunWindow {
  return { ...windowOf(run), fromDay: dayOf(run.windowEndMicros - EXPLAINED_DAYS * MICROS_PER_DAY) };
}

/** First event of each account of a provider, as the run found it when it was planned. */
export function observedSinceOf(run: Pick<GapRun, 'observedSince'>, provider: string): Map<string, bigint> {
  const entries = Object.entries(run.observedSince[provider] ?? {});
  return new Map(
    entries.flatMap(([account, iso]): [string, bigint][] => {
      const micros = parseInstant(iso)?.micros;
      return micros === undefined ? [] : [[account, micros]];
    }),
  );
}

/** Hex digest of a text, as marks are kept. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const digests = new WeakMap<PriceBook, Map<Provider, string>>();

/** Digest of all that a book says of a provider's prices, agreed and listed: reckoned once for each book. */
export function pricesDigest(book: PriceBook, provider: Provider): string {
  const known = digests.get(book) ?? new Map<Provider, string>();
  digests.set(book, known);
  const found = known.get(provider);
  if (found !== undefined) return found;
  const text = (of: PriceBook) =>
    JSON.stringify(of.entriesOf(provider), (_, part: unknown) =>
      typeof part === 'bigint' ? part.toString() : part,
    );
  const digest = digestOf(book.list === book ? text(book) : `${text(book)}\n${text(book.list)}`);
  known.set(provider, digest);
  return digest;
}
