import { expectedOfMeter } from '../matching/classLines.js';
import type { Meter } from '../matching/meters.js';
import { type Circumstances, type DayRates, isTokenClass } from './dayRates.js';
import { isAmountOf, underOther } from './judgeMeter.js';

/** What a wrong amount may be, by the keys of the violation taxonomy that the bill alone can point to. */
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

/** Classes whose rate another class may have been charged at, and what that would be. */
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

/** The rates that a charge is held against: those agreed with the organization, and the list's. */
export interface ChargeRates {
  agreed: DayRates;
  list: DayRates;
}

/**
 * Which known mistakes give exactly this amount, to the rows' rounding. All that do are named: two mistakes can have the
 * same ratio, and nothing on the bill chooses between them. A hint, not a finding.
 */
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
  // Before a contract its list price held: that it was not applied says as much.
  if (!found.has('contract_rate_not_applied'))
    for (const rates of agreed.otherPeriodsOf(pricedAs)) test('price_effective_date_mismatch', meter, rates);
  return RATE_HINTS.filter((hint) => found.has(hint));
}

function has(meter: Meter, is: (circumstances: Circumstances) => boolean): boolean {
  return meter.parts.some((part) => is(part.circumstances));
}

/** Whether the amount is what `as` costs, by rates that the sources give: an assumed one explains nothing. */
function isChargedAs(meter: Meter, as: Meter, pricedAs: string, rates: DayRates): boolean {
  const { tokenClass } = as;
  if (!isTokenClass(tokenClass)) return false;
  const amount = expectedOfMeter(as, pricedAs, rates);
  if (amount === null || !isAmountOf(meter, amount)) return false;
  return as.parts.every((part) => rates.rate(pricedAs, tokenClass, part.circumstances)?.assumed === false);
}
