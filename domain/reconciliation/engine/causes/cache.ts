import { groupBy } from '../../../groupBy.js';
import type { Pico } from '../../../money.js';
import { CACHE_SHARES } from '../calibration.js';
import {
  type Hypothesis,
  having,
  lasts,
  type MeterDay,
  type SeriesDay,
  sentenceOf,
  type Variant,
} from './cause.js';
import { movedVariant } from './moves.js';
import { pairsOfClasses, partnerOfClass } from './places.js';
import {
  amountAs,
  asLinesLast,
  CACHED,
  countedVariant,
  metersOf,
  otherCharge,
  quantityVariant,
  repriced,
  scaled,
  sumOf,
} from './predict.js';

const WORDS = {
  input_rate: 'Tokens read from the cache were charged at the rate of fresh input.',
  write_rate: 'Tokens read from the cache were charged at the rate of cache writes.',
  input_share:
    'Tokens read from the cache were charged at % of the input rate, the discount of other models.',
  discount_twice: 'The discount for tokens read from the cache was taken off twice.',
  input_at_read_rate: 'Fresh input was charged at the rate of tokens read from the cache.',
};

/** Cached input at another rate than its own. */
export const cacheReadRate: Hypothesis = {
  kind: 'cache_read_rate_mismatch',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => {
    if (!day.meters.some(isRead)) return [];
    return [
      ...otherCharge(day, 'input_rate', { tokenClass: 'input' }, isRead),
      ...otherCharge(day, 'write_rate', { tokenClass: 'cache_write_5m' }, isRead),
      ...CACHE_SHARES.flatMap((share) => ofInput(day, share)),
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

const isRead = ({ tokenClass }: MeterDay) => tokenClass === 'cache_read';

function ofInput(day: SeriesDay, [name, numerator, denominator]: (typeof CACHE_SHARES)[number]): Variant[] {
  const amountOf = (meter: MeterDay, quantity: bigint) =>
    scaled(amountAs(day, meter, quantity, { tokenClass: 'input' }), numerator, denominator);
  return having({ isAnyPrice: true }, repriced(day, `input_share:${name}`, amountOf, isRead));
}

/** The cache rate's share of the input rate, taken of the cache rate again. */
function twice(day: SeriesDay): Variant[] {
  const amountOf = (meter: MeterDay, quantity: bigint) => {
    const input = amountAs(day, meter, quantity, { tokenClass: 'input' });
    const right = amountAs(day, meter, quantity);
    return right === null || input === null ? null : scaled(right, right, input);
  };
  return having({ isAnyPrice: true }, repriced(day, 'discount_twice', amountOf, isRead));
}

const CACHE_WRITE_WORDS = {
  at_1h_rate: 'Cache writes of five minutes were charged at the rate of one hour.',
  at_5m_rate: 'Cache writes of one hour were charged at the rate of five minutes.',
  as_input: 'Cache writes were charged at the rate of plain input.',
  short_as_input: 'Cache writes of five minutes were charged at the rate of plain input.',
  long_as_input: 'Cache writes of one hour were charged at the rate of plain input.',
  on_other_line:
    'Cache writes were charged on the line of another lifetime than the one that the provider’s usage report counts them under.',
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
          ...asLinesLast(day, 'on_other_line'),
        ]
      : [],
  describe: (variant) => sentenceOf(CACHE_WRITE_WORDS, variant),
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
 * Cache writes on another class's meter. Five-minute writes that were counted as long ones are only found in series whose
 * clients report lifetimes: other clients count every write as short.
 */
export const cacheWriteQuantity: Hypothesis = {
  kind: 'cache_write_rate_mismatch',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day, context) => [
    ...(context.tells.longWrites
      ? movedVariant(day, 'in_1h_meter', pairsOfClasses(day, 'cache_write_5m', 'cache_write_1h'))
      : []),
    ...movedVariant(day, 'in_5m_meter', pairsOfClasses(day, 'cache_write_1h', 'cache_write_5m')),
    ...movedVariant(day, 'in_input_meter', [
      ...pairsOfClasses(day, 'cache_write_5m', 'input'),
      ...pairsOfClasses(day, 'cache_write_1h', 'input'),
    ]),
  ],
  describe: (variant) => sentenceOf(CACHE_WRITE_WORDS, variant),
  advise: () => ASK,
};

const DOUBLE_METERED_WORDS = {
  reads_and_writes: 'Tokens read from and written to the cache were billed a second time as fresh input.',
  reads: 'Tokens read from the cache were billed a second time as fresh input.',
  cached_not_metered: 'Tokens read from and written to the cache were not billed at all.',
  reads_not_metered: 'Tokens read from the cache were not billed at all.',
};

type Classes = readonly MeterDay['tokenClass'][];
const READS: Classes = ['cache_read'];
const WRITES: Classes = ['cache_write_5m', 'cache_write_1h'];

/**
 * Cached tokens were counted as fresh input too, while the cache's own meters are right. Published of a provider's
 * bills for prompts with cached tokens: billed input = fresh + read + written.
 */
export const doubleMetered: Hypothesis = {
  kind: 'cached_tokens_double_metered',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) => [...added(day), ...having({ lastsAs: lasts }, unmetered(day))],
  describe: (variant) => sentenceOf(DOUBLE_METERED_WORDS, variant),
  advise: () => [
    'Give the provider the usage objects of some calls with cached tokens: their fresh and cached counts add up to the prompt once.',
  ],
};

/** On all lines of input, or on those of one place, since places are counted apart. */
function added(day: SeriesDay): Variant[] {
  const places = [...groupBy(metersOf(day, 'input'), ({ meter }) => meter.region).keys()];
  const addedAt = (suffix: string, isMeant: (meter: MeterDay) => boolean) =>
    cachedOnTop(day, isMeant).map(({ hasWrites, quantities }) => ({
      ...countedVariant(day, `${hasWrites ? 'reads_and_writes' : 'reads'}${suffix}`, quantities),
      worthOf: (meter: MeterDay, units: bigint) => asCachedUse(day, meter, units),
    }));
  const atOne = (place: string | null) =>
    addedAt(`:${place ?? 'ordinary'}`, ({ meter }) => meter.region === place);
  return [...addedAt('', () => true), ...(places.length > 1 ? places.flatMap(atOne) : [])];
}

/**
 * Cached tokens on the meter of input were used as they were cached: a line may hold calls of several tiers, and those that
 * read most from the cache need not have most of its fresh input.
 */
function asCachedUse(day: SeriesDay, meter: MeterDay, units: bigint): Pico | null {
  const mix = CACHED.flatMap((tokenClass) =>
    (partnerOfClass(day, meter, tokenClass)?.mix ?? []).map(({ circumstances, quantity }) => ({
      circumstances,
      quantity,
    })),
  );
  return mix.length === 0 ? null : amountAs(day, { ...meter, mix }, units);
}

/**
 * Input meters that count everything cached on top. A part of it alone is not searched where there is more: a few cached
 * tokens are soon as many as a count is off by. Writes alone are as few.
 */
export function cachedOnTop(
  day: SeriesDay,
  isMeant: (meter: MeterDay) => boolean = () => true,
): { hasWrites: boolean; quantities: Map<number, bigint> }[] {
  const quantities = new Map<number, bigint>();
  const observedOf = (meter: MeterDay, classes: Classes) =>
    sumOf(classes.map((tokenClass) => partnerOfClass(day, meter, tokenClass)?.observed ?? 0n));
  let [reads, writes] = [0n, 0n];
  for (const meter of metersOf(day, 'input').filter(isMeant)) {
    const [read, written] = [observedOf(meter, READS), observedOf(meter, WRITES)];
    reads += read;
    writes += written;
    if (read + written > 0n) quantities.set(meter.index, meter.observed + read + written);
  }
  return reads > 0n ? [{ hasWrites: writes > 0n, quantities }] : [];
}

/** Everything cached; and what was read alone, where something was written too. */
function unmetered(day: SeriesDay): Variant[] {
  const seen = (classes: Classes) => metersOf(day, ...classes).filter((meter) => meter.observed > 0n);
  const without = (name: string, meters: readonly MeterDay[]) =>
    meters.length === 0
      ? []
      : [quantityVariant(day, name, new Map(meters.map((meter) => [meter.index, 0n])))];
  return [
    ...without('cached_not_metered', seen(CACHED)),
    ...(seen(WRITES).length > 0 ? without('reads_not_metered', seen(READS)) : []),
  ];
}
