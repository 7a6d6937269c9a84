import type { Hypothesis } from './hypothesis.js';
import { otherCircumstances, under } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
  uplift: 'Calls without a place of their own were charged with the addition for %.',
  no_uplift: 'Calls in a dearer place were charged at the ordinary rates.',
};

/** The addition for a place on calls that the bill itself puts elsewhere, or its lack. */
export const regionUplift: Hypothesis = {
  kind: 'region_uplift_misapplied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) =>
    day.pricedAs === null
      ? []
      : [
          ...day.agreed
            .regionsOf(day.pricedAs)
            .flatMap((region) => otherCircumstances(day, `uplift:${region}`, under({ region }))),
          ...otherCircumstances(day, 'no_uplift', under({ region: null })),
        ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Say where the calls were to be served; the ordinary rate holds where no place was asked for.',
  ],
};
