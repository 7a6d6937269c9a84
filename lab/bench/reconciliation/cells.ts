/** Groups rows of bills into the cells to compare, as db/billing/billingRows.ts does in SQL. */
import { factsOfFormat, isTierNamed } from '../../../domain/billing/sources.js';
import type { BilledCell, UsageCell } from '../../../domain/reconciliation/matching/cells.js';
import type { SourcedRow } from './fetchRows.js';

const MICROS_PER_HOUR = 3_600_000_000n;

/** Cells by `provider day`, the key of a provider's day. */
export type ByDay<Cell> = Map<string, Cell[]>;

export const dayKey = (provider: string, day: string) => `${provider} ${day}`;

/** Billed usage amounts by meter. */
export function billedCellsOf(rows: readonly SourcedRow[]): ByDay<BilledCell> {
  const groups = new Map<string, { dayKey: string; cell: BilledCell }>();
  for (const { provider, accountId, format, row } of rows) {
    if (row.feed !== 'cost' || row.chargeCategory !== 'usage' || row.amountPico === null) continue;
    const lineItem = row.model === null || !row.observable ? row.lineItem : '';
    const words = [row.model, row.tokenClass, row.serviceTier, row.isBatch, row.longContext, row.region];
    const key = JSON.stringify([provider, row.day, accountId, format, lineItem, ...words, row.observable]);
    const known = groups.get(key);
    if (known) {
      const { cell } = known;
      cell.rowCount += 1;
      cell.quantity = cell.quantity === null || row.quantity === null ? null : cell.quantity + row.quantity;
      cell.amountPico += row.amountPico;
      continue;
    }
    groups.set(key, {
      dayKey: dayKey(provider, row.day),
      cell: {
        accountId,
        lineItem,
        model: row.model,
        tokenClass: row.tokenClass,
        serviceTier: row.serviceTier,
        isBatch: row.isBatch,
        longContext: row.longContext,
        region: row.region,
        observable: row.observable,
        rowCount: 1,
        quantity: row.quantity,
        amountPico: row.amountPico,
        listAmountPico: null,
        roundingPico: factsOfFormat(format).roundingPico,
        ...(isTierNamed(format, row.longContext) ? { tierNamed: true } : {}),
      },
    });
  }
  return byDay([...groups.values()]);
}

/** The usage reports' quantities, by hour if the report has hours. */
export function usageCellsOf(rows: readonly SourcedRow[]): ByDay<UsageCell> {
  const groups = new Map<string, { dayKey: string; cell: UsageCell }>();
  for (const { provider, accountId, row } of rows) {
    if (row.feed !== 'usage' || row.quantity === null) continue;
    const isHour = row.periodEndMicros - row.periodStartMicros <= MICROS_PER_HOUR;
    const hourMicros = isHour ? row.periodStartMicros - (row.periodStartMicros % MICROS_PER_HOUR) : null;
    const words = [row.model, row.tokenClass, row.serviceTier, row.isBatch, row.longContext, row.region];
    const key = JSON.stringify([provider, row.day, accountId, ...words, String(hourMicros)]);
    const known = groups.get(key);
    if (known) {
      known.cell.quantity += row.quantity;
      continue;
    }
    groups.set(key, {
      dayKey: dayKey(provider, row.day),
      cell: {
        accountId,
        model: row.model,
        tokenClass: row.tokenClass,
        serviceTier: row.serviceTier,
        isBatch: row.isBatch,
        longContext: row.longContext,
        region: row.region,
        quantity: row.quantity,
        hourMicros,
      },
    });
  }
  return byDay([...groups.values()]);
}

function byDay<Cell>(items: readonly { dayKey: string; cell: Cell }[]): ByDay<Cell> {
  const days: ByDay<Cell> = new Map();
  for (const { dayKey: key, cell } of items) {
    const cells = days.get(key);
    if (cells) cells.push(cell);
    else days.set(key, [cell]);
  }
  return days;
}
