import { isUnparsed } from '../../domain/billing/anthropicRows.js';
import type { BilledRow, ChargeCategory, Feed, UnparsedLabel } from '../../domain/billing/billedRow.js';
import type { LeftOut } from '../../domain/billing/formats/tableFormat.js';
import type { FxRate, PageKind } from '../../domain/billing/pageRow.js';
import type { BillingFormat } from '../../domain/billing/sources.js';
import type { Provider } from '../../domain/providers.js';
import type { RandomAccess } from './tables/readTable.js';

/** A row with the number of its bucket; 0 in formats without buckets. */
export interface TaggedRow {
  row: BilledRow;
  copy: number;
}

/** A day that the file covers, with or without charges. */
export interface CoveredDay {
  day: string;
  feed: Feed;
  report: string;
  account: string | null;
}

export interface BillingFileOptions {
  provider: Provider;
  /** Absent: determined from the content. */
  format: BillingFormat | undefined;
  fxRate: FxRate;
  /** Exchange rate by day (`YYYY-MM-DD`), instead of one rate, where monthly rates were set. */
  fxRateOn?(day: string): FxRate;
  /**
   * The report of every page, where it is known from the request (`pageKindOf`): a page without results then means that
   * its days have no charges, and a result of another report is an error.
   */
  expected?: PageKind;
  /** BucketCopies that an earlier reading found to be replaced: their rows are omitted. */
  skip: ReadonlySet<number>;
  /** Permits a report without results: it was requested, and `format` names its provider. */
  mayBeEmpty?: boolean;
  /** The charge category of the request, where the pages do not contain it (`BillingConnector.askedFor`). */
  asked?: ChargeCategory;
  /** Random access to the same bytes, for formats that begin at the end (Parquet). */
  random?: RandomAccess;
}

/** Facts that are known once the whole file has been read. */
export interface BillingFileSummary {
  format: BillingFormat;
  covered: CoveredDay[];
  superseded: ReadonlySet<number>;
  unparsed: UnparsedLabel[];
  /** Charges of services that are not model providers'. */
  leftOut: readonly LeftOut[];
  /** Charges in currencies without an exchange rate: they are kept and in no sum of dollars. By currency. */
  unconverted: readonly Unconverted[];
}

/** `amount` is in 1e-12 units of `currency`. */
export interface Unconverted {
  currency: string;
  rows: number;
  amount: bigint;
}

/** Labels that an import lists one by one; the rest are in the rows. */
const UNPARSED_LISTED_MAX = 200;

/** Collects the summary of a file while its rows are read. */
export class Notes {
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

/** Signatures of files that are not supported bills, and the remedy. */
const SIGNATURES: readonly (readonly [bytes: readonly number[], told: string])[] = [
  [
    [0x50, 0x4b, 0x03, 0x04],
    'this is a ZIP archive or an Excel workbook; unpack it, or save the sheet as CSV (UTF-8), and give that',
  ],
  [[0xd0, 0xcf, 0x11, 0xe0], 'this is an Excel workbook; save the sheet as CSV (UTF-8) and give that'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'this is packed with Zstandard; unpack it, or pack it with gzip'],
  [[0x42, 0x5a, 0x68], 'this is packed with bzip2; unpack it, or pack it with gzip'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'this is packed with xz; unpack it, or pack it with gzip'],
  [[0x37, 0x7a, 0xbc, 0xaf], 'this is a 7-Zip archive; unpack it and give the file that is in it'],
  [[0x1f, 0x8b], 'this is packed with gzip twice; unpack it once'],
  [[0x25, 0x50, 0x44, 0x46], 'this is a PDF; give the export of costs that the provider offers beside it'],
  [[0x4f, 0x62, 0x6a, 0x01], 'this is an Avro file; export it as CSV, JSON lines or Parquet'],
  [[0x4f, 0x52, 0x43], 'this is an ORC file; export it as CSV or Parquet'],
  [[0xff, 0xfe], 'the text is UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)'],
  [[0xfe, 0xff], 'the text is UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)'],
];

/** Position of the signature in a tar archive. */
const TAR_AT = 257;
/** Bytes that are searched for zero bytes, which text does not contain. */
const TEXT_BYTES = 4_096;

/** The kind of a text that is a single JSON value and neither an object nor a list; undefined for other texts. */
function jsonScalarOf(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return undefined;
    return typeof value === 'string' ? 'text' : typeof value === 'number' ? 'number' : String(value);
  } catch {
    return undefined;
  }
}

/**
 * A sentence with the remedy for an unpacked head of an unreadable file: an archive, a compression other than gzip, a
 * workbook, a web page, another encoding. undefined: it may be a bill.
 */
export function foreignContent(head: Buffer, wasPacked: boolean): string | undefined {
  const known = SIGNATURES.find(([bytes]) => bytes.every((byte, at) => head[at] === byte));
  if (known) return known[1];
  if (head.subarray(TAR_AT, TAR_AT + 5).toString('latin1') === 'ustar')
    return 'this is a tar archive; give the files that are in it, one by one';
  if (head.subarray(0, 4).toString('latin1') === 'PAR1')
    return wasPacked
      ? 'this is a Parquet file that is packed with gzip; unpack it, Parquet is packed inside'
      : undefined;
  const text = head.subarray(0, TEXT_BYTES);
  if (/^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|\?xml|[a-z]+[ >])/i.test(text.toString('latin1')))
    return 'this is a web page or an XML document, perhaps an error that was saved in place of the bill';
  const scalar = head.length <= TEXT_BYTES ? jsonScalarOf(head.toString('utf8')) : undefined;
  if (scalar !== undefined)
    return `this is a JSON ${scalar}, which holds no charges; give the whole answer or export`;
  if (!text.includes(0)) return undefined;
  // UTF-16 text in Latin letters has a zero in every other byte.
  const isWide =
    text.length > 3 && (text[0] === 0) !== (text[1] === 0) && (text[2] === 0) !== (text[3] === 0);
  return isWide
    ? 'the text is UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)'
    : 'this is no text; give a CSV (UTF-8), JSON or Parquet file, packed with gzip or not at all';
}
