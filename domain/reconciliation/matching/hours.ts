import { QUANTITY_ONE } from '../../billing/billedRow.js';
import { TOKEN_CLASSES } from '../../events/event.js';
import { absPico, type Pico } from '../../money.js';
import { type DayRates, isTokenClass } from '../audit/dayRates.js';
import type { GapBucket, HourCount, MatchStatus, ObservedCell, UsageCell } from './cells.js';
import {
  apportion,
  chargeProduct,
  flagThresholdPico,
  isNeverFlagged,
  lowerOf,
  picoFromChargeProduct,
  tolerancePico,
} from './classLines.js';

const MICROS_PER_HOUR = 3_600_000_000n;
const MINUTES_PER_HOUR = 60;
const HOURS_PER_DAY = 24;

/** Token usage by hour, without zero counts. */
function hourlyUsage(usage: readonly UsageCell[]): HourCount[] {
  const counts: HourCount[] = [];
  for (const { tokenClass, hourMicros, quantity, hours = [] } of usage) {
    if (!isTokenClass(tokenClass)) continue;
    const own = hourMicros === null ? hours : [{ hourMicros, quantity }];
    for (const one of own) if (one.quantity > 0n) counts.push(one);
  }
  return counts;
}

function hourlyObserved(observed: readonly ObservedCell[]): HourCount[] {
  return observed.flatMap((cell): readonly HourCount[] => {
    if (cell.hours !== undefined) return cell.hours;
    const quantity = TOKEN_CLASSES.reduce((total, name) => total + cell.tokens[name], 0n) * QUANTITY_ONE;
    return cell.calls > 0 ? [{ hourMicros: cell.hourMicros, quantity }] : [];
  });
}

export function countCalls(observed: readonly ObservedCell[]): number {
  return observed.reduce((calls, cell) => calls + cell.calls, 0);
}

/** The usage-weighted mean time in minutes since 1970; undefined: there is no usage. */
function centreMinutes(entries: readonly HourCount[]): number | undefined {
  let weight = 0n;
  let moment = 0n;
  for (const { hourMicros, quantity } of entries) {
    weight += quantity;
    moment += hourMicros * quantity;
  }
  // Each hour counts at its middle, half an hour after its start.
  moment += (MICROS_PER_HOUR / 2n) * weight;
  return weight === 0n ? undefined : Number(moment / weight / 60_000_000n);
}

/**
 * Minutes between the weighted mean times of both sides, and billed minutes without events; null: no hourly
 * reports.
 */
export function clockOf(
  usage: readonly UsageCell[],
  observed: readonly ObservedCell[],
  status: MatchStatus,
): { gapMinutes: number | null; unobservedMinutes: number | null } {
  const billed = hourlyUsage(usage);
  if (billed.length === 0) return { gapMinutes: null, unobservedMinutes: null };
  const ours = hourlyObserved(observed);
  const [theirs, own] = [centreMinutes(billed), centreMinutes(ours)];
  const seen = new Set(ours.map((hour) => hour.hourMicros));
  const unseen = new Set<bigint>();
  for (const { hourMicros } of billed) if (!seen.has(hourMicros)) unseen.add(hourMicros);
  return {
    gapMinutes:
      status === 'unmatched' || theirs === undefined || own === undefined ? null : Math.abs(theirs - own),
    unobservedMinutes: unseen.size * MINUTES_PER_HOUR,
  };
}

/** One hour of both sides. */
interface Hour {
  startMicros: bigint;
  usage: readonly UsageCell[];
  observed: readonly ObservedCell[];
  ourCostPico: Pico;
  /** Every class has equal counts on both sides. */
  agrees: boolean;
  /** The provider's usage at list rates of ordinary requests, since its report does not separate long ones. */
  weight: bigint;
}

/**
 * A day's hours, which add up to it exactly. Hours that agree get the cost of their calls, the rest is divided by
 * usage at list. At most MEDIUM.
 */
export function hoursOf(
  day: GapBucket,
  usage: readonly UsageCell[],
  observed: readonly ObservedCell[],
  pricedAs: string | null,
  rates: DayRates,
): GapBucket[] {
  const tokens = usage.filter((cell) => isTokenClass(cell.tokenClass));
  if (tokens.length === 0 || tokens.some((cell) => cell.hourMicros === null)) return [];
  const hours = Array.from({ length: HOURS_PER_DAY }, (_, at): Hour => {
    const startMicros = day.startMicros + BigInt(at) * MICROS_PER_HOUR;
    const used = tokens.filter((cell) => cell.hourMicros === startMicros);
    const seen = observed.filter((cell) => cell.hourMicros === startMicros);
    return {
      startMicros,
      usage: used,
      observed: seen,
      ourCostPico: seen.reduce((total, cell) => total + cell.computedCostPico, 0n),
      agrees:
        seen.length > 0 &&
        quantitiesAgree(
          used,
          seen.filter((cell) => cell.status !== 'error'),
        ),
      weight: weightOf(used, pricedAs, rates),
    };
  });
  const billed = dollarsOf(day, hours);
  return hours.flatMap((hour, at): GapBucket[] => {
    const billedPico = billed[at] ?? 0n;
    return billedPico === 0n && hour.observed.length === 0 ? [] : [hourBucket(day, hour, billedPico)];
  });
}

/** Per mille by which the counts of an hour may differ and still agree. */
const QUANTITY_TOLERANCE_PER_MILLE = 2n;

function quantitiesAgree(usage: readonly UsageCell[], observed: readonly ObservedCell[]): boolean {
  return TOKEN_CLASSES.every((name) => {
    const billed = usage.reduce(
      (total, cell) => (cell.tokenClass === name ? total + cell.quantity : total),
      0n,
    );
    const seen = observed.reduce((total, cell) => total + cell.tokens[name], 0n) * QUANTITY_ONE;
    const difference = billed > seen ? billed - seen : seen - billed;
    return difference * 1_000n <= QUANTITY_TOLERANCE_PER_MILLE * (billed > seen ? billed : seen);
  });
}

function dollarsOf(day: GapBucket, hours: readonly Hour[]): Pico[] {
  const whole = day.providerCostPico;
  const isAtList = day.ratePico !== null && absPico(day.ratePico) <= tolerancePico(whole, 0n);
  const others = hours.filter((hour) => !hour.agrees);
  const rest = whole - hours.reduce((total, hour) => (hour.agrees ? total + hour.ourCostPico : total), 0n);
  if (isAtList && others.length > 0 && rest >= 0n) {
    const parts = apportion(
      rest,
      others.map((hour) => hour.weight),
    );
    return hours.map((hour) => (hour.agrees ? hour.ourCostPico : (parts[others.indexOf(hour)] ?? 0n)));
  }
  return apportion(
    whole,
    hours.map((hour) => (hour.agrees ? hour.ourCostPico : hour.weight)),
  );
}

/** Usage at list; plain token counts if the model has no price. */
function weightOf(cells: readonly UsageCell[], pricedAs: string | null, rates: DayRates): bigint {
  let product = 0n;
  for (const cell of cells) {
    if (!isTokenClass(cell.tokenClass)) continue;
    const circumstances = {
      serviceTier: rates.tier(cell.serviceTier),
      isBatch: cell.isBatch ?? false,
      longContext: cell.longContext ?? false,
      contextBand: 0,
      region: cell.region,
    };
    const rate = pricedAs === null ? undefined : rates.rate(pricedAs, cell.tokenClass, circumstances)?.rate;
    product += rate === undefined ? cell.quantity : chargeProduct(cell.quantity, rate);
  }
  return pricedAs === null ? product : picoFromChargeProduct(product);
}

function hourBucket(day: GapBucket, hour: Hour, billedPico: Pico): GapBucket {
  const { ourCostPico, observed } = hour;
  const bothSides =
    day.matchStatus !== 'unmatched' && hour.usage.some((cell) => cell.quantity > 0n) && observed.length > 0;
  const isMatched = bothSides && absPico(billedPico - ourCostPico) <= tolerancePico(billedPico, 0n);
  const matchStatus: MatchStatus = isMatched ? 'matched' : bothSides ? 'partial' : 'unmatched';
  const explained = billedPico < ourCostPico ? billedPico : ourCostPico;
  return {
    ...day,
    width: 'hour',
    startMicros: hour.startMicros,
    matchStatus,
    grade: matchStatus === 'unmatched' ? 'UNVERIFIED' : lowerOf(day.grade, 'MEDIUM'),
    confidenceScore: matchStatus === 'unmatched' ? null : day.confidenceScore,
    flagged:
      !isMatched &&
      !day.provisional &&
      !isNeverFlagged(day.reason) &&
      absPico(billedPico - ourCostPico) >= flagThresholdPico(billedPico),
    gapMinutes: null,
    unobservedMinutes: observed.length === 0 ? MINUTES_PER_HOUR : 0,
    eventCount: countCalls(observed),
    providerCostPico: billedPico,
    ourCostPico,
    expectedCostPico: null,
    ratePico: null,
    volumePico: null,
    ownPricingPico: null,
    matchedPico: isMatched ? billedPico : bothSides ? explained : 0n,
    lines: [],
    waterfall: [],
  };
}
