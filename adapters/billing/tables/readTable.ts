import { assertPlausible, assertPlausibleDay, type BilledRow } from '../../../domain/billing/billedRow.js';
import { formatOfHeader, type TableHead } from '../../../domain/billing/formats/index.js';
import {
  CellFault,
  type LeftOut,
  type PlainCharge,
  type TableFormat,
  type TableOptions,
  type TableRecord,
} from '../../../domain/billing/formats/tableFormat.js';
import { type BillingFormat, factsOfFormat } from '../../../domain/billing/sources.js';
import { DomainError } from '../../../domain/errors.js';
import { type BillingFileOptions, type BillingFileSummary, Notes, type TaggedRow } from '../fileSummary.js';

/** Facts about a table that are known once it has been read. */
export interface TableSummary {
  format: BillingFormat;
  leftOut: LeftOut[];
  /** Days of accounts that have only omitted charges: the bill covers them too. */
  covered: Covered[];
}

type Covered = NonNullable<PlainCharge['covers']>;

/**
 * A table's rows, batch by batch. Its columns determine the format. Error: invalid_billing_file with the place; rows
 * that were yielded before it must not be kept.
 */
export async function* readTable(
  source: TableSource,
  options: TableOptions & { format: BillingFormat | undefined },
): AsyncGenerator<BilledRow[], TableSummary> {
  const format = placed(source.headerFault, () => chooseFormat(source, options));
  const leftOut = new LeftOutCharges();
  const repeated = new RepeatedRecords(format);
  let isEmpty = true;
  for await (const records of source.records(format.reads)) {
    const rows: BilledRow[] = [];
    for (const one of records) {
      isEmpty = false;
      const read = rowsOf(format, one, options);
      if (!read) leftOut.add(format, one);
      else {
        repeated.look(one);
        rows.push(...read);
      }
    }
    if (rows.length > 0) yield rows;
  }
  if (isEmpty)
    throw source.headerFault(
      `${format.name} without a single charge: the file ends behind its header; export it again`,
    );
  return { format: format.format, leftOut: leftOut.sums, covered: leftOut.covered };
}

function chooseFormat(
  source: TableSource,
  options: TableOptions & { format: BillingFormat | undefined },
): TableFormat {
  const format = formatOfHeader(source, options.format, options.provider);
  const { provider } = factsOfFormat(format.format);
  if (provider === undefined || provider === options.provider) return format;
  throw new DomainError(
    'invalid_billing_file',
    `this is ${format.name}, a bill of ${provider}, but the file was given as ${options.provider}'s`,
  );
}

function rowsOf(format: TableFormat, one: PlacedRecord, options: TableOptions): readonly BilledRow[] | null {
  return placed(one.faultAt.bind(one), () => {
    const rows = format.rowsOf(one.record, options);
    for (const row of rows ?? []) assertPlausible(row);
    return rows;
  });
}

/** Adds the place to a fault that a format reports in a record. */
function placed<T>(faultAt: (reason: string, column?: string) => DomainError, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof CellFault) throw faultAt(error.message, error.column);
    if (error instanceof DomainError) throw faultAt(error.message);
    throw error;
  }
}

/** Most records whose identity is remembered, so that none counts twice. */
const REMEMBERED_MAX = 20_000;

/** Finds records that are in the file twice, where the format has an identity for each. */
class RepeatedRecords {
  readonly #format: TableFormat;
  readonly #seen = new Set<string>();

  constructor(format: TableFormat) {
    this.#format = format;
  }

  look(one: PlacedRecord): void {
    const identity = this.#format.identityOf?.(one.record);
    if (identity === undefined) return;
    if (this.#seen.has(identity))
      throw one.faultAt('the same charge occurs twice; give each part of a bill once');
    if (this.#seen.size < REMEMBERED_MAX) this.#seen.add(identity);
  }
}

/** Sums of omitted charges, by category and currency. */
class LeftOutCharges {
  readonly #sums = new Map<string, LeftOut>();
  readonly #covered = new Map<string, Covered>();

  add(format: TableFormat, one: PlacedRecord): void {
    const charges = placed(one.faultAt.bind(one), () => {
      const charge = format.chargeOf?.(one.record);
      for (const { covers } of [charge ?? []].flat()) if (covers) assertPlausibleDay(covers.day);
      return charge;
    });
    if (!charges) throw new Error(`${format.format} left a record out and does not say what it charges`);
    for (const charge of [charges].flat()) this.#add(charge);
  }

  #add({ chargeCategory, currency, amount, covers }: PlainCharge): void {
    if (covers) this.#covered.set(`${covers.day} ${covers.account ?? ''}`, covers);
    const key = `${chargeCategory} ${currency}`;
    const known = this.#sums.get(key);
    if (!known) {
      this.#sums.set(key, { chargeCategory, currency, amount, rows: 1 });
      return;
    }
    known.rows += 1;
    known.amount += amount;
  }

  get covered(): Covered[] {
    return [...this.#covered.values()];
  }

  /** In the order of category and currency. */
  get sums(): LeftOut[] {
    return [...this.#sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
  }
}

/** Reads a table's rows; see `readBillingFile`. */
export async function* readTableRows(
  table: TableSource,
  options: BillingFileOptions,
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const notes = new Notes();
  const reader = readTable(table, options);
  const currencies = new Set<string>();
  for (;;) {
    const next = await reader.next();
    if (next.done) {
      for (const { day, account } of next.value.covered)
        notes.cover({ day, account, feed: 'cost', report: '' });
      return notes.summary(next.value.format, new Set(), next.value.leftOut);
    }
    for (const row of next.value) {
      notes.row(row);
      if (options.fxRate) assertOneCurrency(row, currencies);
      notes.cover({ day: row.day, feed: row.feed, report: row.report, account: row.account });
    }
    yield next.value.map((row) => ({ row, copy: 0 }));
  }
}

/** Refuses a second currency: one exchange rate converts one currency, and other amounts would silently be wrong. */
function assertOneCurrency({ currency }: BilledRow, seen: Set<string>): void {
  if (currency === null || currency === 'USD') return;
  seen.add(currency);
  if (seen.size === 1) return;
  throw new DomainError(
    'invalid_billing_file',
    `the bill is in ${[...seen].join(' and ')}, which one fx_rate cannot convert; import it without fx_rate, or each currency in a file of its own`,
  );
}

/** A record, which creates errors about itself or one of its cells with their place in the file. */
export interface PlacedRecord {
  record: TableRecord;
  /** The error `reason` at this record; `column` is the lower-case name of the faulty cell. */
  faultAt(reason: string, column?: string): DomainError;
}

/** A file that is a table: its columns first, then its records, batch by batch, in bounded memory. */
export interface TableSource {
  /** Lower-case names. For JSON lines, which have no header, those of the first record. */
  columns: ReadonlySet<string>;
  layout: TableHead['layout'];
  /** The error `reason` of the header; `column` is its lower-case name. */
  headerFault(reason: string): DomainError;
  /**
   * The records, with the cells of the `wanted` columns (undefined: all). Can be iterated once. Error:
   * invalid_billing_file with the place.
   */
  records(wanted: ReadonlySet<string> | undefined): AsyncIterable<PlacedRecord[]>;
}

/** Random access to the bytes of a file. */
export interface RandomAccess {
  sizeBytes: number;
  /** Bytes from `from` up to, not including, `to`. */
  read(from: number, to: number): Promise<Buffer>;
}
