/** Which rows of the bill make which cell of a claim. */
import type { BilledRow } from '../../billing/billedRow.js';
import { QUANTITY_KINDS } from '../../reconciliation/taxonomy.js';
import type { CellDraft } from './claimedCells.js';

/** What of a stored row tells its meter. */
export type MeterRow = Pick<
  BilledRow,
  | 'feed'
  | 'day'
  | 'model'
  | 'lineItem'
  | 'tokenClass'
  | 'serviceTier'
  | 'isBatch'
  | 'longContext'
  | 'region'
  | 'quantity'
  | 'amountPico'
>;

export interface CellRows<Row> {
  /** Rows with money. */
  cost: Row[];
  /** Rows of the provider's usage report that give the quantity; empty where the bill itself does. */
  usage: Row[];
  /** Where units are disputed: what the provider's usage report itself counts of the same, if it does. */
  told: Row[];
  /** Whether the cost rows come to what the cell is charged, and the quantities to its quantity. */
  isWhole: boolean;
}

/** The rows of a cell, of those of its day and series. */
export function rowsOfCell<Row extends MeterRow>(cell: CellDraft, rows: readonly Row[]): CellRows<Row> {
  const ofDay = rows.filter((row) => row.day === cell.day && isOfSeries(cell, row));
  const cost = ofDay.filter((row) => row.feed === 'cost' && row.amountPico !== null && isOfMeter(cell, row));
  if (!cell.meter) return { cost, usage: [], told: [], isWhole: cost.length > 0 };
  const { meter } = cell.meter;
  const usage = meter.quantitySource === 'usage' ? ofDay.filter((row) => isUsageOf(cell, row)) : [];
  const amount = cost.reduce((sum, row) => sum + (row.amountPico ?? 0n), 0n);
  const quantities = (meter.quantitySource === 'usage' ? usage : cost).map((row) => row.quantity);
  const quantity = quantities.reduce<bigint | null>(
    (sum, one) => (sum === null || one === null ? null : sum + one),
    0n,
  );
  const isOfQuantity =
    cell.volumePico !== 0n || (QUANTITY_KINDS as readonly string[]).includes(cell.dispute.kind);
  return {
    cost,
    usage,
    told: isOfQuantity && usage.length === 0 ? ofDay.filter((row) => isToldOf(cell, row)) : [],
    isWhole: amount === meter.amountPico && (meter.quantity === null || quantity === meter.quantity),
  };
}

function isOfSeries({ evidence, dispute }: CellDraft, row: MeterRow): boolean {
  if (!evidence) return row.model === dispute.model || row.lineItem === dispute.model;
  const named = [...evidence.billed, ...evidence.usage].some(
    (cell) => cell.model !== null && cell.model === row.model,
  );
  return named || evidence.billed.some((cell) => cell.model === null && cell.lineItem === row.lineItem);
}

function isOfMeter({ meter: of, seriesDay }: CellDraft, row: MeterRow): boolean {
  if (!of || !seriesDay) return true;
  const { meter } = of;
  return (
    row.tokenClass === meter.tokenClass &&
    seriesDay.agreed.tier(row.serviceTier) === meter.serviceTier &&
    row.isBatch === meter.isBatch &&
    row.longContext === meter.longContext &&
    row.region === meter.region
  );
}

/** As meters take their quantities from a usage report: where one leaves something open, the other's word holds. */
function isUsageOf({ meter: of, seriesDay }: CellDraft, row: MeterRow): boolean {
  if (!of || !seriesDay || row.feed !== 'usage' || row.tokenClass !== of.meter.tokenClass) return false;
  return of.meter.parts.some(
    ({ circumstances }) =>
      circumstances.serviceTier === seriesDay.agreed.tier(row.serviceTier) &&
      circumstances.isBatch === (row.isBatch ?? of.meter.isBatch) &&
      circumstances.longContext === (of.meter.longContext ?? row.longContext ?? false) &&
      circumstances.region === row.region,
  );
}

/** A row of the usage report of what the meter charges; what either leaves open agrees. */
function isToldOf({ meter: of, seriesDay }: CellDraft, row: MeterRow): boolean {
  if (!of || !seriesDay || row.feed !== 'usage' || row.tokenClass !== of.meter.tokenClass) return false;
  const agrees = <T>(a: T | null, b: T | null) => a === null || b === null || a === b;
  return (
    row.quantity !== null &&
    seriesDay.agreed.tier(row.serviceTier) === of.meter.serviceTier &&
    agrees(row.isBatch, of.meter.isBatch) &&
    agrees(row.longContext, of.meter.longContext) &&
    agrees(row.region, of.meter.region)
  );
}
