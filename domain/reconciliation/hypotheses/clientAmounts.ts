/** Mistakes in what the bill's file or the client's calls say of amounts: their own side's, not the provider's. */
import { STANDARD_TIER } from '../../pricing/rateCards.js';
import { contractTerms } from './contractTerms.js';
import type { Hypothesis, SeriesContext, SeriesDay, Variant } from './hypothesis.js';
import { multipleOf, otherCircumstances } from './predict.js';
import { areLinesLabelled, hasUntoldCalls, isMixOpen, isTierOpen, LABELLED_TIERS } from './told.js';
import { sentenceOf, servicesOf } from './words.js';

const WORDS = {
  cents_as_dollars: 'The amounts are a hundred times what they should be: cents were read as dollars.',
  dollars_as_cents: 'The amounts are a hundredth of what they should be: dollars were read as cents.',
  batch_not_flagged: 'The amounts are those of batch calls, and the events name no batch call.',
  tier_not_told: 'The amounts are those of the % tier, and the events name no tier.',
  tier_not_named:
    'The amounts are those of the % tier, and neither the events nor the lines of the bill name it.',
  tier_as_requested: 'The amounts are those of standard calls, and the events name another tier: %.',
  cheaper_share:
    'The amounts are % percent below what the events give, as if more of the calls had used a cheaper tier or batch than the events tell.',
};

export const clientAmounts: Hypothesis = {
  kind: 'client_metering_error',
  nature: 'rate',
  blame: 'own',
  needs: ['quantity'],
  variants: (day, context) => [
    ...multipleOf(day, 'cents_as_dollars', 100n, 1n),
    ...multipleOf(day, 'dollars_as_cents', 1n, 100n),
    ...(context.tells.batch || !isMixOpen(day)
      ? []
      : otherCircumstances(day, 'batch_not_flagged', (at) =>
          at.isBatch || at.serviceTier !== 'standard' ? at : { ...at, isBatch: true },
        )),
    ...(isTierOpen(day) ? tiers(day) : []),
    ...(isMixOpen(day) ? asRequested(day) : []),
    ...cheaperShare(day, context),
  ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: (variant, sources) => {
    const services = servicesOf(sources, true);
    if (variant === 'batch_not_flagged')
      return [
        `Your events of ${services} do not flag batch calls: send is_batch and batch_id, or import the provider’s usage report, which tells them.`,
      ];
    if (variant.startsWith('tier_not_'))
      return [
        `Your events of ${services} lack the service tier: send service_tier of the provider’s answer, or import the provider’s usage report, which tells it.`,
      ];
    if (variant.startsWith('tier_as_requested'))
      return [
        `Your events of ${services} name the tier that was asked for: send service_tier of the provider’s answer.`,
      ];
    if (variant.startsWith('cheaper_share'))
      return [
        `Some of your events of ${services} name no tier: send service_tier of the provider’s answer and is_batch with every call, or import the provider’s usage report, which tells both. If they are complete, a discount is missing under /pricing/contract-rates.`,
      ];
    return ['Look at the unit of the amounts in the file: the column must hold dollars. Import it again.'];
  },
};

function tiers(day: SeriesDay): Variant[] {
  if (day.pricedAs === null) return [];
  const wordOf = (tier: string) =>
    LABELLED_TIERS.has(tier) && areLinesLabelled(day) ? 'tier_not_named' : 'tier_not_told';
  return day.agreed
    .tiersOf(day.pricedAs)
    .flatMap((tier) =>
      otherCircumstances(day, `${wordOf(tier)}:${tier}`, (at) =>
        at.isBatch || at.serviceTier !== 'standard' ? at : { ...at, serviceTier: tier },
      ),
    );
}

/** A tier that clients asked for and did not get: the line is that of standard calls. */
function asRequested(day: SeriesDay): Variant[] {
  const told = new Set(
    day.meters.flatMap(({ mix }) =>
      mix.flatMap(({ circumstances: at }) => (at.isBatch ? [] : [at.serviceTier])),
    ),
  );
  return [...told]
    .filter((tier) => tier !== STANDARD_TIER)
    .sort()
    .flatMap((tier) =>
      otherCircumstances(day, `tier_as_requested:${tier}`, (at) =>
        at.isBatch || at.serviceTier !== tier ? at : { ...at, serviceTier: STANDARD_TIER },
      ),
    );
}

/** Batch and the cheapest tiers cost half: a mixture with them is nowhere below. */
const CHEAPEST_PERCENT = 50;

/**
 * One discount on everything is as well a mixture, where the bill folds tiers and batch into one line, the series' clients
 * use several, and some of the day's calls tell none.
 */
function cheaperShare(day: SeriesDay, context: SeriesContext): Variant[] {
  const { tells } = context;
  if (!(tells.otherTiers || tells.batch) || !isMixOpen(day) || !hasUntoldCalls(day)) return [];
  return contractTerms.variants(day, context).flatMap((terms) => {
    const percent = Number(terms.name.split(':')[1]);
    return percent > CHEAPEST_PERCENT ? [] : [{ ...terms, name: `cheaper_share:${percent}` }];
  });
}
