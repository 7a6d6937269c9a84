import { z } from 'zod';
import { anthropicCostRow, anthropicUsageRows } from '../../domain/billing/anthropicRows.js';
import { assertPlausible, type BilledRow } from '../../domain/billing/billedRow.js';
import { BucketCopies, PROJECTS_TRACKED_MAX } from '../../domain/billing/coverage.js';
import { openaiCostRow, openaiUsageRows } from '../../domain/billing/openaiRows.js';
import type { FxRate, PageBucket, PageKind, PageObject } from '../../domain/billing/pageRow.js';
import type { BillingFormat } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf, MICROS_PER_DAY, parseInstant } from '../../domain/period.js';
import type { BucketTimes } from './connector.js';
import { type BillingFileOptions, type BillingFileSummary, Notes, type TaggedRow } from './fileSummary.js';
import { JsonEvents } from './jsonEvents.js';
import { PageReader, type PageSink } from './pageReader.js';

/** Buckets of a page whose report is unknown until a result shows it. */
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
    // The report of a page without results is unknown, so the page contributes nothing.
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

/** The rows of one result of a report. Error: invalid_billing_file. */
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

/** Reads saved pages of OpenAI's and Anthropic's reports; see `readBillingFile`. */
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

/** The times of a page's buckets and its paging. Amounts are read separately from the bytes, exactly. */
export interface PageEnvelope {
  buckets: BucketTimes[];
  nextCursor: string | null;
}

/** Most buckets of one page: the largest documented page has the minutes of a day. */
const BUCKETS_MAX = 1_440;

const seconds = z.number().int().min(0).max(253_402_300_800);
const paging = {
  has_more: z.boolean(),
  next_page: z.string().min(1).max(8_192).nullish(),
};
const results = z.array(z.record(z.string(), z.unknown()));

const openaiPage = z.object({
  data: z.array(z.object({ start_time: seconds, end_time: seconds, results })).max(BUCKETS_MAX),
  ...paging,
});

const anthropicPage = z.object({
  data: z.array(z.object({ starting_at: z.string(), ending_at: z.string(), results })).max(BUCKETS_MAX),
  ...paging,
});

/**
 * Parses `{"object":"page","data":[{start_time, end_time, results}], has_more, next_page}`; errors as `readEnvelope`.
 */
export function readOpenaiEnvelope(body: Buffer, cursor: string | null): PageEnvelope {
  const page = readEnvelope(openaiPage, body, 'OpenAI');
  const buckets = page.data.map((bucket) => ({
    startMicros: BigInt(bucket.start_time) * 1_000_000n,
    endMicros: BigInt(bucket.end_time) * 1_000_000n,
  }));
  return { buckets, nextCursor: nextCursorOf(page, cursor, 'OpenAI') };
}

/** Parses `{data:[{starting_at, ending_at, results}], has_more, next_page}`; errors as `readEnvelope`. */
export function readAnthropicEnvelope(body: Buffer, cursor: string | null): PageEnvelope {
  const page = readEnvelope(anthropicPage, body, 'Anthropic');
  const buckets = page.data.map((bucket) => ({
    startMicros: instantOf(bucket.starting_at),
    endMicros: instantOf(bucket.ending_at),
  }));
  return { buckets, nextCursor: nextCursorOf(page, cursor, 'Anthropic') };
}

/** Parses an answer by its schema. Error: provider_answer_unreadable with the place of the first difference. */
export function readEnvelope<S extends z.ZodType>(schema: S, body: Buffer, name: string): z.output<S> {
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    throw unreadable(name, 'it is not JSON');
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = (issue?.path ?? []).map(String).join('.').slice(0, 80);
  throw unreadable(name, `${path === '' ? 'the answer' : path} is not as documented`);
}

function nextCursorOf(
  page: { has_more: boolean; next_page?: string | null | undefined },
  cursor: string | null,
  name: string,
): string | null {
  if (!page.has_more) return null;
  if (page.next_page && page.next_page !== cursor) return page.next_page;
  throw new DomainError(
    'provider_paging_changed',
    page.next_page
      ? `${name} named the page that was asked for as the next one; the chunk is fetched from its beginning`
      : `${name} announces more and names no next page; the chunk is fetched from its beginning`,
  );
}

function instantOf(text: string): bigint {
  const instant = parseInstant(text);
  if (!instant) throw unreadable('Anthropic', 'a bucket has no time that can be read');
  return instant.micros;
}

function unreadable(name: string, reason: string): DomainError {
  return new DomainError('provider_answer_unreadable', `the answer of ${name} cannot be read: ${reason}`);
}

/** A page exceeds the size limit; fewer buckets may fit. */
export class PageTooLarge extends DomainError {
  constructor(name: string, bytesMax: number) {
    super('provider_answer_unreadable', `${name} answered with more than ${bytesMax} bytes for one page`);
  }
}

/** The second attempt requests this many times fewer buckets. */
const SHRINK = 6;
/** Our page token: the number of buckets that fitted, and the provider's token. */
const SMALLER = /^<(\d{1,4})>(.*)$/s;

interface Page {
  nextCursor: string | null;
}

/**
 * Requests a page of `bucketsMax` buckets, and fewer when these exceed the size limit, as for an account with thousands
 * of keys. The cursor includes the number that fitted, so that the following pages request as many at once. Error:
 * PageTooLarge where a single bucket does not fit.
 */
export async function askInPages<T extends Page>(
  bucketsMax: number,
  cursor: string | null,
  ask: (limit: number, cursor: string | null) => Promise<T>,
): Promise<T> {
  const [, fitted, token] = SMALLER.exec(cursor ?? '') ?? [];
  let limit = fitted === undefined ? bucketsMax : Math.min(bucketsMax, Number(fitted));
  for (;;) {
    try {
      const page = await ask(limit, token ?? cursor);
      const isSmaller = limit < bucketsMax && page.nextCursor !== null;
      return isSmaller ? { ...page, nextCursor: `<${limit}>${page.nextCursor}` } : page;
    } catch (error) {
      if (!(error instanceof PageTooLarge) || limit === 1) throw error;
      limit = Math.max(1, Math.floor(limit / SHRINK));
    }
  }
}
