import { describe, expect, it } from 'vitest';
import { RATE_CLASSES } from '../../../domain/pricing/pricedModel.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import { aPeriod, type EntryJson, listOf, shippedJson } from './support.js';

describe('the price list', () => {
  it('is read whole: every rate of the file as its exact decimal', () => {
    const json = shippedJson();
    const { entries, asOf } = readPriceFile(json);
    expect(asOf).toBe(json.as_of);
    expect(entries.length).toBe(json.models.length);
    entries.forEach(({ periods }, index) => {
      const source = json.models[index] as EntryJson;
      expect(periods.length).toBe(source.rates.length);
      periods.forEach((period, at) => {
        for (const name of RATE_CLASSES) {
          const value = source.rates[at]?.[name] ?? null;
          // at most six digits after the point, so a million times the number is whole
          const scaled = value === null ? null : BigInt(Math.round(Number(value) * 1e6)) * 1_000_000n;
          expect(period.rates[name], `${source.provider} ${source.model} ${name}`).toBe(scaled);
        }
      });
    });
  });

  it('names the sources that list the rates in force, and the dated source for other periods', () => {
    const { entries } = readPriceFile(shippedJson());
    const sol = entries.find(({ model }) => model.provider === 'openai' && model.model === 'gpt-5.6-sol');
    expect(sol?.periods.map((period) => period.source)).toEqual(['genai_prices', 'genai_prices, litellm']);
    expect(entries.every(({ periods }) => periods.every((period) => period.source !== ''))).toBe(true);
  });

  const broken: [string, Partial<EntryJson>, RegExp][] = [
    ['a negative rate', { rates: [aPeriod({ input: -1, output: 1 })] }, /input is not a rate/],
    ['a rate that is a text', { rates: [aPeriod({ input: '1', output: 1 })] }, /input is not a rate/],
    ['no output rate', { rates: [aPeriod({ input: 1, output: null })] }, /lacks the input or the output/],
    ['no period', { rates: [] }, /has no period/],
    ['a provider that is none', { provider: 'acme' }, /acme is not a provider/],
    [
      'a day that is none',
      { rates: [aPeriod({ input: 1, output: 1 }, { effective_to: '2026-02-30' })] },
      /not a day/,
    ],
    [
      'a gap between periods',
      {
        rates: [
          aPeriod({ input: 1, output: 1 }, { effective_to: '2026-01-01' }),
          aPeriod({ input: 1, output: 1 }, { effective_from: '2026-01-02' }),
        ],
      },
      /leaves a gap or overlaps/,
    ],
    [
      'a tier without an output rate',
      { rates: [aPeriod({ input: 1, output: 1 }, { tiers: [{ service_tier: 'flex', input: 1 }] })] },
      /tiers\[0\] lacks/,
    ],
    ['an id given twice', { aliases: ['m'] }, /openai m is listed twice/],
    ['an agreement that is none', { agreement: 'maybe' }, /agreement is none of/],
  ];
  it.each(broken)('is refused with %s, naming the place', (_, fault, message) => {
    expect(() => readPriceFile(listOf([{ provider: 'openai', model: 'm', ...fault }]))).toThrow(message);
  });

  it('is refused when it has a layout that this version does not know', () => {
    expect(() => readPriceFile({ ...listOf([]), schema_version: 2 })).toThrow(/schema_version 2/);
    expect(() => readPriceFile({ ...listOf([]), as_of: undefined })).toThrow(/as_of is missing/);
    expect(() => readPriceFile([])).toThrow(/not an object/);
  });
});
