import type { Hypothesis, MeterDay, SeriesDay, Variant } from './hypothesis.js';
import { partnerOfClass } from './places.js';
import { metersOf, quantityVariant, sumOf } from './predict.js';
import { lasts } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = {
  reads_and_writes: 'Tokens read from and written to the cache were billed a second time as fresh input.',
  reads: 'Tokens read from the cache were billed a second time as fresh input.',
  cached_not_metered: 'Tokens read from and written to the cache were not billed at all.',
  reads_not_metered: 'Tokens read from the cache were not billed at all.',
};

type Classes = readonly MeterDay['tokenClass'][];
const READS: Classes = ['cache_read'];
const WRITES: Classes = ['cache_write_5m', 'cache_write_1h'];

/**
 * What a cache took was counted as fresh input too, while the cache's own meters are right. Published of a provider's
 * bills for prompts with cached tokens: billed input = fresh + read + written.
 */
export const doubleMetered: Hypothesis = {
  kind: 'cached_tokens_double_metered',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) => [
    ...added(day),
    ...unmetered(day, 'cached_not_metered', [...READS, ...WRITES]),
    ...unmetered(day, 'reads_not_metered', READS),
  ],
  fits: (run, _context, variant) => !variant.endsWith('_not_metered') || lasts(run),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Give the provider the usage objects of some calls with cached tokens: their fresh and cached counts add up to the prompt once.',
  ],
};

function added(day: SeriesDay): Variant[] {
  return cachedOnTop(day).map(({ hasWrites, quantities }) =>
    quantityVariant(day, hasWrites ? 'reads_and_writes' : 'reads', quantities),
  );
}

/**
 * Input meters that count everything cached on top. A part of it alone is not searched where there is more: a few cached
 * tokens are soon as many as a count is off by. Writes alone are as few.
 */
export function cachedOnTop(day: SeriesDay): { hasWrites: boolean; quantities: Map<number, bigint> }[] {
  const quantities = new Map<number, bigint>();
  const observedOf = (meter: MeterDay, classes: Classes) =>
    sumOf(classes.map((tokenClass) => partnerOfClass(day, meter, tokenClass)?.observed ?? 0n));
  let [reads, writes] = [0n, 0n];
  for (const meter of metersOf(day, 'input')) {
    const [read, written] = [observedOf(meter, READS), observedOf(meter, WRITES)];
    reads += read;
    writes += written;
    if (read + written > 0n) quantities.set(meter.index, meter.observed + read + written);
  }
  return reads > 0n ? [{ hasWrites: writes > 0n, quantities }] : [];
}

function unmetered(day: SeriesDay, name: string, classes: Classes): Variant[] {
  const meters = metersOf(day, ...classes).filter((meter) => meter.observed > 0n);
  if (meters.length === 0) return [];
  if (name === 'reads_not_metered' && !metersOf(day, ...WRITES).some((meter) => meter.observed > 0n))
    return [];
  return [quantityVariant(day, name, new Map(meters.map((meter) => [meter.index, 0n])))];
}
