import { QUANTITY_ONE } from '../billing/billedRow.js';
import { TOKEN_CLASSES } from '../events/event.js';
import { absPico, type Pico } from '../money.js';
import type { GapBucket, MatchStatus, ObservedCell, UsageCell } from './cells.js';
import { apportion, chargeProduct, picoFromChargeProduct } from './charge.js';
import { type DayRates, isTokenClass } from './dayRates.js';
import { flagThresholdPico, lowerOf, tolerancePico } from './grade.js';

const MICROS_PER_HOUR = 3_600_000_000n;
const MINUTES_PER_HOUR = 60;
const HOURS_PER_DAY = 24;

/** Token usage with its hour. */
function hourlyUsage(usage: readonly UsageCell[]): { hour: bigint; quantity: bigint }[] {
  return usage.flatMap(({ tokenClass, hourMicros, quantity }) =>
    hourMicros !== null && isTokenClass(tokenClass) ? [{ hour: hourMicros, quantity }] : [],
  );
}

function hourlyObserved(observed: readonly ObservedCell[]): { hour: bigint; quantity: bigint }[] {
  return observed.map((cell) => ({
    hour: cell.hourMicros,
    quantity: TOKEN_CLASSES.reduce((total, name) => total + cell.tokens[name], 0n) * QUANTITY_ONE,
  }));
}

/** Usage-weighted middle in minutes since 1970; undefined without usage. */
function centreMinutes(entries: readonly { hour: bigint; quantity: bigint }[]): number | undefined {
  let weight = 0n;
  let moment = 0n;
  for (const { hour, quantity } of entries) {
    weight += quantity;
    moment += (hour + MICROS_PER_HOUR / 2n) * quantity;
  }
  return weight === 0n ? undefined : Number(moment / weight / 60_000_000n);
}

/**
 * Minutes between the usage-weighted middles of the provider's and our side, and minutes with billed usage and no
 * event of ours; both null where the provider's report has no time within the day, the first also when unmatched.
 */
export function clockOf(
  usage: readonly UsageCell[],
  observed: readonly ObservedCell[],
  status: MatchStatus,
): { gapMinutes: number | null; unobservedMinutes: number | null } {
  const billed = hourlyUsage(usage).filter(({ quantity }) => quantity > 0n);
  if (billed.length === 0) return { gapMinutes: null, unobservedMinutes: null };
  const ours = hourlyObserved(observed);
  const [theirs, own] = [centreMinutes(billed), centreMinutes(ours)];
  const seen = new Set(observed.filter((cell) => cell.calls > 0).map((cell) => cell.hourMicros));
  const unseen = new Set(billed.map(({ hour }) => hour).filter((hour) => !seen.has(hour)));
  return {
    gapMinutes:
      status === 'unmatched' || theirs === undefined || own === undefined ? null : Math.abs(theirs - own),
    unobservedMinutes: unseen.size * MINUTES_PER_HOUR,
  };
}

/**
 * The hours of a day's bucket, where the provider's report is hourly: the day's dollars in proportion to each hour's
 * usage at list, summing to the day exactly. Empty where the report is not that fine. An hour is never surer than MEDIUM.
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
  const hours = Array.from(
    { length: HOURS_PER_DAY },
    (_, at) => day.startMicros + BigInt(at) * MICROS_PER_HOUR,
  );
  const weights = hours.map((hour) =>
    weightOf(
      tokens.filter((cell) => cell.hourMicros === hour),
      pricedAs,
      rates,
    ),
  );
  const billed = apportion(day.providerCostPico, weights);
  return hours.flatMap((hour, at): GapBucket[] => {
    const inHour = observed.filter((cell) => cell.hourMicros === hour);
    const billedPico = billed[at] ?? 0n;
    if (billedPico === 0n && inHour.length === 0) return [];
    return [
      hourBucket(
        day,
        hour,
        billedPico,
        tokens.filter((cell) => cell.hourMicros === hour),
        inHour,
      ),
    ];
  });
}

/** Usage at list; plain token counts where the model has no price. */
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

function hourBucket(
  day: GapBucket,
  hour: bigint,
  billedPico: Pico,
  usage: readonly UsageCell[],
  observed: readonly ObservedCell[],
): GapBucket {
  const ourCostPico = observed.reduce((total, cell) => total + cell.computedCostPico, 0n);
  const bothSides =
    day.matchStatus !== 'unmatched' && usage.some((cell) => cell.quantity > 0n) && observed.length > 0;
  const isMatched = bothSides && absPico(billedPico - ourCostPico) <= tolerancePico(billedPico, 0n);
  const matchStatus: MatchStatus = isMatched ? 'matched' : bothSides ? 'partial' : 'unmatched';
  const explained = billedPico < ourCostPico ? billedPico : ourCostPico;
  const isSilent =
    day.reason === 'not_observable' || day.reason === 'not_yet_observed' || day.reason === 'free_allowance';
  return {
    ...day,
    width: 'hour',
    startMicros: hour,
    matchStatus,
    grade: matchStatus === 'unmatched' ? 'UNVERIFIED' : lowerOf(day.grade, 'MEDIUM'),
    confidenceScore: matchStatus === 'unmatched' ? null : day.confidenceScore,
    flagged:
      !isMatched &&
      !day.provisional &&
      !isSilent &&
      absPico(billedPico - ourCostPico) >= flagThresholdPico(billedPico),
    gapMinutes: null,
    unobservedMinutes: observed.length === 0 ? MINUTES_PER_HOUR : 0,
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
