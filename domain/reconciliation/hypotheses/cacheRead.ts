import type { Hypothesis, SeriesDay, Variant } from './hypothesis.js';
import { amountAs, otherCharge, rateVariant, scaled } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
  input_rate: 'Tokens read from the cache were charged at the rate of fresh input.',
  write_rate: 'Tokens read from the cache were charged at the rate of cache writes.',
  input_share:
    'Tokens read from the cache were charged at % of the input rate, the discount of other models.',
  discount_twice: 'The discount for tokens read from the cache was taken off twice.',
  input_at_read_rate: 'Fresh input was charged at the rate of tokens read from the cache.',
};

/** Cache discounts that providers have given at some time, as shares of the input rate. */
const SHARES: readonly (readonly [name: string, numerator: bigint, denominator: bigint])[] = [
  ['1/2', 1n, 2n],
  ['1/4', 1n, 4n],
  ['1/10', 1n, 10n],
];

/** Cached input at another rate than its own. */
export const cacheReadRate: Hypothesis = {
  kind: 'cache_read_rate_mismatch',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => {
    const isRead = (meter: { tokenClass: string }) => meter.tokenClass === 'cache_read';
    if (!day.meters.some(isRead)) return [];
    return [
      ...otherCharge(day, 'input_rate', { tokenClass: 'input' }, isRead),
      ...otherCharge(day, 'write_rate', { tokenClass: 'cache_write_5m' }, isRead),
      ...SHARES.flatMap((share) => ofInput(day, share)),
      ...twice(day),
      ...otherCharge(
        day,
        'input_at_read_rate',
        { tokenClass: 'cache_read' },
        (meter) => meter.tokenClass === 'input',
      ),
    ];
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ['Ask for the cached rate on these tokens: the bill itself counts them as cached.'],
};

function ofInput(day: SeriesDay, [name, numerator, denominator]: (typeof SHARES)[number]): Variant[] {
  const isRight = day.meters
    .filter((meter) => meter.tokenClass === 'cache_read')
    .every((meter) => {
      const quantity = meter.mix.reduce((sum, part) => sum + part.quantity, 0n);
      const input = amountAs(day, meter, quantity, { tokenClass: 'input' });
      return scaled(input, numerator, denominator) === amountAs(day, meter, quantity);
    });
  if (isRight) return [];
  return [
    rateVariant(
      day,
      `input_share:${name}`,
      (meter, quantity) =>
        scaled(amountAs(day, meter, quantity, { tokenClass: 'input' }), numerator, denominator),
      (meter) => meter.tokenClass === 'cache_read',
    ),
  ];
}

/** The cache rate's share of the input rate, taken of the cache rate again. */
function twice(day: SeriesDay): Variant[] {
  return [
    rateVariant(
      day,
      'discount_twice',
      (meter, quantity) => {
        const input = amountAs(day, meter, quantity, { tokenClass: 'input' });
        const right = amountAs(day, meter, quantity);
        return right === null || input === null || input === right || input === 0n
          ? null
          : scaled(right, right, input);
      },
      (meter) => meter.tokenClass === 'cache_read',
    ),
  ];
}
