import { isUnparsed } from '../../domain/billing/anthropicRows.js';
import type { BilledRow, ChargeCategory, Feed, UnparsedLabel } from '../../domain/billing/billedRow.js';
import type { LeftOut } from '../../domain/billing/formats/tableFormat.js';
import type { FxRate, PageKind } from '../../domain/billing/pageRow.js';
import type { BillingFormat } from '../../domain/billing/sources.js';
import type { Provider } from '../../domain/providers.js';
import type { RandomAccess } from './tables/tableSource.js';

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
  /** In its place where a rate was given for each month; asked by the day (`YYYY-MM-DD`). */
  fxRateOn?(day: string): FxRate;
  /**
   * The report that every page is of, where that is known because it was asked for (`pageKindOf`): a page without any
   * result then says that its days bill nothing, and a result of another report is an error.
   */
  expected?: PageKind;
  /** BucketCopies that an earlier reading of the same file found to be replaced: their rows are left out. */
  skip: ReadonlySet<number>;
  /** A report without a single result is in order: it was asked for, and `format` says whose it is. */
  mayBeEmpty?: boolean;
  /** What the pages were asked for, where they do not say it themselves (`BillingConnector.askedFor`). */
  asked?: ChargeCategory;
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

/** Labels that an import lists one by one; the rest are in the rows. */
const UNPARSED_LISTED_MAX = 200;

/** Gathers what is told about a file while its rows stream by. */
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
