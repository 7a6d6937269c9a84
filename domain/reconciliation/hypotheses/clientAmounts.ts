/** Mistakes in what the bill's file or the client's calls say of amounts: their own side's, not the provider's. */
import type { Hypothesis, SeriesDay, Variant } from './hypothesis.js';
import { multipleOf, otherCircumstances } from './predict.js';
import { sentenceOf, servicesOf } from './words.js';

const WORDS = {
  cents_as_dollars: 'The amounts are a hundred times what they should be: cents were read as dollars.',
  dollars_as_cents: 'The amounts are a hundredth of what they should be: dollars were read as cents.',
  batch_not_flagged: 'The amounts are those of batch calls, and the events name no batch call.',
  tier_not_told: 'The amounts are those of the % tier, and the events name no tier.',
};

export const clientAmounts: Hypothesis = {
  kind: 'client_metering_error',
  nature: 'rate',
  blame: 'own',
  needs: ['quantity'],
  variants: (day, context) => [
    ...multipleOf(day, 'cents_as_dollars', 100n, 1n),
    ...multipleOf(day, 'dollars_as_cents', 1n, 100n),
    ...(context.tells.batch || !isBatchOpen(day)
      ? []
      : otherCircumstances(day, 'batch_not_flagged', (at) =>
          at.isBatch || at.serviceTier !== 'standard' ? at : { ...at, isBatch: true },
        )),
    ...(context.tells.serviceTier || !isBatchOpen(day) ? [] : tiers(day)),
  ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: (variant, sources) => {
    const services = servicesOf(sources, true);
    if (variant === 'batch_not_flagged')
      return [
        `Your events of ${services} do not flag batch calls: send is_batch and batch_id, or import the provider’s usage report, which tells them.`,
      ];
    if (variant.startsWith('tier_not_told'))
      return [
        `Your events of ${services} lack the service tier: send service_tier of the provider’s answer, or import the provider’s usage report, which tells it.`,
      ];
    return ['Look at the unit of the amounts in the file: the column must hold dollars. Import it again.'];
  },
};

/** The bill leaves open which calls were batch calls or of another tier, and no usage report tells it. */
function isBatchOpen(day: SeriesDay): boolean {
  return day.meters.some(({ meter }) => meter.isBatch === null && meter.split !== 'usage_report');
}

function tiers(day: SeriesDay): Variant[] {
  if (day.pricedAs === null) return [];
  return day.agreed
    .tiersOf(day.pricedAs)
    .flatMap((tier) =>
      otherCircumstances(day, `tier_not_told:${tier}`, (at) =>
        at.isBatch || at.serviceTier !== 'standard' ? at : { ...at, serviceTier: tier },
      ),
    );
}
