import { type BilledClass, QUANTITY_ONE } from '../../billing/billedRow.js';
import type { Pico } from '../../money.js';
import { type Circumstances, type DayRates, isTokenClass } from '../audit/dayRates.js';
import type { BilledCell, ObservedCell, SplitSource, UsageCell } from './cells.js';
import { apportion } from './classLines.js';

export interface MeterPart {
  circumstances: Circumstances;
  quantity: bigint;
}

/** The day's charge for one class under the circumstances that the bill separates. */
export interface Meter {
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  amountPico: Pico;
  /** The bill's own list price; null: not every row has one. */
  listAmountPico: Pico | null;
  rows: number;
  roundingPico: Pico;
  /** From the cost rows, else from the usage report; null: neither has it. */
  quantity: bigint | null;
  quantitySource: 'cost' | 'usage' | 'none';
  parts: MeterPart[];
  split: SplitSource;
  /** Whether the bill or the usage report separates long from ordinary requests. */
  lengthTold: boolean;
}

/** Cost and usage totals that differ by less than this share count the same consumption. */
const TOTALS_AGREE_PER_MILLE = 1n;

/**
 * Joins cost rows with the usage report to find quantity, batch, tier and length; else uses the bill, else the
 * observed mix, which is marked.
 */
export function buildMeters(
  billed: readonly BilledCell[],
  usage: readonly UsageCell[],
  observed: readonly ObservedCell[],
  rates: DayRates,
): Meter[] {
  const meters = groupMeters(billed, rates);
  const cells = usage.map((cell) => ({ ...cell, serviceTier: rates.tier(cell.serviceTier) }));
  for (const meter of meters) {
    const others = meters.filter((other) => other !== meter && other.tokenClass === meter.tokenClass);
    fillFromUsage(meter, others, cells) || fillFromBill(meter, others, observed, rates);
  }
  return meters;
}

function groupMeters(billed: readonly BilledCell[], rates: DayRates): Meter[] {
  const meters = new Map<string, Meter>();
  for (const cell of billed) {
    const serviceTier = rates.tier(cell.serviceTier);
    const key = [cell.tokenClass, serviceTier, cell.isBatch, cell.longContext, cell.region].join('|');
    const known = meters.get(key);
    if (known) {
      known.amountPico += cell.amountPico;
      known.rows += cell.rowCount;
      known.roundingPico += cell.roundingPico * BigInt(cell.rowCount);
      known.listAmountPico =
        known.listAmountPico === null || cell.listAmountPico === null
          ? null
          : known.listAmountPico + cell.listAmountPico;
      known.quantity =
        known.quantity === null || cell.quantity === null ? null : known.quantity + cell.quantity;
      if (known.quantity === null) known.quantitySource = 'none';
      continue;
    }
    meters.set(key, {
      tokenClass: cell.tokenClass,
      serviceTier,
      isBatch: cell.isBatch,
      longContext: cell.longContext,
      region: cell.region,
      amountPico: cell.amountPico,
      listAmountPico: cell.listAmountPico,
      rows: cell.rowCount,
      roundingPico: cell.roundingPico * BigInt(cell.rowCount),
      quantity: cell.quantity,
      quantitySource: cell.quantity === null ? 'none' : 'cost',
      parts: [],
      split: 'none',
      lengthTold: cell.longContext !== null,
    });
  }
  return [...meters.values()];
}

/** A bill without a separate batch line includes other tiers in its plain line, unless it has a line for them. */
function takesTier(meter: Meter, others: readonly Meter[], tier: string): boolean {
  if (meter.serviceTier === tier) return true;
  if (meter.serviceTier !== 'standard' || meter.isBatch !== null) return false;
  return !others.some((other) => other.serviceTier === tier);
}

/** A cost report that is not grouped by place includes every place in its lines. */
function takesRegion(meter: Meter, others: readonly Meter[], region: string | null): boolean {
  if (meter.region === region) return true;
  return meter.region === null && !others.some((other) => other.region === region);
}

/** The circumstances of calls that logs contain. */
export interface CallCircumstances {
  serviceTier: string;
  isBatch: boolean;
  longContext: boolean;
}

/** Whether calls of these circumstances are charged on the meter. */
export function takesCalls(meter: Meter, others: readonly Meter[], calls: CallCircumstances): boolean {
  return (
    takesTier(meter, others, calls.serviceTier) &&
    agrees(meter.isBatch, calls.isBatch) &&
    agrees(meter.longContext, calls.longContext)
  );
}

const agrees = <T>(a: T | null, b: T | null): boolean => a === null || b === null || a === b;

function isUsageOf(meter: Meter, others: readonly Meter[], cell: UsageCell): boolean {
  return (
    cell.tokenClass === meter.tokenClass &&
    takesTier(meter, others, cell.serviceTier) &&
    agrees(meter.isBatch, cell.isBatch) &&
    agrees(meter.longContext, cell.longContext) &&
    takesRegion(meter, others, cell.region)
  );
}

interface Share {
  circumstances: Circumstances;
  quantity: bigint;
}

/** Usage of a meter by circumstances; undefined: the report leaves a field open that the meter leaves open too. */
function sharesOf(meter: Meter, cells: readonly UsageCell[]): Share[] | undefined {
  const shares = new Map<string, Share>();
  for (const cell of cells) {
    const isBatch = cell.isBatch ?? meter.isBatch;
    const longContext = meter.longContext ?? cell.longContext;
    if (isBatch === null) return undefined;
    const circumstances = {
      serviceTier: cell.serviceTier,
      isBatch,
      longContext: longContext ?? false,
      contextBand: 0,
      region: cell.region,
    };
    const key = JSON.stringify(circumstances);
    const known = shares.get(key);
    if (known) known.quantity += cell.quantity;
    else shares.set(key, { circumstances, quantity: cell.quantity });
  }
  return [...shares.values()];
}

function totalsAgree(a: bigint, b: bigint): boolean {
  const difference = a > b ? a - b : b - a;
  return difference * 1_000n <= TOTALS_AGREE_PER_MILLE * (a > b ? a : b);
}

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

/** Takes quantity and split from the usage report; false: the report does not determine them. */
function fillFromUsage(meter: Meter, others: readonly Meter[], cells: readonly UsageCell[]): boolean {
  const own = cells.filter((cell) => isUsageOf(meter, others, cell));
  if (own.length === 0) return false;
  const sharers = others.filter((other) =>
    own.some((cell) => isUsageOf(other, [meter, ...others.filter((one) => one !== other)], cell)),
  );
  const shares = sharesOf(meter, own);
  if (!shares) return false;
  const total = sum(own.map((cell) => cell.quantity));
  if (sharers.length > 0) {
    // Several meters share these cells, so only the kind of usage can be known, and only if all of it is of one
    // kind.
    const quantities = [meter, ...sharers].map((one) => one.quantity);
    const [only, more] = shares;
    if (!only || more || meter.quantity === null || quantities.includes(null)) return false;
    if (!totalsAgree(sum(quantities.map((quantity) => quantity ?? 0n)), total)) return false;
    meter.parts = [{ circumstances: only.circumstances, quantity: meter.quantity }];
  } else if (meter.quantity === null) {
    meter.quantity = total;
    meter.quantitySource = 'usage';
    meter.parts = shares;
  } else {
    if (!totalsAgree(meter.quantity, total)) return false;
    const parts = apportion(
      meter.quantity,
      shares.map((share) => share.quantity),
    );
    meter.parts = shares.map((share, at) => ({
      circumstances: share.circumstances,
      quantity: parts[at] ?? 0n,
    }));
  }
  meter.split = 'usage_report';
  meter.lengthTold ||= own.every((cell) => cell.longContext !== null);
  return true;
}

/** Takes the split from the bill, and from the observed mix for the fields that the bill leaves open. */
function fillFromBill(
  meter: Meter,
  others: readonly Meter[],
  observed: readonly ObservedCell[],
  rates: DayRates,
): boolean {
  const quantity = meter.quantity;
  if (quantity === null) return false;
  const plain: Circumstances = {
    serviceTier: meter.serviceTier,
    isBatch: meter.isBatch ?? false,
    longContext: meter.longContext ?? false,
    contextBand: 0,
    region: meter.region,
  };
  const mix =
    meter.isBatch === null || meter.longContext === null ? observedMix(meter, others, observed, rates) : [];
  const isPlain = mix.every(
    ({ circumstances: c }) =>
      c.serviceTier === plain.serviceTier &&
      c.isBatch === plain.isBatch &&
      c.longContext === plain.longContext,
  );
  if (isPlain) {
    meter.parts = [{ circumstances: plain, quantity }];
    meter.split = 'bill';
    return true;
  }
  const parts = apportion(
    quantity,
    mix.map((share) => share.quantity),
  );
  meter.parts = mix.map((share, at) => ({ circumstances: share.circumstances, quantity: parts[at] ?? 0n }));
  meter.split = 'observed_mix';
  return true;
}

function observedMix(
  meter: Meter,
  others: readonly Meter[],
  observed: readonly ObservedCell[],
  rates: DayRates,
): Share[] {
  const tokenClass = meter.tokenClass;
  if (!isTokenClass(tokenClass)) return [];
  const shares = new Map<string, Share>();
  for (const cell of observed) {
    const tier = rates.tier(cell.serviceTier);
    const longContext = cell.contextBand > 0;
    if (!takesCalls(meter, others, { serviceTier: tier, isBatch: cell.isBatch, longContext })) continue;
    const circumstances = {
      serviceTier: tier,
      isBatch: cell.isBatch,
      longContext,
      contextBand: cell.contextBand,
      region: meter.region,
    };
    const key = JSON.stringify(circumstances);
    const quantity = cell.tokens[tokenClass] * QUANTITY_ONE;
    const known = shares.get(key);
    if (known) known.quantity += quantity;
    else shares.set(key, { circumstances, quantity });
  }
  return [...shares.values()].filter((share) => share.quantity > 0n);
}
