import { createHash } from 'node:crypto';
import type { BilledRow, ChargeCategory } from '../domain/billing/billedRow.js';
import type { Pico } from '../domain/money.js';

/** What a day bills of one category. */
export interface CategorySum {
  rowCount: number;
  amountPico: Pico;
  unconvertedRows: number;
}

interface Line {
  /** Null while no row gives one. */
  quantity: bigint | null;
  amountPico: Pico;
  originalAmount: bigint;
  netPico: Pico | null;
}

interface DayContent {
  lines: Map<string, Line>;
  sums: Map<ChargeCategory, CategorySum>;
  /** True while every row says that it is final, false once one says that it is not. */
  isFinal: boolean | null;
}

/**
 * What each day of a report says, so that two fetches of it can be compared. Rows that differ in nothing but their hour
 * or their place in the page are one line: a day told by the hour and told as a whole says the same.
 */
export class DayContents {
  readonly #days = new Map<string, DayContent>();

  /** The report speaks about the day, with or without charges. */
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

  /** In their order. */
  get days(): string[] {
    return [...this.#days.keys()].sort();
  }

  /** The same for two fetches that say the same of the day. */
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

  /** Whether the report itself calls the day final; null where it does not say. */
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
