import { createHash } from 'node:crypto';
import type { TaggedRow } from '../../adapters/billing/file.js';
import {
  type ApiDay,
  beginApiSource,
  type CurrentCopy,
  confirmApiDays,
  listCurrentCopies,
  type ReportOf,
  replaceApiDays,
} from '../../db/billing/apiCopies.js';
import { insertBillingRows } from '../../db/billing/billingRows.js';
import { findFetchedPage, type SyncPage } from '../../db/billing/fetchedPages.js';
import { type ChunkResult, finishSyncChunk, type RestatedDay } from '../../db/billing/syncRuns.js';
import { type BilledRow, CHARGE_CATEGORIES, type ChargeCategory } from '../../domain/billing/billedRow.js';
import { type ConnectionSettings, fxRateOn, isInScope } from '../../domain/billing/connections.js';
import { parseFxRate } from '../../domain/billing/pageRow.js';
import { FETCHED_FORMATS, provisionalDaysOf } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid } from '../../domain/ids.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../../domain/period.js';
import type { ChunkWork, FetchedChunk } from './fetchChunk.js';
import { storedReport } from './planSync.js';

/** Rows of one INSERT. */
const BATCH_ROWS = 1_000;
/**
 * Reads the checked pages of a chunk with the reader of saved files. New or changed days become new copies under a
 * source of this attempt; the others are confirmed. The counting copies change at the chunk's end, in one transaction.
 */
export async function readChunk(work: ChunkWork, { pages, leftOut }: FetchedChunk): Promise<void> {
  const { deps, orgDb, run, chunk, connection } = work;
  const of: ReportOf = {
    connectionId: connection.id,
    provider: connection.provider,
    accountId: connection.accountId,
    feed: chunk.feed,
    report: storedReport(chunk),
  };
  const window = { fromDay: dayOf(chunk.startMicros), toDay: dayOf(chunk.endMicros + MICROS_PER_DAY - 1n) };
  const contents = await surveyPages(work, pages, leftOut);
  const known = new Map((await listCurrentCopies(orgDb, of, window)).map((copy) => [copy.day, copy]));
  const changed = new Set(
    contents.days.filter((day) => {
      const copy = known.get(day);
      return copy?.contentHash !== contents.hashOf(day) || copy.scope !== connection.scope;
    }),
  );
  const fetchedAtMicros = pages.reduce(
    (first, page) => (page.fetchedAtMicros < first ? page.fetchedAtMicros : first),
    pages[0]?.fetchedAtMicros ?? deps.nowMicros(),
  );
  const stored = changed.size === 0 ? undefined : await storeDays(work, pages, changed, fetchedAtMicros);
  if (stored === null) return;
  const same = contents.days.filter((day) => !changed.has(day));
  const result = describe(work, {
    contents,
    known,
    changed,
    same,
    pages,
    fetchedAtMicros,
    rows: stored?.rows ?? 0,
    leftOut,
  });
  await orgDb.transaction(async (inside) => {
    if (!(await finishSyncChunk(inside, run.id, chunk.ordinal, stored?.sourceId ?? null, result))) return;
    const final = same.filter((day) => contents.isFinal(day));
    await confirmApiDays(
      inside,
      of,
      { days: same, finalDays: final, atMicros: fetchedAtMicros },
      work.connection.settings,
    );
    if (!stored) return;
    const days = apiDays(work, contents, changed);
    await replaceApiDays(
      inside,
      of,
      {
        id: stored.sourceId,
        scope: connection.scope,
        fetchedAtMicros,
        rowCount: stored.rows,
        amountPico: days.reduce((sum, day) => sum + day.amountPico, 0n),
      },
      days,
      work.connection.settings,
    );
  });
}

/** The first pass: collects each day's content, and finds every fault before anything is stored. */
async function surveyPages(
  work: ChunkWork,
  pages: readonly SyncPage[],
  leftOut: ReadonlySet<string>,
): Promise<DayContents> {
  const contents = new DayContents();
  for (const page of pages)
    for (const bucket of page.buckets)
      for (let at = bucket.startMicros; at < bucket.endMicros; at += MICROS_PER_DAY)
        if (!leftOut.has(dayOf(at))) contents.cover(dayOf(at));
  for await (const row of ownRows(work, pages)) if (!leftOut.has(row.day)) contents.add(row);
  return contents;
}

/** The chunk's rows that the connection reads. Error: account_mismatch for rows of another account. */
async function* ownRows(work: ChunkWork, pages: readonly SyncPage[]): AsyncGenerator<BilledRow> {
  const { connection, chunk } = work;
  for await (const batch of rethrowAsSyncError(rowsOf(work, pages), work)) {
    for (const { row } of batch) {
      if (row.account !== null && row.account !== connection.accountId) {
        throw new DomainError(
          'account_mismatch',
          `the bill names the account ${row.account}, the connection ${connection.accountId}: end it and connect again with settings.account ${row.account}`,
        );
      }
      if (row.feed !== chunk.feed || row.report !== storedReport(chunk)) {
        throw new DomainError(
          'provider_answer_unreadable',
          `the report ${chunk.report} was asked for and another one was answered`,
        );
      }
      if (isInScope(row, connection.settings)) yield { ...row, account: connection.accountId };
    }
  }
}

/** All rows of the pages; pages of different requests are read separately. */
async function* rowsOf(
  { deps, orgDb, connection, connector }: ChunkWork,
  pages: readonly SyncPage[],
): AsyncGenerator<TaggedRow[]> {
  const askedFor = pages.map((_page, at) => connector.askedFor?.(pages[at - 1]?.nextCursor ?? null));
  for (let from = 0; from < pages.length; ) {
    const asked = askedFor[from];
    let to = from + 1;
    while (to < pages.length && askedFor[to] === asked) to += 1;
    yield* deps.readBillingFile(bytesOf(orgDb, pages.slice(from, to)), {
      provider: connection.provider,
      format: FETCHED_FORMATS[connection.provider],
      fxRate: parseFxRate(connection.settings.fxRate ?? ''),
      fxRateOn: (day) => parseFxRate(fxRateOn(connection.settings, day) ?? ''),
      skip: new Set(),
      mayBeEmpty: true,
      ...(asked === undefined ? {} : { asked }),
    });
    from = to;
  }
}

/** Rewords the reader's errors, which are about uploaded files, for a fetched answer. */
async function* rethrowAsSyncError<T>(
  rows: AsyncIterable<T>,
  { connection, chunk }: ChunkWork,
): AsyncGenerator<T> {
  try {
    yield* rows;
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'invalid_billing_file') throw error;
    throw new DomainError(
      'provider_answer_unreadable',
      `the answer of ${connection.provider} for ${chunk.report} cannot be read: ${error.message}`,
    );
  }
}

/** The stored pages in order, each checked against its sha256. */
async function* bytesOf(orgDb: ChunkWork['orgDb'], pages: readonly SyncPage[]): AsyncGenerator<Buffer> {
  for (const { pageId } of pages) {
    const page = await findFetchedPage(orgDb, pageId);
    if (!page || createHash('sha256').update(page.body).digest('hex') !== page.sha256)
      throw new Error(`the stored page ${pageId} is missing or damaged`);
    yield page.body;
    yield Buffer.from('\n');
  }
}

/** The second pass: stores the rows of changed days. null: another attempt has read the chunk meanwhile. */
async function storeDays(
  work: ChunkWork,
  pages: readonly SyncPage[],
  changed: ReadonlySet<string>,
  fetchedAtMicros: bigint,
): Promise<{ sourceId: string; rows: number } | null> {
  const { deps, orgDb, run, chunk, connection } = work;
  const sourceId = newUuid(deps.nowMicros());
  const digest = createHash('sha256').update(sourceId);
  for (const { pageId } of pages) digest.update(pageId);
  const source = {
    id: sourceId,
    connectionId: connection.id,
    provider: connection.provider,
    accountId: connection.accountId,
    name: `${connection.provider} ${chunk.report} ${dayOf(chunk.startMicros)} to ${dayOf(chunk.endMicros - 1n)}`,
    sha256: digest.digest('hex'),
    sizeBytes: 0,
    format: FETCHED_FORMATS[connection.provider] ?? 'openai_pages',
    fetchedAtMicros,
  };
  const isMine = await orgDb.transaction((inside) =>
    beginApiSource(inside, { runId: run.id, ordinal: chunk.ordinal }, source),
  );
  if (!isMine) return null;
  let rows = 0;
  let batch: BilledRow[] = [];
  const flush = async () => {
    const place = { id: sourceId, provider: connection.provider, firstRowNo: rows + 1 };
    await insertBillingRows(orgDb, place, batch);
    rows += batch.length;
    batch = [];
  };
  for await (const row of ownRows(work, pages)) {
    if (!changed.has(row.day)) continue;
    batch.push(row);
    if (batch.length >= BATCH_ROWS) await flush();
  }
  await flush();
  return { sourceId, rows };
}

/** A complete report covers every charge category of each day, also with zero charges. */
function apiDays(
  { chunk, connection }: ChunkWork,
  contents: DayContents,
  changed: ReadonlySet<string>,
): ApiDay[] {
  const categories = chunk.feed === 'cost' ? CHARGE_CATEGORIES : (['usage'] as const);
  return [...changed].sort().flatMap((day) =>
    categories.map((chargeCategory) => ({
      accountId: connection.accountId,
      day,
      feed: chunk.feed,
      report: storedReport(chunk),
      chargeCategory,
      ...contents.sumOf(day, chargeCategory),
      isFinal: contents.isFinal(day),
      contentHash: contents.hashOf(day),
    })),
  );
}

interface Reading {
  contents: DayContents;
  known: ReadonlyMap<string, CurrentCopy>;
  changed: ReadonlySet<string>;
  same: readonly string[];
  pages: readonly SyncPage[];
  fetchedAtMicros: bigint;
  rows: number;
  leftOut: ReadonlySet<string>;
}

/** Whether the copy was converted by another exchange rate than the present setting. */
function isOtherRate({ day, fxRate }: CurrentCopy, settings: ConnectionSettings): boolean {
  return parseFxRate(fxRate ?? '')?.scaled !== parseFxRate(fxRateOn(settings, day) ?? '')?.scaled;
}

/** The chunk's result. A settled day that the provider now reports differently is a restatement. */
function describe({ chunk, connection }: ChunkWork, reading: Reading): ChunkResult {
  const { contents, known, changed, same, pages, fetchedAtMicros, rows } = reading;
  const format = FETCHED_FORMATS[connection.provider] ?? 'openai_pages';
  const closedFrom = (day: string) =>
    microsOfDay(day) + BigInt(provisionalDaysOf([format], null, day)) * MICROS_PER_DAY;
  const usd = (pico: Pico) => (chunk.feed === 'cost' ? decimalFromPico(pico) : null);
  const restated = [...changed].sort().flatMap((day): RestatedDay[] => {
    const copy = known.get(day);
    // A changed exchange rate is the organization's change, not the provider's.
    if (!copy || copy.confirmedAtMicros < closedFrom(day) || isOtherRate(copy, connection.settings))
      return [];
    const place = { day, feed: chunk.feed, report: storedReport(chunk) };
    return [{ ...place, old_usd: usd(copy.amountPico), new_usd: usd(contents.totalOf(day)) }];
  });
  const settled = same.filter((day) => {
    const confirmed = known.get(day)?.confirmedAtMicros;
    return (
      chunk.feed === 'cost' &&
      confirmed !== undefined &&
      confirmed < closedFrom(day) &&
      fetchedAtMicros >= closedFrom(day)
    );
  });
  return {
    pages: pages.length,
    rows,
    changed_days: [...changed].sort(),
    settled_days: settled,
    restated,
    ...(reading.leftOut.size > 0 ? { left_out_days: [...reading.leftOut].sort() } : {}),
  };
}

/** A day's billed sum of one charge category. */
export interface CategorySum {
  rowCount: number;
  amountPico: Pico;
  unconvertedRows: number;
}

interface Line {
  /** null: no row has a quantity. */
  quantity: bigint | null;
  amountPico: Pico;
  originalAmount: bigint;
  netPico: Pico | null;
}

interface DayContent {
  lines: Map<string, Line>;
  sums: Map<ChargeCategory, CategorySum>;
  /** true: every row that states it is final; false: some row is not final; null: no row states it. */
  isFinal: boolean | null;
}

/**
 * The content of each day of a report, for comparing two fetches. Rows that differ only in their hour or their place in
 * the page are one line, so a day reported by the hour equals the same day reported as a whole.
 */
export class DayContents {
  readonly #days = new Map<string, DayContent>();

  /** Marks the day as covered by the report, with or without charges. */
  cover(day: string): void {
    this.#of(day);
  }

  add(row: BilledRow): void {
    const day = this.#of(row.day);
    const key = JSON.stringify([
      row.chargeCategory,
      row.lineItem,
      row.observable,
      row.model,
      row.tokenClass,
      row.serviceTier,
      row.isBatch,
      row.longContext,
      row.region,
      row.project,
      row.apiKey,
      row.quantityUnit,
      row.currency,
    ]);
    const line = day.lines.get(key) ?? {
      quantity: null,
      amountPico: 0n,
      originalAmount: 0n,
      netPico: null,
    };
    if (row.quantity !== null) line.quantity = (line.quantity ?? 0n) + row.quantity;
    line.amountPico += row.amountPico ?? 0n;
    line.originalAmount += row.originalAmount ?? 0n;
    if (row.netPico !== null) line.netPico = (line.netPico ?? 0n) + row.netPico;
    day.lines.set(key, line);
    const sum = day.sums.get(row.chargeCategory) ?? { rowCount: 0, amountPico: 0n, unconvertedRows: 0 };
    sum.rowCount += 1;
    sum.amountPico += row.amountPico ?? 0n;
    if (row.feed === 'cost' && row.amountPico === null) sum.unconvertedRows += 1;
    day.sums.set(row.chargeCategory, sum);
    day.isFinal = day.isFinal === null ? row.isFinal : day.isFinal && row.isFinal;
  }

  /** The days in order. */
  get days(): string[] {
    return [...this.#days.keys()].sort();
  }

  /** Digest of a day's content; equal for two fetches with the same content. */
  hashOf(day: string): string {
    const lines = [...this.#of(day).lines].map(
      ([key, line]) =>
        `${key} ${line.quantity ?? '-'} ${line.amountPico} ${line.originalAmount}${line.netPico === null ? '' : ` ${line.netPico}`}`,
    );
    return createHash('sha256').update(lines.sort().join('\n')).digest('hex');
  }

  sumOf(day: string, category: ChargeCategory): CategorySum {
    return this.#of(day).sums.get(category) ?? { rowCount: 0, amountPico: 0n, unconvertedRows: 0 };
  }

  /** Whether the report states that the day is final; null: it does not state it. */
  isFinal(day: string): boolean | null {
    return this.#of(day).isFinal;
  }

  totalOf(day: string): Pico {
    return [...this.#of(day).sums.values()].reduce((sum, { amountPico }) => sum + amountPico, 0n);
  }

  #of(day: string): DayContent {
    const known = this.#days.get(day);
    if (known) return known;
    const content: DayContent = { lines: new Map(), sums: new Map(), isFinal: null };
    this.#days.set(day, content);
    return content;
  }
}
