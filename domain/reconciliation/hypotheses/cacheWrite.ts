import type { Hypothesis, MeterDay, SeriesDay, Variant } from './hypothesis.js';
import { partnerOfClass } from './places.js';
import { metersOf, movedVariant, otherCharge } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
  at_1h_rate: 'Cache writes of five minutes were charged at the rate of one hour.',
  at_5m_rate: 'Cache writes of one hour were charged at the rate of five minutes.',
  as_input: 'Cache writes were charged at the rate of plain input.',
  short_as_input: 'Cache writes of five minutes were charged at the rate of plain input.',
  long_as_input: 'Cache writes of one hour were charged at the rate of plain input.',
  in_1h_meter: 'Cache writes of five minutes were counted as writes of one hour.',
  in_5m_meter: 'Cache writes of one hour were counted as writes of five minutes.',
  in_input_meter: 'Cache writes were counted as plain input.',
};

const ASK = [
  'Ask for the rate of the lifetime that the requests named; cache writes tell it in their usage.',
];

const isWrite = (meter: MeterDay) =>
  meter.tokenClass === 'cache_write_5m' || meter.tokenClass === 'cache_write_1h';

/** Cache writes at the rate of another lifetime, or of plain input. */
export const cacheWriteRate: Hypothesis = {
  kind: 'cache_write_rate_mismatch',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) =>
    day.meters.some(isWrite)
      ? [
          ...otherCharge(
            day,
            'at_1h_rate',
            { tokenClass: 'cache_write_1h' },
            (meter) => meter.tokenClass === 'cache_write_5m',
          ),
          ...otherCharge(
            day,
            'at_5m_rate',
            { tokenClass: 'cache_write_5m' },
            (meter) => meter.tokenClass === 'cache_write_1h',
          ),
          ...asInput(day),
        ]
      : [],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/** One kind of writes, and both where a day has both. */
function asInput(day: SeriesDay): Variant[] {
  const of = (name: string, tokenClass: MeterDay['tokenClass']) =>
    otherCharge(day, name, { tokenClass: 'input' }, (meter) => meter.tokenClass === tokenClass);
  const [short, long] = [of('short_as_input', 'cache_write_5m'), of('long_as_input', 'cache_write_1h')];
  const both =
    short.length > 0 && long.length > 0 ? otherCharge(day, 'as_input', { tokenClass: 'input' }, isWrite) : [];
  return [...both, ...short, ...long];
}

/**
 * Cache writes on another class's meter. That five-minute writes were counted as long ones is only said of series whose
 * clients tell lifetimes: those of others count every write as short.
 */
export const cacheWriteQuantity: Hypothesis = {
  kind: 'cache_write_rate_mismatch',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day, context) => {
    const pairs = (from: MeterDay['tokenClass'], to: MeterDay['tokenClass']) =>
      metersOf(day, from).flatMap((meter) => {
        const partner = partnerOfClass(day, meter, to);
        return partner ? [[meter, partner] as const] : [];
      });
    return [
      ...(context.tells.longWrites
        ? movedVariant(day, 'in_1h_meter', pairs('cache_write_5m', 'cache_write_1h'))
        : []),
      ...movedVariant(day, 'in_5m_meter', pairs('cache_write_1h', 'cache_write_5m')),
      ...movedVariant(day, 'in_input_meter', [
        ...pairs('cache_write_5m', 'input'),
        ...pairs('cache_write_1h', 'input'),
      ]),
    ];
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};
