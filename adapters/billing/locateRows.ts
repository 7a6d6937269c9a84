/** Locates rows on the pages of a bill, record by record, so that evidence can show them. */
import type { BilledRow, ChargeCategory } from '../../domain/billing/billedRow.js';
import { DOCUMENT_FORMATS, formatOfHeader } from '../../domain/billing/formats/index.js';
import type { TableRecord } from '../../domain/billing/formats/tableFormat.js';
import {
  ExactNumber,
  type FxRate,
  isPageObject,
  type PageObject,
  type PageValue,
} from '../../domain/billing/pageRow.js';
import type { BillingFormat } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { dayOf } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { BillingConnector } from './connector.js';
import { readJsonDocuments, shapeOf } from './documents.js';
import { unpacked } from './file.js';
import { kindOf, timeOf } from './pageReader.js';
import { rowsOf } from './pageRows.js';
import { openCsvTable } from './tables/csvTable.js';
import { openJsonLines } from './tables/jsonLinesTable.js';
import { openParquetTable } from './tables/parquetTable.js';
import type { TableSource } from './tables/readTable.js';

/** Locates rows on the pages of a bill, record by record, so that evidence can show them. */

/** A page as it was received, and the settings that it was read with. */
export interface LocatedPage {
  bytes: Buffer;
  provider: Provider;
  format: BillingFormat;
  /** US dollars for one unit of the bill's currency, by day. */
  fxRateOn(day: string): FxRate;
  /** The charge category of the connection's request, where the page does not contain it. */
  asked?: ChargeCategory | undefined;
}

/** A record of a page. */
export interface LocatedRecord {
  /** Index of the JSON document in the file, from 0; 0 for a table. */
  document: number;
  /** JSON pointer of the record, or `#17`: the 17th record of a table, from 0. */
  at: string;
  /** Numbers of the record by JSON pointers inside it, or by column. */
  numbers: Map<string, string>;
  cells: TableRecord | null;
  /** Rows that the product's reader makes of the record; empty: the record of each row is unknown. */
  rows: readonly BilledRow[];
}

/**
 * The records of a page with their rows, in order; records without rows have none. For bills that are only readable as
 * a whole (`unplacedRows`) all rows come with the first record, and any record may contain them.
 */
export async function* locateRecords(page: LocatedPage): AsyncGenerator<LocatedRecord> {
  const packed = await unpacked(once(page.bytes));
  const bytes = Buffer.concat(await gather(packed.bytes));
  if (bytes.length === 0) return;
  switch (shapeOf(bytes, page.format, page.provider)) {
    case 'csv':
      return yield* recordsOfTable(await openCsvTable(once(bytes)), page);
    case 'jsonLines':
      return yield* recordsOfTable(await openJsonLines(once(bytes)), page);
    case 'parquet':
      return yield* recordsOfTable(await openParquetTable(randomOf(bytes)), page);
    case 'documents':
      return yield* recordsOfDocuments(bytes, page);
    case 'pages':
      return yield* recordsOfPages(bytes, page);
  }
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

async function gather(chunks: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

const randomOf = (bytes: Buffer) => ({
  sizeBytes: bytes.length,
  read: async (from: number, to: number) => bytes.subarray(from, to),
});

async function* recordsOfTable(table: TableSource, page: LocatedPage): AsyncGenerator<LocatedRecord> {
  const format = formatOfHeader(table, page.format, undefined);
  let place = 0;
  for await (const records of table.records(undefined)) {
    for (const { record } of records) {
      yield {
        document: 0,
        at: `#${place}`,
        numbers: new Map([...record].filter(([, text]) => NUMBER.test(text))),
        cells: record,
        rows: format.rowsOf(record, { provider: page.provider, fxRate: page.fxRateOn('') }) ?? [],
      };
      place += 1;
    }
  }
}

const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?\s*$/;

/** Records of OpenAI's and Anthropic's pages: each is a result of a bucket. */
async function* recordsOfPages(bytes: Buffer, page: LocatedPage): AsyncGenerator<LocatedRecord> {
  let document = 0;
  for await (const { value } of readJsonDocuments(once(bytes))) {
    const pages: [string, PageValue][] = Array.isArray(value)
      ? value.map((one, at) => [`/${at}`, one])
      : [['', value]];
    for (const [pointer, one] of pages) yield* resultsOfPage(one, pointer, document, page);
    document += 1;
  }
}

function* resultsOfPage(
  value: PageValue,
  pointer: string,
  document: number,
  page: LocatedPage,
): Generator<LocatedRecord> {
  for (const [at, bucket] of elementsOf(value, 'data', pointer)) {
    const startMicros = timeOf(bucket.start_time ?? bucket.starting_at);
    const endMicros = timeOf(bucket.end_time ?? bucket.ending_at);
    if (startMicros === undefined || endMicros === undefined) continue;
    for (const [place, result] of elementsOf(bucket, 'results', at)) {
      const kind = kindOf(result);
      if (!kind) continue;
      const rows = rowsOf(kind, { startMicros, endMicros }, result, page.fxRateOn(dayOf(startMicros)));
      yield { document, at: place, numbers: numbersOf(result), cells: null, rows };
    }
  }
}

function elementsOf(value: PageValue, name: string, pointer: string): [string, PageObject][] {
  const list = isPageObject(value) ? value[name] : undefined;
  if (!Array.isArray(list)) return [];
  return list.flatMap((one, at): [string, PageObject][] =>
    isPageObject(one) ? [[`${pointer}/${name}/${at}`, one]] : [],
  );
}

/** Records of documents that are only readable as a whole: any list element with numbers may be the record of a row. */
async function* recordsOfDocuments(bytes: Buffer, page: LocatedPage): AsyncGenerator<LocatedRecord> {
  const context = {
    fxRate: page.fxRateOn(''),
    fxRateOn: page.fxRateOn,
    asked: page.asked,
    seen: new Set<string>(),
  };
  const format = DOCUMENT_FORMATS.find((known) => known.format === page.format);
  if (!format) throw new DomainError('invalid_billing_file', `no reader of ${page.format} is known`);
  let document = 0;
  for await (const { value } of readJsonDocuments(once(bytes))) {
    if (isPageObject(value) && format.isDocument(value)) {
      yield { document, at: '', numbers: new Map(), cells: null, rows: format.read(value, context).rows };
      for (const [at, numbers] of listElements(value, ''))
        yield { document, at, numbers, cells: null, rows: [] };
    }
    document += 1;
  }
}

/** Every element of a list that contains numbers, outer ones first. */
function* listElements(value: PageValue, pointer: string): Generator<[string, Map<string, string>]> {
  const entries = childrenOf(value);
  for (const [name, child] of entries) {
    const at = `${pointer}/${escaped(name)}`;
    if (Array.isArray(value)) {
      const numbers = numbersOf(child);
      if (numbers.size > 0) yield [at, numbers];
    }
    yield* listElements(child, at);
  }
}

/** Numbers of a value by their pointers, including numeric texts, since several reports write amounts as texts. */
function numbersOf(value: PageValue): Map<string, string> {
  const numbers = new Map<string, string>();
  const walk = (one: PageValue, pointer: string) => {
    if (one instanceof ExactNumber) numbers.set(pointer, one.text);
    else if (typeof one === 'string' && NUMBER.test(one)) numbers.set(pointer, one);
    else for (const [name, child] of childrenOf(one)) walk(child, `${pointer}/${escaped(name)}`);
  };
  walk(value, '');
  return numbers;
}

function childrenOf(value: PageValue): [string, PageValue][] {
  if (Array.isArray(value)) return value.map((one, at) => [String(at), one]);
  return isPageObject(value) ? Object.entries(value) : [];
}

/** A name inside a JSON pointer (RFC 6901). */
const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** The parts of the readers of bills that evidence needs; connectors know which request led to each page. */
export function createPageReaders(
  connectors: Readonly<Partial<Record<string, Pick<BillingConnector, 'askedFor'>>>>,
) {
  return {
    locateRecords: (page: Omit<LocatedPage, 'provider' | 'format'> & { provider: string; format: string }) =>
      locateRecords(page as LocatedPage),
    askedFor: (provider: string, previousCursor: string | null) =>
      connectors[provider]?.askedFor?.(previousCursor),
  };
}
