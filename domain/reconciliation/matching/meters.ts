import { type BilledClass, QUANTITY_ONE } from '../../billing/billedRow.js';
import type { TokenClass } from '../../events/event.js';
import type { Pico } from '../../money.js';
import { type Circumstances, type DayRates, isTokenClass } from '../audit/dayRates.js';
import type { BilledCell, ObservedCell, SplitSource, UsageCell } from './cells.js';
import { apportion } from './classLines.js';
import { joinByTotals, namedBy } from './joinTotals.js';
import { isUsageOf, takesCalls } from './lineUse.js';

export interface MeterPart {
  circumstances: Circumstances;
  quantity: bigint;
  /** Absent: the line's own. */
  tokenClass?: TokenClass;
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
  /** Every row's label would name a tier beside the ordinary one: the line's tier is a fact of the bill. */
  tierNamed?: boolean;
  parts: MeterPart[];
  split: SplitSource;
  /** Whether the bill or the usage report separates long from ordinary requests. */
  lengthTold: boolean;
  /** The usage report counts some of it under other circumstances than the line names: see joinTotals.ts. */
  crossed?: true;
}

/** Cost and usage totals that differ by less than this share count the same consumption. */
const TOTALS_AGREE_PER_MILLE = 1n;

/**
 * Joins cost rows with the usage report to find quantity, batch, tier and length; else uses the bill, else the
 * observed mix, which is marked. `rates` are the agreed ones, and `pricedAs` the model that they are for.
 */
export function buildMeters(
  billed: readonly BilledCell[],
  usage: readonly UsageCell[],
  observed: readonly ObservedCell[],
  rates: DayRates,
  pricedAs: string | null,
): Meter[] {
  const meters = groupMeters(billed, rates);
  const cells = usage.map((cell) => ({ ...cell, serviceTier: rates.tier(cell.serviceTier) }));
  for (const meter of meters) {
    const others = meters.filter((other) => other !== meter && other.tokenClass === meter.tokenClass);
    if (fillFromUsage(meter, others, cells)) mixLengths(meter, observed, rates);
    else fillFromBill(meter, others, observed, rates);
  }
  if (pricedAs !== null && cells.length > 0)
    joinByTotals(meters, cells, (tokenClass, at) => listedRate(rates, pricedAs, tokenClass, at));
  return meters;
}

function listedRate(
  rates: DayRates,
  model: string,
  tokenClass: TokenClass,
  at: Circumstances,
): Pico | undefined {
  const found = rates.rate(model, tokenClass, at);
  return found && !found.assumed && found.rate > 0n ? found.rate : undefined;
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
      known.tierNamed &&= cell.tierNamed ?? false;
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
      tierNamed: cell.tierNamed ?? false,
      parts: [],
      split: 'none',
      lengthTold: cell.longContext !== null,
    });
  }
  return [...meters.values()];
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

/**
 * Divides a line by length as the calls of its tier and kind are, where neither bill nor usage report states the length: as
 * ordinary requests alone it would seem too dear by what the long ones cost.
 */
function mixLengths(meter: Meter, observed: readonly ObservedCell[], rates: DayRates): void {
  const { tokenClass } = meter;
  if (meter.lengthTold || !isTokenClass(tokenClass)) return;
  const parts = meter.parts.flatMap((part) => {
    const { serviceTier, isBatch } = part.circumstances;
    const bands = new Map<number, bigint>();
    for (const cell of observed)
      if (cell.isBatch === isBatch && rates.tier(cell.serviceTier) === serviceTier)
        bands.set(cell.contextBand, (bands.get(cell.contextBand) ?? 0n) + cell.tokens[tokenClass]);
    const used = [...bands].filter(([, tokens]) => tokens > 0n).sort(([a], [b]) => a - b);
    if (used.every(([contextBand]) => contextBand === 0)) return [part];
    const quantities = apportion(
      part.quantity,
      used.map(([, tokens]) => tokens),
    );
    return used.map(([contextBand], at) => ({
      circumstances: { ...part.circumstances, longContext: contextBand > 0, contextBand },
      quantity: quantities[at] ?? 0n,
    }));
  });
  if (parts.every((part, at) => part === meter.parts[at])) return;
  Object.assign(meter, { parts, split: 'observed_mix' });
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
  const plain = namedBy(meter);
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
