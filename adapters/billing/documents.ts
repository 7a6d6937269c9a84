import { assertPlausible } from '../../domain/billing/billedRow.js';
import { DOCUMENT_FORMATS, type DocumentFormat, isLikeTable } from '../../domain/billing/formats/index.js';
import type { LeftOut } from '../../domain/billing/formats/tableFormat.js';
import { isPageObject, type PageObject, type PageValue } from '../../domain/billing/pageRow.js';
import { type BillingFormat, factsOfFormat } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import type { Provider } from '../../domain/providers.js';
import { type BillingFileOptions, type BillingFileSummary, Notes, type TaggedRow } from './fileSummary.js';
import { faultAt, JsonEvents, type JsonHandler, type JsonScalar } from './jsonEvents.js';
import { firstRecord } from './tables/jsonLinesTable.js';

/** Whether a file of this format holds documents; without a format, whether its beginning looks like one. */
export function holdsDocuments(head: string, format: BillingFormat | undefined): boolean {
  return DOCUMENT_FORMATS.some((known) =>
    format === undefined ? known.looksLike.test(head) : known.format === format,
  );
}

/** Reads bills that are JSON documents, one after the other; see `readBillingFile`. */
export async function* readDocuments(
  chunks: AsyncIterable<Buffer>,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const notes = new Notes();
  const { fxRate, fxRateOn = () => fxRate, asked } = options;
  const context = { fxRate, fxRateOn, asked, seen: new Set<string>() };
  const leftOut: LeftOut[] = [];
  let chosen: DocumentFormat | undefined;
  for await (const document of readJsonDocuments(chunks)) {
    const { rows, leftOut: others = [] } = placed(document, () => {
      chosen = formatOf(document, options, chosen);
      const read = isPageObject(document.value) ? chosen.read(document.value, context) : { rows: [] };
      for (const row of read.rows) assertPlausible(row);
      return read;
    });
    addLeftOut(leftOut, others);
    for (const row of rows) {
      notes.row(row);
      notes.cover({ day: row.day, feed: row.feed, report: row.report, account: row.account });
    }
    if (rows.length > 0) yield rows.map((row) => ({ row, copy: 0 }));
  }
  const format = chosen?.format ?? options.format;
  if (format === undefined || (!chosen && !options.mayBeEmpty))
    throw faultAt({ line: 1, column: 1 }, 'the file holds no document');
  return notes.summary(format, new Set(), leftOut);
}

/**
 * Throws invalid_billing_file for an unknown format, another format than the first document's, or another provider's.
 */
function formatOf(
  { value }: JsonDocument,
  options: BillingFileOptions,
  chosen: DocumentFormat | undefined,
): DocumentFormat {
  const candidates = chosen
    ? [chosen]
    : DOCUMENT_FORMATS.filter(({ format }) => options.format === undefined || format === options.format);
  const format = isPageObject(value) ? candidates.find((known) => known.isDocument(value)) : undefined;
  if (!format) {
    throw new DomainError(
      'invalid_billing_file',
      `the document is not ${candidates.map(({ name }) => name).join(' or ')}`,
    );
  }
  const { provider } = factsOfFormat(format.format);
  if (provider === undefined || provider === options.provider) return format;
  throw new DomainError(
    'invalid_billing_file',
    `this is ${format.name}, a bill of ${provider}, but the file was given as ${options.provider}'s`,
  );
}

/** Adds the document's position to a fault that a format reports. */
function placed<T>({ place }: JsonDocument, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof DomainError) throw faultAt(place, error.message);
    throw error;
  }
}

function addLeftOut(sums: LeftOut[], more: readonly LeftOut[]): void {
  for (const charge of more) {
    const known = sums.find(
      (sum) => sum.chargeCategory === charge.chargeCategory && sum.currency === charge.currency,
    );
    if (!known) sums.push({ ...charge });
    else {
      known.rows += charge.rows;
      known.amount += charge.amount;
    }
  }
}

/** Most entries of one document: a page of the largest answer has some hundred thousand. */
const ENTRIES_MAX = 3_000_000;

/** A complete JSON document with its numbers as written, and its position. */
export interface JsonDocument {
  value: PageValue;
  place: { line: number; column: number };
}

/**
 * JSON documents, one after the other or in one array, each held in memory as a whole: for bills whose parts depend on
 * each other. Error: invalid_billing_file with line and column.
 */
export async function* readJsonDocuments(chunks: AsyncIterable<Buffer>): AsyncGenerator<JsonDocument> {
  const builder = new DocumentBuilder(() => events.position);
  const events = new JsonEvents(builder);
  for await (const chunk of chunks) {
    events.write(chunk);
    yield* builder.take();
  }
  events.end();
  yield* builder.take();
}

class DocumentBuilder implements JsonHandler {
  readonly #place: () => { line: number; column: number };
  #ready: JsonDocument[] = [];
  #stack: (PageObject | PageValue[])[] = [];
  #keys: string[] = [];
  #entries = 0;
  #root: JsonDocument | undefined;
  /** The documents are the items of one array. */
  #isArray = false;

  constructor(place: () => { line: number; column: number }) {
    this.#place = place;
  }

  take(): JsonDocument[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  startObject(): void {
    this.#open({});
  }

  endObject(): void {
    this.#close();
  }

  startArray(): void {
    if (this.#stack.length > 0 || this.#isArray) this.#open([]);
    else this.#isArray = true;
  }

  endArray(): void {
    if (this.#stack.length > 0) this.#close();
    else this.#isArray = false;
  }

  key(name: string): void {
    this.#keys[this.#keys.length - 1] = name;
  }

  scalar(value: JsonScalar): void {
    this.#put(value);
    this.#finish();
  }

  endDocument(): void {}

  /** Ends the document when no container is open. */
  #finish(): void {
    if (this.#stack.length > 0 || !this.#root) return;
    this.#ready.push(this.#root);
    this.#root = undefined;
    this.#entries = 0;
  }

  #open(value: PageObject | PageValue[]): void {
    this.#put(value);
    this.#stack.push(value);
    this.#keys.push('');
  }

  #close(): void {
    this.#stack.pop();
    this.#keys.pop();
    this.#finish();
  }

  #put(value: PageValue): void {
    this.#entries += 1;
    if (this.#entries > ENTRIES_MAX)
      throw faultAt(this.#place(), `the document has more than ${ENTRIES_MAX} entries`);
    const holder = this.#stack[this.#stack.length - 1];
    if (holder === undefined) this.#root = { value, place: this.#place() };
    else if (Array.isArray(holder)) holder.push(value);
    else
      Object.defineProperty(holder, this.#keys[this.#keys.length - 1] ?? '', {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }
}

/** The layout of a file; the layout's reader determines the format of the bill. */
export type FileShape = 'csv' | 'jsonLines' | 'parquet' | 'pages' | 'documents';

/** First and last bytes of a Parquet file. */
const PARQUET = Buffer.from('PAR1');

/** Bytes of a file that are examined: enough for its first record. */
export const HEAD_BYTES = 262_144;

/** Providers whose reports have pages. */
const PAGE_PROVIDERS: ReadonlySet<Provider> = new Set(['openai', 'anthropic']);
const PAGE = /"data"\s*:\s*\[/;

/** The layout of a file, from its first bytes, its provider and, if named, its format. */
export function shapeOf(head: Buffer, format: BillingFormat | undefined, provider: Provider): FileShape {
  if (head.subarray(0, 4).equals(PARQUET)) return 'parquet';
  const text = head
    .subarray(0, HEAD_BYTES)
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trimStart();
  if (format !== undefined && holdsDocuments(text, format)) return 'documents';
  const shape = format === undefined ? undefined : factsOfFormat(format).shape;
  if (text[0] !== '{' && text[0] !== '[') return shape === undefined || shape === 'table' ? 'csv' : 'pages';
  if (shape === 'table' || (shape === undefined && isRecordOfTable(text))) return 'jsonLines';
  if (holdsDocuments(text, format)) return 'documents';
  // A file of an unknown layout gets an error that names the missing columns, except for providers whose reports have
  // pages.
  return shape === 'pages' || PAGE_PROVIDERS.has(provider) || PAGE.test(text) ? 'pages' : 'jsonLines';
}

/** Whether the first object, alone or in an array, has most fields of a table's header. */
function isRecordOfTable(text: string): boolean {
  return isLikeTable(new Set(firstRecord(Buffer.from(text))?.record.keys()));
}
