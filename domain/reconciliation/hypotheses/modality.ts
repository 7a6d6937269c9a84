import type { Hypothesis, MeterDay, SeriesDay, Variant } from './hypothesis.js';
import { partnerOfClass } from './places.js';
import { metersOf, movedVariant, otherCharge } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
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
  describe: (variant) => sentenceOf(WORDS, variant),
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
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

function hasAudio(day: SeriesDay): boolean {
  return metersOf(day, 'input_audio', 'output_audio').length > 0;
}

/** Input and output gone wrong alike are one variant: each says what it says of its own meters. */
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
