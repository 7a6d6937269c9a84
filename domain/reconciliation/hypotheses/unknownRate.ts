/** Rates that no known mistake gives: the provider's where our price is sure and comes back, else perhaps our own. */
import { contractTerms } from './contractTerms.js';
import type { Hypothesis, MeterDay, SeriesDay, Variant } from './hypothesis.js';
import { multipleOf, otherSourceVariant } from './predict.js';
import { chargedMeters, type Ratio, ratioText, sharedRatio } from './ratios.js';
import { lasts, touchesEdge } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = {
  ratio: 'All classes were charged at % times the listed rates.',
  class: 'One class was charged at another than its listed rate: %.',
  unsure_ratio: 'All classes were charged at % times rates that price sources do not agree on.',
  unsure_class: 'One class was charged at another rate, and price sources do not agree on it: %.',
  source: 'The rates charged are those that % lists; price sources do not agree.',
};

/** Ratios outside are no price of the same thing. */
const RATIO_MAX = 20n;

/** All classes at one ratio, else the one class that deviates. */
function deviations(day: SeriesDay, prefix: string): Variant[] {
  const charged = chargedMeters(day.meters);
  const all = sharedRatio(charged);
  if (all && isPlausible(all) && charged.length > 1)
    return multipleOf(day, `${prefix}ratio:${ratioText(all)}`, all.billedPico, all.expectedPico, (meter) =>
      charged.some((one) => one.index === meter.index),
    );
  const classes = [...new Set(charged.map((meter) => meter.tokenClass))];
  return classes.flatMap((tokenClass) => {
    const own = charged.filter((meter) => meter.tokenClass === tokenClass);
    const ratio = sharedRatio(own);
    if (!ratio || !isPlausible(ratio)) return [];
    return multipleOf(
      day,
      `${prefix}class:${tokenClass} at ${ratioText(ratio)}`,
      ratio.billedPico,
      ratio.expectedPico,
      (meter: MeterDay) => own.some((one) => one.index === meter.index),
    );
  });
}

function isPlausible({ billedPico, expectedPico }: Ratio): boolean {
  return billedPico <= expectedPico * RATIO_MAX && expectedPico <= billedPico * RATIO_MAX;
}

function provenanceOf(day: SeriesDay) {
  return day.pricedAs === null
    ? { agreement: 'unknown', disputed: true }
    : day.agreed.provenance(day.pricedAs);
}

/** Whether price sources are sure of the model's price; an own price is the organization's word. */
function isSure(day: SeriesDay): boolean {
  const { agreement, disputed } = provenanceOf(day);
  return !disputed && (agreement === 'agree' || agreement === 'contract' || agreement === 'override');
}

/** Agreeing sources, an end, and the listed rate before and after: then the bill was wrong in between. */
export const listRate: Hypothesis = {
  kind: 'list_rate_mismatch',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  highest: 'MEDIUM',
  variants: (day) => (isSure(day) ? deviations(day, '') : []),
  fits: (run, context) => lasts(run) && !touchesEdge(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Read the rate on the provider’s own price page for these days before asking for it: a price that no source dated looks the same.',
  ],
};

/**
 * A round discount on everything is no stale price but terms that nobody entered. Else our price may be the wrong one: it is
 * given by one source or disputed, or the deviation has been there from the first day or is there to the last, as an undated
 * price change is.
 */
export const stalePrice: Hypothesis = {
  kind: 'stale_price_reference',
  nature: 'rate',
  blame: 'none',
  needs: ['quantity'],
  variants: (day, context) =>
    contractTerms.variants(day, context).length > 0
      ? []
      : [...fromSources(day), ...deviations(day, isSure(day) ? '' : 'unsure_')],
  fits: (run, context, variant) =>
    variant.startsWith('unsure_') || variant.startsWith('source:') || touchesEdge(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Read the rate on the provider’s own price page, and enter it as a pricing override with its first day.',
  ],
};

/** What the sources list one by one, where they differ from what holds. */
function fromSources(day: SeriesDay): Variant[] {
  const model = day.pricedAs;
  if (model === null) return [];
  return day.agreed
    .priceSourcesOf(model)
    .flatMap((source) => otherSourceVariant(day, `source:${source}`, model, source));
}
