import { STANDARD_TIER } from '../../../pricing/rateCards.js';
import type { Circumstances } from '../../audit/dayRates.js';
import type { MeterPart } from '../../matching/meters.js';
import {
  BATCH,
  coversMost,
  type Hypothesis,
  having,
  lasts,
  type MeterDay,
  type Run,
  type SeriesContext,
  type SeriesDay,
  sentenceOf,
  touchesEdge,
  type Variant,
} from './cause.js';
import { allMoved } from './moves.js';
import { areLinesLabelled, isTierOpen, LABELLED_TIERS, pairsBy, placeOf, profilesBeside } from './places.js';
import {
  amountAs,
  asBatch,
  asLinesName,
  hasQuantities,
  multipleOf,
  otherCharge,
  otherCircumstances,
  repriced,
  sumOf,
  under,
} from './predict.js';

const WORDS = {
  standard_rate: 'Batch calls were charged at the standard rate.',
  batch_rate: 'Standard calls were charged at the batch rate.',
  on_other_line:
    'Batch calls and standard calls were charged on other lines than the provider’s usage report counts them under.',
  discount_twice: 'The batch discount was taken off twice.',
  in_standard_meter: 'Batch calls were counted as standard calls.',
};

const ASK = ['Ask for the batch rate on the calls named here; the batches are found by their ids.'];

const isOfSomeDays = (run: Run, context: SeriesContext): boolean => !coversMost(run, context);

/** Batch calls charged at the rate of standard calls, or standard calls at that of batch. */
export const batchDiscountRate: Hypothesis = {
  kind: 'batch_discount_not_applied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => [
    ...otherCircumstances(day, 'standard_rate', under({ isBatch: false })),
    // Half the price from the first day to the last is no mistake of the bill.
    ...having({ lastsAs: isOfSomeDays }, [
      ...asLinesName(day, 'on_other_line', 'isBatch'),
      // With amounts alone half of all is as well half of what the events count.
      ...(hasQuantities(day)
        ? having({ chargedTier: BATCH }, otherCircumstances(day, 'batch_rate', asBatch))
        : []),
      ...having(
        { isAnyPrice: true },
        multipleOf(day, 'discount_twice', 1n, 2n, (meter) => placeOf(meter).isBatch === true),
      ),
    ]),
  ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/**
 * Batch calls on the meter of standard calls: the rates are right, the counts are not. The other way round the bill
 * cannot be separated from calls without the flag, and it is the client's (client.ts).
 */
export const batchDiscountQuantity: Hypothesis = {
  kind: 'batch_discount_not_applied',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) =>
    allMoved(
      day,
      'in_standard_meter',
      pairsBy(day, (place) => place.isBatch === true, { isBatch: false }),
    ),
  // A batch may be counted on the day beside: on one day alone it is as well not billed yet, and others' calls are.
  fits: lasts,
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

const SERVICE_TIER_WORDS = {
  unnamed: 'Calls were charged at the rates of a tier that the line of the bill does not name: %.',
  unnamed_at_list:
    'Calls were charged at the list rates of a tier that the line of the bill does not name, without the contract: %.',
  tier: 'Calls were charged at the rates of another tier than they used: %.',
  on_other_line:
    'Calls were charged on the line of another tier than the one that the provider’s usage report counts them under.',
};

const SERVICE_TIER_ASK = [
  'Name some of the calls: each answer says in its `service_tier` which tier served it.',
];

/** The rates of another service tier. Batch has its own hypothesis. */
export const serviceTierRate: Hypothesis = {
  kind: 'service_tier_rate_misapplied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day, context) => {
    if (day.pricedAs === null) return [];
    const used = new Set(
      day.meters.flatMap(({ mix }) =>
        mix.flatMap(({ circumstances: at }) => (at.isBatch ? [] : [at.serviceTier])),
      ),
    );
    // A call without a reported tier may have used any: the client has to report it (client.ts).
    if (isTierOpen(day)) used.delete(STANDARD_TIER);
    const listed = [...new Set([STANDARD_TIER, ...day.agreed.tiersOf(day.pricedAs)])].sort();
    const otherLines = asLinesName(day, 'on_other_line', 'serviceTier');
    const otherRates = [...used]
      .sort()
      .flatMap((from) =>
        listed
          .filter((to) => to !== from)
          .flatMap((to) =>
            atTier(
              day,
              context,
              from,
              to,
              (words, isList) => `tier:${from} as ${to}${words}${isList ? ' at list' : ''}`,
            ),
          ),
      );
    return [...otherLines, ...otherRates];
  },
  describe: (variant) => sentenceOf(SERVICE_TIER_WORDS, variant),
  advise: () => SERVICE_TIER_ASK,
};

/**
 * A dearer tier's rates on lines that would name it, where no call reports its tier, for some days between right ones.
 * The labels are documented nowhere, so calls of that tier on a line without its name stay possible (clientAmounts.ts): a
 * reason to look.
 */
export const serviceTierUnnamed: Hypothesis = {
  kind: 'service_tier_rate_misapplied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  highest: 'LOW',
  variants: (day, context) => {
    if (day.pricedAs === null || !isTierOpen(day) || !areLinesLabelled(day)) return [];
    return day.agreed
      .tiersOf(day.pricedAs)
      .filter((tier) => LABELLED_TIERS.has(tier))
      .flatMap((tier) =>
        atTier(
          day,
          context,
          STANDARD_TIER,
          tier,
          (words, isList) => `${isList ? 'unnamed_at_list' : 'unnamed'}:${tier}${words}`,
        ),
      );
  },
  fits: (run, context) => !touchesEdge(run, context),
  describe: (variant) => sentenceOf(SERVICE_TIER_WORDS, variant),
  advise: () => [
    'Import the provider’s usage report of these days: it tells which tier served the calls. If none was asked for, ask for the ordinary rates.',
  ],
};

/** Calls of one tier at the rates of another, or at its list rates. */
function atTier(
  day: SeriesDay,
  context: SeriesContext,
  from: string,
  to: string,
  nameOf: (words: string, isList: boolean) => string,
): Variant[] {
  const variants = lengthsOf(context, day, from).flatMap(([words, isMeant]) => [
    ...otherCircumstances(day, nameOf(words, false), (at) => (isMeant(at) ? { ...at, serviceTier: to } : at)),
    ...atListRates(day, nameOf(words, true), to, isMeant),
  ]);
  return having({ chargedTier: to }, variants);
}

/**
 * All calls of a tier or, where some are long, the ordinary ones alone: not every tier takes long requests. Where they are of
 * other days only, too: a mistake goes on over days with long ones and without.
 */
function lengthsOf(
  { tells }: SeriesContext,
  day: SeriesDay,
  from: string,
): [words: string, isMeant: (at: Circumstances) => boolean][] {
  const isOfTier = (at: Circumstances) => !at.isBatch && at.serviceTier === from;
  const isLong = (at: Circumstances) => at.longContext || at.contextBand > 0;
  const hasLong = day.meters.some(({ mix }) =>
    mix.some(({ circumstances: at }) => isOfTier(at) && isLong(at)),
  );
  const all: [string, (at: Circumstances) => boolean] = ['', isOfTier];
  return hasLong || tells.longRequests
    ? [all, [' below the long boundary', (at) => isOfTier(at) && !isLong(at)]]
    : [all];
}

/** The other tier's list rates: a contract is often applied to the tier that it was written for alone. */
function atListRates(
  day: SeriesDay,
  name: string,
  to: string,
  isOf: (at: Circumstances) => boolean,
): Variant[] {
  if (day.list === day.agreed) return [];
  const isMeant = ({ circumstances }: MeterPart) => isOf(circumstances);
  const otherwise = {
    rates: day.list,
    circumstances: (at: Circumstances) => ({ ...at, serviceTier: to }),
  };
  const amountOf = (meter: MeterDay, quantity: bigint) => {
    const meant = meter.mix.filter(isMeant);
    const whole = sumOf(meter.mix.map((part) => part.quantity));
    const part = whole === 0n ? quantity : (quantity * sumOf(meant.map((one) => one.quantity))) / whole;
    const rest = { ...meter, mix: meter.mix.filter((one) => !isMeant(one)) };
    const charged = amountAs(day, { ...meter, mix: meant }, part, otherwise);
    const usual = rest.mix.length > 0 ? amountAs(day, rest, quantity - part) : 0n;
    return charged === null || usual === null ? null : charged + usual;
  };
  // Usage without a rate at the other tier, such as long requests, was charged as it should be.
  return repriced(day, name, amountOf, (meter) => meter.mix.some(isMeant));
}

const REGION_WORDS = {
  uplift: 'Calls without a place of their own were charged with the addition for %.',
  on_other_line:
    'Calls were charged on the line of another place than the one that the provider’s usage report counts them at.',
  profile: 'Calls through one inference profile were charged at the rates of another: that of %.',
  no_uplift: 'Calls in a dearer place were charged at the ordinary rates.',
};

/** The addition for a place on calls that the bill itself puts elsewhere, or its lack. */
export const regionUplift: Hypothesis = {
  kind: 'region_uplift_misapplied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source', 'place'],
  variants: (day) =>
    day.pricedAs === null
      ? []
      : [
          ...day.agreed
            .regionsOf(day.pricedAs)
            .flatMap((region) =>
              having({ isAnyPrice: true }, otherCircumstances(day, `uplift:${region}`, under({ region }))),
            ),
          // With amounts alone another profile's price is as well a tenth more or fewer calls.
          ...(hasQuantities(day) ? profilesBeside(day) : []).flatMap(([place, model]) =>
            otherCharge(day, `profile:${place}`, { model }),
          ),
          ...otherCircumstances(day, 'no_uplift', under({ region: null })),
          // A report that was never divided by place counts all at one, from the first day to the last.
          ...having({ lastsAs: isOfSomeDays }, asLinesName(day, 'on_other_line', 'region')),
        ],
  describe: (variant) => sentenceOf(REGION_WORDS, variant),
  advise: () => [
    'Say where the calls were to be served; the ordinary rate holds where no place was asked for.',
  ],
};
