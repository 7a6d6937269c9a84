import {
  ExactNumber,
  findText,
  type PageBucket,
  type PageKind,
  type PageObject,
  type PageValue,
} from '../../domain/billing/pageRow.js';
import { DomainError } from '../../domain/errors.js';
import { MICROS_PER_DAY, parseInstant } from '../../domain/period.js';
import { faultAt, type JsonHandler, type JsonScalar } from './jsonEvents.js';

/** Most results of one bucket that precede its times and have to wait in memory. */
const WAITING_RESULTS_MAX = 10_000;
/**
 * Longest bucket: reports have buckets of a minute, an hour or a day, and a bucket covers every day that it touches.
 */
const BUCKET_MICROS_MAX = 31n * MICROS_PER_DAY;
/** Most entries of one result object. */
const RESULT_ENTRIES_MAX = 200;

/** Receives the parts of a page, in the order of the file. */
export interface PageSink {
  startPage(): void;
  startBucket(): void;
  /** One result of the current bucket, whose times are known. */
  result(kind: PageKind, bucket: PageBucket, result: PageObject): void;
  /** The bucket has ended; it may have had no result. */
  endBucket(bucket: PageBucket): void;
  endPage(): void;
}

type Context = 'root' | 'pages' | 'page' | 'data' | 'bucket' | 'results' | 'skip';

interface Waiting {
  kind: PageKind;
  result: PageObject;
}

/**
 * Recognises saved pages of OpenAI's and Anthropic's cost and usage reports in a JSON stream: one page, an array of
 * pages, or pages one after the other. Holds one result at a time.
 */
export class PageReader implements JsonHandler {
  readonly #sink: PageSink;
  readonly #place: () => { line: number; column: number };
  #contexts: Context[] = ['root'];
  #key = '';
  #fields: Record<string, JsonScalar> = {};
  #bucket: PageBucket | undefined;
  #waiting: Waiting[] = [];
  #build: PageValue[] = [];
  #buildKeys: string[] = [];
  #buildEntries = 0;
  #buildPlace = { line: 1, column: 1 };
  #bucketPlace = { line: 1, column: 1 };
  #sawData = false;
  #pages = 0;

  constructor(sink: PageSink, place: () => { line: number; column: number }) {
    this.#sink = sink;
    this.#place = place;
  }

  get pages(): number {
    return this.#pages;
  }

  startObject(): void {
    if (this.#build.length > 0) {
      this.#nest({});
      return;
    }
    const context = this.#context;
    if (context === 'root' || context === 'pages') {
      this.#contexts.push('page');
      this.#sawData = false;
      this.#sink.startPage();
    } else if (context === 'data') {
      this.#contexts.push('bucket');
      this.#fields = {};
      this.#bucket = undefined;
      this.#waiting = [];
      this.#bucketPlace = this.#place();
      this.#sink.startBucket();
    } else if (context === 'results') {
      this.#buildPlace = this.#place();
      this.#buildEntries = 0;
      this.#build.push({});
      this.#buildKeys.push('');
    } else this.#contexts.push('skip');
  }

  endObject(): void {
    if (this.#build.length > 0) {
      this.#closeNested();
      return;
    }
    const context = this.#contexts.pop();
    if (context === 'bucket') this.#endBucket();
    else if (context === 'page') this.#endPage();
  }

  startArray(): void {
    if (this.#build.length > 0) {
      this.#nest([]);
      return;
    }
    const context = this.#context;
    if (context === 'root') this.#contexts.push('pages');
    else if (context === 'page' && this.#key === 'data') {
      this.#sawData = true;
      this.#contexts.push('data');
    } else if (context === 'bucket' && this.#key === 'results') this.#contexts.push('results');
    else if (context === 'data' || context === 'results' || context === 'pages')
      this.#refuse('an object is expected here');
    else this.#contexts.push('skip');
  }

  endArray(): void {
    if (this.#build.length > 0) {
      this.#closeNested();
      return;
    }
    this.#contexts.pop();
  }

  key(name: string): void {
    if (this.#build.length > 0) this.#buildKeys[this.#buildKeys.length - 1] = name;
    else this.#key = name;
  }

  scalar(value: JsonScalar): void {
    if (this.#build.length > 0) {
      this.#put(value);
      return;
    }
    const context = this.#context;
    if (context === 'bucket') {
      this.#fields[this.#key] = value;
      this.#findTimes();
    } else if (context === 'root' || context === 'pages' || context === 'data' || context === 'results') {
      this.#refuse('an object is expected here');
    }
  }

  endDocument(): void {
    this.#contexts = ['root'];
  }

  get #context(): Context {
    return this.#contexts[this.#contexts.length - 1] as Context;
  }

  #nest(value: PageObject | PageValue[]): void {
    this.#put(value);
    this.#build.push(value);
    this.#buildKeys.push('');
  }

  #put(value: PageValue): void {
    this.#buildEntries += 1;
    if (this.#buildEntries > RESULT_ENTRIES_MAX)
      this.#refuse(`a result has more than ${RESULT_ENTRIES_MAX} entries`);
    const holder = this.#build[this.#build.length - 1] as PageObject | PageValue[];
    if (Array.isArray(holder)) holder.push(value);
    else
      Object.defineProperty(holder, this.#buildKeys[this.#buildKeys.length - 1] ?? '', {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }

  #closeNested(): void {
    const value = this.#build.pop();
    this.#buildKeys.pop();
    if (this.#build.length === 0) this.#takeResult(value as PageObject);
  }

  #takeResult(result: PageObject): void {
    const kind = kindOf(result);
    if (!kind)
      throw faultAt(
        this.#buildPlace,
        'the result is of no known report (OpenAI costs or usage, Anthropic cost or usage)',
      );
    if (this.#bucket) {
      this.#give(kind, this.#bucket, result);
      return;
    }
    this.#waiting.push({ kind, result });
    if (this.#waiting.length > WAITING_RESULTS_MAX) {
      throw faultAt(
        this.#bucketPlace,
        `a bucket of more than ${WAITING_RESULTS_MAX} results must name its times before them`,
      );
    }
  }

  #give(kind: PageKind, bucket: PageBucket, result: PageObject): void {
    try {
      this.#sink.result(kind, bucket, result);
    } catch (error) {
      if (error instanceof DomainError) throw faultAt(this.#buildPlace, error.message);
      throw error;
    }
  }

  #findTimes(): void {
    if (this.#bucket) return;
    const startMicros = timeOf(this.#fields.start_time ?? this.#fields.starting_at);
    const endMicros = timeOf(this.#fields.end_time ?? this.#fields.ending_at);
    if (startMicros === undefined || endMicros === undefined) return;
    if (endMicros <= startMicros) throw faultAt(this.#bucketPlace, 'the bucket ends before it starts');
    if (endMicros - startMicros > BUCKET_MICROS_MAX)
      throw faultAt(this.#bucketPlace, 'the bucket is longer than a month; ask for buckets of a day');
    this.#bucket = { startMicros, endMicros };
    for (const { kind, result } of this.#waiting) this.#give(kind, this.#bucket, result);
    this.#waiting = [];
  }

  #endBucket(): void {
    if (!this.#bucket)
      throw faultAt(
        this.#bucketPlace,
        'the bucket has no start and end time (start_time and end_time, or starting_at and ending_at)',
      );
    this.#sink.endBucket(this.#bucket);
  }

  #endPage(): void {
    if (!this.#sawData)
      this.#refuse('the page has no array "data"; give the saved answers of a cost or usage report');
    this.#pages += 1;
    this.#sink.endPage();
  }

  #refuse(reason: string): never {
    throw faultAt(this.#place(), reason);
  }
}

/** Unix seconds (OpenAI) or RFC 3339 (Anthropic) → microseconds. */
export function timeOf(value: PageValue | undefined): bigint | undefined {
  if (value instanceof ExactNumber)
    return /^\d{1,12}$/.test(value.text) ? BigInt(value.text) * 1_000_000n : undefined;
  return typeof value === 'string' ? parseInstant(value)?.micros : undefined;
}

const OPENAI_USAGE = /^organization\.usage\.([a-z_]+)\.result$/;
/** Results whose name differs from their report's. */
const OPENAI_REPORTS: Record<string, string> = {
  file_searches: 'file_search_calls',
  web_searches: 'web_search_calls',
};

/** The report of a result: OpenAI names it in `object`, Anthropic's two reports have different fields. */
export function kindOf(result: PageObject): PageKind | undefined {
  const object = findText(result.object);
  if (object === 'organization.costs.result') return { format: 'openai_pages', feed: 'cost', report: '' };
  const named = object === null ? undefined : OPENAI_USAGE.exec(object)?.[1];
  if (named !== undefined)
    return { format: 'openai_pages', feed: 'usage', report: OPENAI_REPORTS[named] ?? named };
  if (object !== null) return undefined;
  if ('uncached_input_tokens' in result)
    return { format: 'anthropic_pages', feed: 'usage', report: 'messages' };
  return typeof result.amount === 'string'
    ? { format: 'anthropic_pages', feed: 'cost', report: '' }
    : undefined;
}
