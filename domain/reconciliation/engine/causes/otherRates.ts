/** Rates of no known mistake: the provider's where our price is sure and comes back, else perhaps our own. */

import { absPico, type Pico } from '../../../money.js';
import { NOISE_PARTS, RATIO_MAX } from '../calibration.js';
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
import {
  chargedMeters,
  partnerOfClass,
  profilesBeside,
  type Ratio,
  ratioText,
  sharedRatio,
} from './places.js';
import {
  amountAs,
  metersOf,
  movedVariant,
  multipleOf,
  type Otherwise,
  otherCharge,
  otherSourceVariant,
  under,
} from './predict.js';
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

const OTHER_MODEL_WORDS = { rates_of: 'The rates of another model were charged: those of %.' };

/**
 * The rates of another model of the provider, for some days between days at the model's own. Two classes must both be
 * charged exactly as it would charge them: one ratio alone is some model's by chance.
 */
export const otherModelRate: Hypothesis = {
  kind: 'model_misattribution',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => {
    const model = day.pricedAs;
    if (model === null) return [];
    const wrong = chargedMeters(day.meters).filter(
      (meter) => !isAmount(meter, meter.expectedPico ?? 0n) && meter.tokenClass !== 'input_audio',
    );
    if (new Set(wrong.map((meter) => meter.tokenClass)).size < 2) return [];
    if (isOwnRate(day, model, wrong)) return [];
    const seen = new Set<string>();
    return day.agreed.otherModelsOf(model).flatMap((other): Variant[] => {
      const amounts = wrong.map((meter) =>
        amountAs(day, meter, meter.meter.quantity ?? 0n, { model: other }),
      );
      if (!wrong.every((meter, at) => isAmount(meter, amounts[at] ?? null))) return [];
      // Models at one price are one suspicion: the first by its id represents them.
      const key = amounts.join();
      if (seen.has(key)) return [];
      seen.add(key);
      return having(
        { isOtherModel: true, isAnyPrice: true },
        otherCharge(day, `rates_of:${other}`, { model: other }),
      );
    });
  },
  fits: (run, context) => lasts(run) && !touchesEdge(run, context),
  describe: (variant) => sentenceOf(OTHER_MODEL_WORDS, variant),
  advise: () => ['Name some of the calls: each answer says which model gave it.'],
};

/** The model's own rates under other circumstances or at other times explain it: no other model is needed. */
function isOwnRate(day: SeriesDay, model: string, wrong: readonly MeterDay[]): boolean {
  const ways: Otherwise[] = [
    { rates: day.list },
    { circumstances: under({ isBatch: false }) },
    { circumstances: under({ isBatch: true }) },
    { circumstances: under({ longContext: true }) },
    { circumstances: under({ longContext: false, contextBand: 0 }) },
    { circumstances: under({ region: null }) },
    ...day.agreed.tiersOf(model).map((serviceTier) => ({ circumstances: under({ serviceTier }) })),
    ...day.agreed.regionsOf(model).map((region) => ({ circumstances: under({ region }) })),
    ...profilesBeside(day).map(([, other]) => ({ model: other })),
    ...(day.agreed.periodsOf(model)?.periods ?? []).map(({ rates }) => ({ rates })),
  ];
  return ways.some((way) =>
    wrong.every((meter) => isAmount(meter, amountAs(day, meter, meter.meter.quantity ?? 0n, way))),
  );
}

function isAmount({ meter }: MeterDay, amount: Pico | null): boolean {
  if (amount === null) return false;
  const difference = absPico(meter.amountPico - amount);
  return difference <= meter.roundingPico + 1n || difference * NOISE_PARTS < amount;
}

const MODALITY_WORDS = {
  audio_at_text_rate: 'Audio tokens were charged at the rate of text.',
  text_at_audio_rate: 'Text tokens were charged at the rate of audio.',
  in_text_meter: 'Audio tokens were counted as text.',
  in_audio_meter: 'Text tokens were counted as audio.',
};

type Class = MeterDay['tokenClass'];
const PAIRS: readonly (readonly [audio: Class, text: Class])[] = [
  ['input_audio', 'input'],
  ['output_audio', 'output'],
];

const ASK = ['Name some of the calls: their usage counts audio and text tokens apart.'];

/** Audio at the rate of text, or text at that of audio; only where the model has both. */
export const modalityRate: Hypothesis = {
  kind: 'modality_rate_mismatch',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) =>
    hasAudio(day)
      ? PAIRS.flatMap(([audio, text]) => [
          ...otherCharge(day, 'audio_at_text_rate', { tokenClass: text }, (m) => m.tokenClass === audio),
          ...otherCharge(day, 'text_at_audio_rate', { tokenClass: audio }, (m) => m.tokenClass === text),
        ]).reduce(onePerName, [])
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
      ? [
          ...movedVariant(
            day,
            'in_text_meter',
            pairs(day, (pair) => pair),
          ),
          ...movedVariant(
            day,
            'in_audio_meter',
            pairs(day, ([audio, text]) => [text, audio]),
          ),
        ]
      : [],
  describe: (variant) => sentenceOf(MODALITY_WORDS, variant),
  advise: () => ASK,
};

function hasAudio(day: SeriesDay): boolean {
  return metersOf(day, 'input_audio', 'output_audio').length > 0;
}

/** Input and output gone wrong alike are one variant: each predicts its own meters. */
function onePerName(variants: Variant[], next: Variant): Variant[] {
  const at = variants.findIndex((one) => one.name === next.name);
  const known = variants[at];
  if (!known) return [...variants, next];
  const both: Variant = {
    name: next.name,
    amountOf: (meter, quantity) =>
      next.touches(meter) ? next.amountOf(meter, quantity) : known.amountOf(meter, quantity),
    quantityOf: (meter) => meter.observed,
    touches: (meter) => known.touches(meter) || next.touches(meter),
  };
  return variants.map((one, place) => (place === at ? both : one));
}

function pairs(
  day: SeriesDay,
  order: (pair: readonly [Class, Class]) => readonly [Class, Class],
): (readonly [MeterDay, MeterDay])[] {
  return PAIRS.flatMap((pair) => {
    const [from, to] = order(pair);
    return metersOf(day, from).flatMap((meter) => {
      const partner = partnerOfClass(day, meter, to);
      return partner ? [[meter, partner] as const] : [];
    });
  });
}
