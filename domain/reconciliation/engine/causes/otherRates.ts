/** Rates of no known mistake: the provider's where our price is sure and comes back, else perhaps our own. */

import { RATIO_MAX } from '../calibration.js';
import {
  type Hypothesis,
  having,
  lasts,
  type MeterDay,
  type SeriesDay,
  sentenceOf,
  touchesEdge,
  type Variant,
} from './cause.js';
import { movedVariant } from './moves.js';
import { chargedMeters, pairsOfClasses, type Ratio, ratioText, sharedRatio } from './places.js';
import { amountAs, classesOf, metersOf, multipleOf, otherSourceVariant, repriced } from './predict.js';
import { contractTerms } from './terms.js';

const WORDS = {
  ratio: 'All classes were charged at % times the listed rates.',
  class: 'One class was charged at another than its listed rate: %.',
  unsure_ratio: 'All classes were charged at % times rates that price sources do not agree on.',
  unsure_class: 'One class was charged at another rate, and price sources do not agree on it: %.',
  source: 'The rates charged are those that % lists; price sources do not agree.',
};

/** All classes at one ratio, else the one class that deviates. */
function deviations(day: SeriesDay, prefix: string): Variant[] {
  const charged = chargedMeters(day.meters);
  const all = sharedRatio(charged);
  if (all && isPlausible(all) && charged.length > 1)
    return multipleOf(day, `${prefix}ratio:${ratioText(all)}`, all.billedPico, all.expectedPico, (meter) =>
      charged.some((one) => one.index === meter.index),
    );
  return classesOf(charged).flatMap((tokenClass) => {
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

/** Whether price sources are sure of the model's price; an own price is the organization's own statement. */
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
 * A round discount on everything is no stale price but terms that are not entered. Else our price may be the wrong one: it is
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
      : [
          ...fromSources(day),
          ...(isSure(day)
            ? having({ lastsAs: touchesEdge }, deviations(day, ''))
            : deviations(day, 'unsure_')),
        ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Read the rate on the provider’s own price page, and enter it as a pricing override with its first day.',
  ],
};

/** The prices of the sources one by one, where they differ from the agreed one. */
function fromSources(day: SeriesDay): Variant[] {
  const model = day.pricedAs;
  if (model === null) return [];
  return day.agreed
    .priceSourcesOf(model)
    .flatMap((source) => otherSourceVariant(day, `source:${source}`, model, source));
}

const MODALITY_WORDS = {
  audio_at_text_rate: 'Audio tokens were charged at the rate of text.',
  text_at_audio_rate: 'Text tokens were charged at the rate of audio.',
  in_text_meter: 'Audio tokens were counted as text.',
  in_audio_meter: 'Text tokens were counted as audio.',
};

type Class = MeterDay['tokenClass'];
type Classes = Partial<Record<Class, Class>>;
const TEXT_OF: Classes = { input_audio: 'input', output_audio: 'output' };
const AUDIO_OF: Classes = { input: 'input_audio', output: 'output_audio' };

const ASK = ['Name some of the calls: their usage counts audio and text tokens apart.'];

/** Audio at the rate of text, or text at that of audio; only where the model has both. */
export const modalityRate: Hypothesis = {
  kind: 'modality_rate_mismatch',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) =>
    hasAudio(day)
      ? [...chargedAs(day, 'audio_at_text_rate', TEXT_OF), ...chargedAs(day, 'text_at_audio_rate', AUDIO_OF)]
      : [],
  describe: (variant) => sentenceOf(MODALITY_WORDS, variant),
  advise: () => ASK,
};

/** Audio on the meter of text, or the other way round. */
export const modalityQuantity: Hypothesis = {
  kind: 'modality_rate_mismatch',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) =>
    hasAudio(day)
      ? [...countedAs(day, 'in_text_meter', TEXT_OF), ...countedAs(day, 'in_audio_meter', AUDIO_OF)]
      : [],
  describe: (variant) => sentenceOf(MODALITY_WORDS, variant),
  advise: () => ASK,
};

function hasAudio(day: SeriesDay): boolean {
  return metersOf(day, 'input_audio', 'output_audio').length > 0;
}

/** Input and output gone wrong alike are one variant. */
function chargedAs(day: SeriesDay, name: string, other: Classes): Variant[] {
  return repriced(
    day,
    name,
    (meter, quantity) =>
      amountAs(day, meter, quantity, { tokenClass: other[meter.tokenClass] ?? meter.tokenClass }),
    (meter) => meter.tokenClass in other,
  );
}

const countedAs = (day: SeriesDay, name: string, other: Classes): Variant[] =>
  movedVariant(
    day,
    name,
    (Object.entries(other) as [Class, Class][]).flatMap(([from, to]) => pairsOfClasses(day, from, to)),
  );
