/** The company's knowledge of prices: its contracts, and a list that may be wrong. */
import type { Random } from '../support/random.js';
import type { SeriesPlan } from './series.js';

/** As bodies of POST /api/v1/pricing/contract-rates. */
export function contractBodies(plans: readonly SeriesPlan[]): object[] {
  const agreed = new Map(
    plans.flatMap((series) =>
      series.contract?.isReported ? [[series.model, series.contract] as const] : [],
    ),
  );
  return [...agreed].map(([model, { perMille }]) => ({
    provider: model.provider,
    model: model.billed,
    discount_percent: (1_000 - perMille) / 10,
    effective_from: '2026-01-01',
    source: { document: 'Order form 2026-03' },
  }));
}

/** A model with a wrong price in the given list; it must have a single price period. */
export function staleModel(random: Random, plans: readonly SeriesPlan[]): string | null {
  const possible = plans.filter(
    ({ model }) =>
      model.provider === 'anthropic' &&
      model.billed === model.model &&
      model.periods.length === 1 &&
      model.usPerMille !== undefined,
  );
  return possible.length > 0 && random.chance(0.6) ? random.pick(possible).model.model : null;
}

/** The entry as an outdated collection lists it: every rate a quarter too high, and no other source. */
export function staleEntry(plans: readonly SeriesPlan[], name: string): object {
  const model = plans.find((series) => series.model.model === name)?.model;
  const [input = 0, read = 0, write5m, write1h, output = 0] = model?.periods[0]?.standard ?? [];
  const dearer = (rate: number | null | undefined) => (rate ? Number((rate * 1.25).toFixed(6)) : null);
  const rates = {
    input: dearer(input),
    output: dearer(output),
    cache_read: dearer(read),
    cache_write_5m: dearer(write5m),
    cache_write_1h: dearer(write1h),
  };
  return {
    provider: model?.provider,
    model: name,
    canonical_family: name,
    aliases: [],
    mode: 'chat',
    first_party: true,
    context_window: model?.contextTokens,
    rates: [
      {
        effective_from: null,
        effective_to: null,
        ...rates,
        input_audio: null,
        output_audio: null,
        batch_multiplier: 0.5,
        tiers: [],
      },
    ],
    agreement: 'single_source',
    regional_multipliers: { us: 1.1 },
    sources: { models_dev: rates },
  };
}
