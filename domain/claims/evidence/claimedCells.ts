import { type BilledRow, QUANTITY_ONE } from '../../billing/billedRow.js';
import { divideHalfEven, type Pico } from '../../money.js';
import type {
  ExplainedImpacts,
  MeterDay,
  MeterImpact,
  SeriesDay,
} from '../../reconciliation/engine/index.js';
import type { SeriesDayEvidence } from '../../reconciliation/evidence/evidenceText.js';

import { billedRate, chargeProduct } from '../../reconciliation/matching/classLines.js';
import { QUANTITY_KINDS } from '../../reconciliation/taxonomy.js';
import type { DisputedDay, DraftDispute } from '../draft.js';
import type { RateRegister } from './buildEvidence.js';
import type { CellBasis, EvidencePart } from './claimEvidence.js';

/** The cells of a claim: each disputed day by meter, with the quantities and rates from which its dollars follow. */

/** A cell before its rows are added. Quantities in 1e-12 units. */
export interface CellDraft {
  dispute: DraftDispute;
  day: string;
  /** null: the whole day is one cell. */
  meter: MeterDay | null;
  seriesDay: SeriesDay | null;
  /** The evidence of the series' day; null: no run has published it. */
  evidence: SeriesDayEvidence | null;
  basis: CellBasis;
  billedQuantity: bigint | null;
  rightQuantity: bigint | null;
  observedQuantity: bigint | null;
  billedPico: Pico;
  ratePico: Pico;
  volumePico: Pico;
  parts: EvidencePart[];
  billedRate: Pico | null;
  expectedRate: Pico | null;
}

interface ExplainedSeries {
  explained: readonly ExplainedImpacts[];
  evidence: ReadonlyMap<string, SeriesDayEvidence>;
}

/** A dispute's cells by day. If the engine now explains the series differently, the day is one cell, as stated. */
export function cellsOfDispute(
  dispute: DraftDispute,
  { explained, evidence }: ExplainedSeries,
  register: RateRegister,
): CellDraft[] {
  return dispute.days.flatMap((day) => {
    const found = explained.find(
      (one) => one.kind === dispute.kind && one.variant === day.variant && one.day.day === day.day,
    );
    return found && isSame(day, found.impacts)
      ? found.impacts.map((impact) => cellOf(dispute, found.day, impact, register))
      : [statedCell(dispute, day, evidence.get(day.day) ?? null)];
  });
}

function isSame(day: DisputedDay, impacts: readonly MeterImpact[]): boolean {
  const sum = (of: (one: MeterImpact) => Pico) => impacts.reduce((total, one) => total + of(one), 0n);
  return (
    sum((one) => one.billedPico) === day.billedPico &&
    sum((one) => one.ratePico) === day.ratePico &&
    sum((one) => one.volumePico) === day.volumePico
  );
}

function statedCell(dispute: DraftDispute, day: DisputedDay, evidence: SeriesDayEvidence | null): CellDraft {
  return {
    dispute,
    day: day.day,
    meter: null,
    seriesDay: null,
    evidence,
    basis: 'stated',
    billedQuantity: null,
    rightQuantity: null,
    observedQuantity: null,
    billedPico: day.billedPico,
    ratePico: day.ratePico,
    volumePico: day.volumePico + day.ownPricingPico,
    parts: [],
    billedRate: null,
    expectedRate: null,
  };
}

function cellOf(
  dispute: DraftDispute,
  day: SeriesDay,
  impact: MeterImpact,
  register: RateRegister,
): CellDraft {
  const { meter } = impact;
  const quantity = meter?.meter.quantity ?? null;
  const computed = meter && quantity !== null ? computedParts(day, meter, register) : undefined;
  const right = impact.rightQuantity ?? (impact.volumePico === 0n ? quantity : null);
  const isComputed = computed !== undefined && right !== null && isRecomputable(impact, computed, right);
  return {
    dispute,
    day: day.day,
    meter,
    seriesDay: day,
    evidence: day.evidence,
    basis: isComputed ? 'rates' : 'stated',
    billedQuantity: quantity,
    rightQuantity: isComputed ? right : null,
    observedQuantity: meter?.observed ?? null,
    billedPico: impact.billedPico,
    ratePico: impact.ratePico,
    volumePico: impact.volumePico,
    parts: isComputed
      ? computed.parts.map(({ quantity: part, id }) => ({ quantity: String(part), rate: id }))
      : [],
    billedRate: quantity !== null && quantity > 0n ? billedRate(impact.billedPico, quantity) : null,
    expectedRate:
      computed && new Set(computed.parts.map(({ id }) => id)).size === 1
        ? (computed.parts[0]?.rate ?? null)
        : null,
  };
}

interface ComputedParts {
  parts: { quantity: bigint; id: string; rate: Pico }[];
}

function computedParts(day: SeriesDay, meter: MeterDay, register: RateRegister): ComputedParts | undefined {
  if (day.pricedAs === null) return undefined;
  const parts: ComputedParts['parts'] = [];
  for (const { circumstances, quantity, tokenClass = meter.tokenClass } of meter.mix) {
    const found = register.idOf({
      rates: day.agreed,
      list: day.list,
      model: day.pricedAs,
      tokenClass,
      circumstances,
      discountPercent: day.untoldDiscount ?? null,
    });
    if (!found) return undefined;
    parts.push({ quantity, ...found });
  }
  return { parts };
}

const CHARGE_DIVISOR = QUANTITY_ONE * 1_000_000n;

/** The quantity at the rates of its parts in their proportion, exactly as a checker of the pack computes it. */
function amountOfParts(parts: readonly { quantity: bigint; rate: Pico }[], quantity: bigint): Pico {
  const whole = parts.reduce((total, part) => total + part.quantity, 0n);
  const product = parts.reduce((total, part) => total + chargeProduct(part.quantity, part.rate), 0n);
  if (whole === quantity || whole === 0n) return divideHalfEven(product, CHARGE_DIVISOR);
  return divideHalfEven(product * quantity, CHARGE_DIVISOR * whole);
}

/** A cell whose rows have changed since the finding: its basis becomes `stated`. */
export const asStated = (cell: CellDraft): CellDraft => ({
  ...cell,
  basis: 'stated',
  rightQuantity: null,
  parts: [],
});

/** Whether the rate and volume differences follow from quantities and rates alone. */
function isRecomputable(
  { meter, billedPico, ratePico, volumePico }: MeterImpact,
  { parts }: ComputedParts,
  right: bigint,
): boolean {
  const whole = parts.reduce((total, part) => total + part.quantity, 0n);
  const quantity = meter?.meter.quantity ?? null;
  if (quantity === null || whole !== quantity || right < 0n || right > quantity) return false;
  // A claim never asks for units that calls show.
  if (right !== quantity && right < (meter?.observed ?? 0n)) return false;
  const ofBilled = amountOfParts(parts, quantity);
  return (
    (ratePico === 0n || ratePico === billedPico - ofBilled) &&
    volumePico === ofBilled - amountOfParts(parts, right)
  );
}

/** Assigns the rows of the bill to the cells of a claim. */

/** The fields of a stored row that identify its meter. */
type MeterRow = Pick<
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

interface CellRows<Row> {
  cost: Row[];
  /** Usage report rows with the quantity; empty: the bill itself has it. */
  usage: Row[];
  /** For disputed units: the rows of the provider's usage report that count the same usage. */
  told: Row[];
  /** Whether the rows add up to the cell's amount and quantity. */
  isWhole: boolean;
}

/** The rows of a cell, among those of its day and series. */
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

/** Whether a usage row belongs to the meter; a field that one of them leaves open takes the other's value. */
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

/** Whether a usage report row counts usage of the meter; a field that either leaves open agrees. */
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
