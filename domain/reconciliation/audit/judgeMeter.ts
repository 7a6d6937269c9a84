import { absPico, type Pico } from '../../money.js';
import { expectedOfMeter } from '../matching/classLines.js';
import type { Meter } from '../matching/meters.js';
import { type Circumstances, type DayRates, isTokenClass } from './dayRates.js';

/**
 * Reasons why the bill alone does not show whether a charge is at the agreed rate:
 * - `not_observable`: storage, sessions, tool fees, whose rates are unknown;
 * - `not_per_token`: billed by the request or by another unit;
 * - `unparsed_line`: no grammar recognises the label;
 * - `negative_amount`: a correction inside the usage;
 * - `no_quantity`: neither the bill nor the usage report has a quantity;
 * - `no_price`: no rate of that day is known;
 * - `assumed_rate`: no source lists the rate, one was assumed;
 * - `batch_unknown`, `length_unknown`: some mix of batch and standard, or of long and ordinary requests, explains
 *   the
 *   amount, and neither the bill nor the usage report shows the mix;
 * - `free_allowance`: usage at amount zero, which is no discount.
 */
export const UNJUDGED_REASONS = [
  'not_observable',
  'not_per_token',
  'unparsed_line',
  'negative_amount',
  'no_quantity',
  'no_price',
  'assumed_rate',
  'batch_unknown',
  'length_unknown',
  'free_allowance',
] as const;
export type UnjudgedReason = (typeof UNJUDGED_REASONS)[number];

export type Verdict = 'as_agreed' | 'differs' | UnjudgedReason;

export interface Judgement {
  verdict: Verdict;
  /** The quantity at the right rates; null: the quantity or the rate is unknown. */
  expectedPico: Pico | null;
}

/** No price rule changes a rate by less than one part in this many; smaller deviations are rounding by the bill. */
const RATE_DEVIATION_PARTS = 2_000n;

/** Whether the amount equals the expected one within the rounding of the rows and of one pico-dollar here. */
export function isAmountOf(meter: Meter, expectedPico: Pico): boolean {
  return absPico(meter.amountPico - expectedPico) <= meter.roundingPico + 1n;
}

/** Judges a meter by the bill and the provider's usage report, without calls. */
export function judgeMeter(meter: Meter, pricedAs: string | null, rates: DayRates): Judgement {
  const { tokenClass, quantity, amountPico } = meter;
  if (!isTokenClass(tokenClass))
    return unjudged(tokenClass === 'requests' ? 'not_per_token' : 'unparsed_line');
  if (amountPico < 0n) return unjudged('negative_amount');
  if (quantity === null || quantity <= 0n) return unjudged('no_quantity');
  const expectedPico = expectedOfMeter(meter, pricedAs, rates);
  // A list rate of zero is usually a missing rate, so it never causes a finding.
  if (pricedAs === null || expectedPico === null || expectedPico === 0n) return unjudged('no_price');
  if (amountPico === 0n) return { verdict: 'free_allowance', expectedPico };
  if (meter.parts.some((part) => rates.rate(pricedAs, tokenClass, part.circumstances)?.assumed !== false))
    return { verdict: 'assumed_rate', expectedPico };
  const excess = amountPico - expectedPico;
  const isNoise = absPico(excess) * RATE_DEVIATION_PARTS < expectedPico;
  if (isNoise || isAmountOf(meter, expectedPico)) return { verdict: 'as_agreed', expectedPico };
  return { verdict: explainedByTheUnknown(meter, pricedAs, rates, expectedPico) ?? 'differs', expectedPico };
}

function unjudged(verdict: UnjudgedReason): Judgement {
  return { verdict, expectedPico: null };
}

/** The meter with other circumstances of its usage. */
export function underOther(meter: Meter, change: Partial<Circumstances>): Meter {
  return {
    ...meter,
    parts: meter.parts.map((part) => ({ ...part, circumstances: { ...part.circumstances, ...change } })),
  };
}

/** The unknown circumstance, batch or length, of which some mix explains the amount; undefined: none does. */
function explainedByTheUnknown(
  meter: Meter,
  pricedAs: string,
  rates: DayRates,
  expectedPico: Pico,
): UnjudgedReason | undefined {
  const batchOpen = meter.split === 'bill' && meter.isBatch === null;
  const lengthOpen = !meter.lengthTold;
  let variants = [meter];
  if (batchOpen) variants = variants.flatMap((one) => [one, underOther(one, { isBatch: true })]);
  if (lengthOpen) variants = variants.flatMap((one) => [one, underOther(one, { longContext: true })]);
  let [least, most] = [expectedPico, expectedPico];
  for (const variant of variants) {
    const amount = expectedOfMeter(variant, pricedAs, rates);
    if (amount !== null && amount < least) least = amount;
    if (amount !== null && amount > most) most = amount;
  }
  const slack = meter.roundingPico + 1n;
  if (meter.amountPico < least - slack || meter.amountPico > most + slack) return undefined;
  const isBelow = meter.amountPico < expectedPico;
  if (isBelow) return batchOpen ? 'batch_unknown' : 'length_unknown';
  return lengthOpen ? 'length_unknown' : 'batch_unknown';
}

/** Possible explanations of a wrong amount: the keys of the violation taxonomy that a bill alone can suggest. */
export const RATE_HINTS = [
  'contract_rate_not_applied',
  'batch_discount_not_applied',
  'service_tier_rate_misapplied',
  'long_context_rate_misapplied',
  'cache_read_rate_mismatch',
  'cache_write_rate_mismatch',
  'modality_rate_mismatch',
  'region_uplift_misapplied',
  'price_effective_date_mismatch',
] as const;
export type RateHint = (typeof RATE_HINTS)[number];

type TokenClassName = Meter['tokenClass'];

/** Classes that may have been charged at another class's rate, with the mistake that this would be. */
const OTHER_CLASSES: Partial<Record<TokenClassName, readonly [RateHint, TokenClassName][]>> = {
  cache_read: [['cache_read_rate_mismatch', 'input']],
  cache_write_5m: [
    ['cache_write_rate_mismatch', 'cache_write_1h'],
    ['cache_write_rate_mismatch', 'input'],
  ],
  cache_write_1h: [
    ['cache_write_rate_mismatch', 'cache_write_5m'],
    ['cache_write_rate_mismatch', 'input'],
  ],
  input_audio: [['modality_rate_mismatch', 'input']],
  output_audio: [['modality_rate_mismatch', 'output']],
};

/** The rates to compare with a charge: those agreed with the organization, and those of the list. */
export interface ChargeRates {
  agreed: DayRates;
  list: DayRates;
}

/** Known mistakes that explain exactly this amount within rounding; there may be several. A hint, not a finding. */
export function findRateHints(meter: Meter, pricedAs: string, { agreed, list }: ChargeRates): RateHint[] {
  const found = new Set<RateHint>();
  const test = (hint: RateHint, as: Meter, rates: DayRates) => {
    if (!found.has(hint) && isChargedAs(meter, as, pricedAs, rates)) found.add(hint);
  };
  const change = (hint: RateHint, circumstances: Partial<Circumstances>) =>
    test(hint, underOther(meter, circumstances), agreed);

  test('contract_rate_not_applied', meter, list);
  if (has(meter, (at) => at.isBatch)) change('batch_discount_not_applied', { isBatch: false });
  else
    for (const serviceTier of agreed.tiersOf(pricedAs))
      change('service_tier_rate_misapplied', { serviceTier });
  change('long_context_rate_misapplied', {
    longContext: !has(meter, (at) => at.longContext),
    contextBand: 0,
  });
  for (const [hint, tokenClass] of OTHER_CLASSES[meter.tokenClass] ?? [])
    test(hint, { ...meter, tokenClass }, agreed);
  for (const region of [null, ...agreed.regionsOf(pricedAs)]) change('region_uplift_misapplied', { region });
  // Before a contract the list price applied, so this hint is implied by `contract_rate_not_applied`.
  if (!found.has('contract_rate_not_applied'))
    for (const rates of agreed.otherPeriodsOf(pricedAs)) test('price_effective_date_mismatch', meter, rates);
  return RATE_HINTS.filter((hint) => found.has(hint));
}

function has(meter: Meter, is: (circumstances: Circumstances) => boolean): boolean {
  return meter.parts.some((part) => is(part.circumstances));
}

/** Whether the amount equals the cost of `as` by listed rates; an assumed rate explains nothing. */
function isChargedAs(meter: Meter, as: Meter, pricedAs: string, rates: DayRates): boolean {
  const { tokenClass } = as;
  if (!isTokenClass(tokenClass)) return false;
  const amount = expectedOfMeter(as, pricedAs, rates);
  if (amount === null || !isAmountOf(meter, amount)) return false;
  return as.parts.every((part) => rates.rate(pricedAs, tokenClass, part.circumstances)?.assumed === false);
}
