import { anthropicCostRow, anthropicUsageRows, isUnparsed } from '../../domain/billing/anthropicRows.js';
import type { BilledRow, Feed, UnparsedLabel } from '../../domain/billing/billedRow.js';
import { BucketCopies, PROJECTS_TRACKED_MAX } from '../../domain/billing/bucketCopies.js';
import type { PageObject } from '../../domain/billing/exactNumber.js';
import type { LeftOut } from '../../domain/billing/formats/tableFormat.js';
import { openaiCostRow, openaiUsageRows } from '../../domain/billing/openaiRows.js';
import type { FxRate, PageBucket, PageKind } from '../../domain/billing/pageRow.js';
import { type BillingFormat, factsOfFormat } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf, MICROS_PER_DAY } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import { JsonEvents } from './jsonEvents.js';
import { PageReader, type PageSink } from './pageReader.js';
import { openCsvTable } from './tables/csvTable.js';
import { readTable } from './tables/readTable.js';
import type { RandomAccess, TableSource } from './tables/tableSource.js';

/** A row with the number of the bucket that told it; 0 in formats whose rows stand for themselves. */
export interface TaggedRow {
  row: BilledRow;
  copy: number;
}

/** A day that the file speaks about, with or without charges. */
export interface CoveredDay {
  day: string;
  feed: Feed;
  report: string;
  account: string | null;
}

export interface BillingFileOptions {
  provider: Provider;
  /** Told from the content where absent. */
  format: BillingFormat | undefined;
  fxRate: FxRate;
  /**
   * The report that every page is of, where that is known because it was asked for (`pageKindOf`): a page without any
   * result then says that its days bill nothing, and a result of another report is an error.
   */
  expected?: PageKind;
  /** BucketCopies that an earlier reading of the same file found to be replaced: their rows are left out. */
  skip: ReadonlySet<number>;
  /** A report without a single result is in order: it was asked for, and `format` says whose it is. */
  mayBeEmpty?: boolean;
  /** The same bytes in any order, for formats that begin at the end (Parquet). */
  random?: RandomAccess;
}

/** What is known once the whole file has been read. */
export interface BillingFileSummary {
  format: BillingFormat;
  covered: CoveredDay[];
  superseded: ReadonlySet<number>;
  unparsed: UnparsedLabel[];
  /** Charges of services that are no model provider's. */
  leftOut: readonly LeftOut[];
  /** Charges that are kept and that nobody can convert: in no sum of dollars. By currency. */
  unconverted: readonly Unconverted[];
}

/** `amount` is in 1e-12 units of `currency`. */
export interface Unconverted {
  currency: string;
  rows: number;
  amount: bigint;
}

/** How the activities are given `readBillingFile`. */
export type BillingFileReader = typeof readBillingFile;

/** Labels that an import lists one by one; the rest are in the rows. */
const UNPARSED_LISTED_MAX = 200;

/** Gathers what is told about a file while its rows stream by. */
class Notes {
  readonly #covered = new Map<string, CoveredDay>();
  readonly #unparsed = new Map<string, UnparsedLabel>();
  readonly #unconverted = new Map<string, Unconverted>();

  cover(day: CoveredDay): void {
    this.#covered.set(`${day.day}|${day.feed}|${day.report}|${day.account ?? ''}`, day);
  }

  row(row: BilledRow): void {
    if (row.feed === 'cost' && row.amountPico === null) this.#addUnconverted(row);
    if (!isUnparsed(row)) return;
    const known = this.#unparsed.get(row.lineItem);
    if (known) {
      known.rows += 1;
      known.amountPico += row.amountPico ?? 0n;
    } else if (this.#unparsed.size < UNPARSED_LISTED_MAX) {
      this.#unparsed.set(row.lineItem, { label: row.lineItem, rows: 1, amountPico: row.amountPico ?? 0n });
    }
  }

  #addUnconverted({ currency, originalAmount }: BilledRow): void {
    const known = this.#unconverted.get(currency ?? '') ?? { currency: currency ?? '', rows: 0, amount: 0n };
    known.rows += 1;
    known.amount += originalAmount ?? 0n;
    this.#unconverted.set(known.currency, known);
  }

  summary(
    format: BillingFormat,
    superseded: ReadonlySet<number>,
    leftOut: readonly LeftOut[] = [],
  ): BillingFileSummary {
    return {
      format,
      covered: [...this.#covered.values()],
      superseded,
      unparsed: [...this.#unparsed.values()],
      leftOut,
      unconverted: [...this.#unconverted.values()].sort((a, b) => (a.currency < b.currency ? -1 : 1)),
    };
  }
}

/** Buckets of a page whose report is not known until a result shows it. */
interface PendingBucket {
  bucket: PageBucket;
  number: number;
}

class PageRows implements PageSink {
  readonly #options: BillingFileOptions;
  readonly #copies = new BucketCopies();
  readonly #notes: Notes;
  #ready: TaggedRow[] = [];
  #pending: PendingBucket[] = [];
  #number = 0;
  #kind: PageKind | undefined;
  #account: string | null = null;
  #projects = new Set<string>();
  format: BillingFormat | undefined;

  constructor(options: BillingFileOptions, notes: Notes) {
    this.#options = options;
    this.#notes = notes;
    this.format = options.expected?.format;
  }

  get superseded(): ReadonlySet<number> {
    return this.#copies.superseded;
  }

  take(): TaggedRow[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  startPage(): void {
    this.#pending = [];
    this.#kind = this.#options.expected;
    this.#account = null;
    this.#projects = new Set();
  }

  startBucket(): void {
    this.#number = this.#copies.next();
  }

  result(kind: PageKind, bucket: PageBucket, result: PageObject): void {
    this.#agree(kind);
    for (const row of rowsOf(kind, bucket, result, this.#options.fxRate)) {
      if (row.account !== null) this.#account = row.account;
      if (row.project !== null && this.#projects.size < PROJECTS_TRACKED_MAX) this.#projects.add(row.project);
      if (this.#options.skip.has(this.#number)) continue;
      this.#notes.row(row);
      this.#ready.push({ row, copy: this.#number });
    }
  }

  endBucket(bucket: PageBucket): void {
    this.#pending.push({ bucket, number: this.#number });
  }

  endPage(): void {
    // A page without any result does not say which report it is of; it says nothing.
    const kind = this.#kind;
    if (!kind) return;
    const report = `${kind.feed}|${kind.report}|${this.#account ?? ''}`;
    for (const { bucket, number } of this.#pending) {
      this.#copies.register(report, bucket, this.#projects, number);
      for (let at = bucket.startMicros; at < bucket.endMicros; at += MICROS_PER_DAY) {
        this.#notes.cover({ day: dayOf(at), feed: kind.feed, report: kind.report, account: this.#account });
      }
    }
  }

  #agree(kind: PageKind): void {
    const expected = kind.format === 'openai_pages' ? 'openai' : 'anthropic';
    if (this.#options.provider !== expected) {
      throw new DomainError(
        'invalid_billing_file',
        `this is a page of ${expected}, but the file was given as ${this.#options.provider}'s`,
      );
    }
    if (this.#kind && (this.#kind.feed !== kind.feed || this.#kind.report !== kind.report)) {
      throw new DomainError('invalid_billing_file', 'one page mixes results of two reports');
    }
    this.#kind = kind;
    this.format = kind.format;
  }
}

function rowsOf(kind: PageKind, bucket: PageBucket, result: PageObject, fxRate: FxRate): BilledRow[] {
  if (kind.format === 'openai_pages') {
    return kind.feed === 'cost'
      ? [openaiCostRow(kind, bucket, result, fxRate)]
      : openaiUsageRows(kind, bucket, result);
  }
  return kind.feed === 'cost'
    ? [anthropicCostRow(kind, bucket, result, fxRate)]
    : anthropicUsageRows(kind, bucket, result);
}

/**
 * Reads a provider's bill from its bytes, batch by batch, in memory that does not grow with the rows. Yields rows as
 * they come and returns the summary. Where `summary.superseded` is not empty the file restates buckets: the rows of
 * those copies do not count, and a second reading with `skip` leaves them out.
 * Error invalid_billing_file with line and column; whatever was yielded before it must then not be kept.
 */
export async function* readBillingFile(
  chunks: AsyncIterable<Buffer>,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done || first.value.length === 0)
    throw new DomainError('invalid_billing_file', 'the file is empty');
  const all = resume(first.value, iterator);
  const isJson = options.format
    ? factsOfFormat(options.format).shape !== 'table'
    : looksLikeJson(first.value);
  return isJson ? yield* readPages(all, options) : yield* readRecords(await openCsvTable(all), options);
}

async function* resume(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (;;) {
    const next = await rest.next();
    if (next.done) return;
    yield next.value;
  }
}

function looksLikeJson(head: Buffer): boolean {
  const start = head
    .subarray(0, 4_096)
    .toString('latin1')
    .replace(/^\u00ef\u00bb\u00bf/, '')
    .trimStart()[0];
  return start === '{' || start === '[';
}

async function* readPages(
  chunks: AsyncIterable<Buffer>,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const notes = new Notes();
  const rows = new PageRows(options, notes);
  const reader = new PageReader(rows, () => events.position);
  const events = new JsonEvents(reader);
  for await (const chunk of chunks) {
    events.write(chunk);
    const ready = rows.take();
    if (ready.length > 0) yield ready;
  }
  events.end();
  if (!rows.format && options.mayBeEmpty && options.format)
    return notes.summary(options.format, rows.superseded);
  if (!rows.format) {
    throw new DomainError(
      'invalid_billing_file',
      'line 1, column 1: the file holds no result of a cost or usage report',
    );
  }
  return notes.summary(rows.format, rows.superseded);
}

async function* readRecords(
  table: TableSource,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const notes = new Notes();
  const reader = readTable(table, options);
  for (;;) {
    const next = await reader.next();
    if (next.done) return notes.summary(next.value.format, new Set(), next.value.leftOut);
    for (const row of next.value) {
      notes.row(row);
      notes.cover({ day: row.day, feed: row.feed, report: row.report, account: row.account });
    }
    yield next.value.map((row) => ({ row, copy: 0 }));
  }
}
