import { anthropicCostRow, anthropicUsageRows } from '../../domain/billing/anthropicRows.js';
import type { BilledRow } from '../../domain/billing/billedRow.js';
import { BucketCopies, PROJECTS_TRACKED_MAX } from '../../domain/billing/bucketCopies.js';
import type { PageObject } from '../../domain/billing/exactNumber.js';
import { openaiCostRow, openaiUsageRows } from '../../domain/billing/openaiRows.js';
import type { FxRate, PageBucket, PageKind } from '../../domain/billing/pageRow.js';
import { assertPlausible } from '../../domain/billing/rowBounds.js';
import type { BillingFormat } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf, MICROS_PER_DAY } from '../../domain/period.js';
import { type BillingFileOptions, type BillingFileSummary, Notes, type TaggedRow } from './fileSummary.js';
import { JsonEvents } from './jsonEvents.js';
import { PageReader, type PageSink } from './pageReader.js';

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
    const { fxRate, fxRateOn = () => fxRate } = this.#options;
    for (const row of rowsOf(kind, bucket, result, fxRateOn(dayOf(bucket.startMicros)))) {
      assertPlausible(row);
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

/** The rows that one result of a report says. Error invalid_billing_file. */
export function rowsOf(kind: PageKind, bucket: PageBucket, result: PageObject, fxRate: FxRate): BilledRow[] {
  if (kind.format === 'openai_pages') {
    return kind.feed === 'cost'
      ? [openaiCostRow(kind, bucket, result, fxRate)]
      : openaiUsageRows(kind, bucket, result);
  }
  return kind.feed === 'cost'
    ? [anthropicCostRow(kind, bucket, result, fxRate)]
    : anthropicUsageRows(kind, bucket, result);
}

/** Saved pages of OpenAI's and Anthropic's reports, as `readBillingFile`. */
export async function* readPages(
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
