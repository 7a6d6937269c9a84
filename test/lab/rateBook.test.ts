import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type BookModel,
  type BookPeriod,
  CLASSES,
  type ListRates,
  RATE_BOOK,
  type TokenClass,
} from '../../lab/generators/bills/rateBook.js';

type ListedRates = Partial<Record<TokenClass, number | null>>;

interface ListedPeriod extends ListedRates {
  tiers: (ListedRates & { service_tier?: string; above_input_tokens?: number })[];
  effective_from: string | null;
  effective_to: string | null;
}

interface Listed {
  provider: string;
  model: string;
  aliases: string[];
  agreement: string;
  rates: ListedPeriod[];
  regional_multipliers?: { us?: number };
}

const LIST = JSON.parse(readFileSync(new URL('../../data/prices.json', import.meta.url), 'utf8')) as {
  models: Listed[];
};

const entryOf = (model: BookModel): Listed | undefined =>
  LIST.models.find((entry) => entry.provider === model.provider && entry.model === model.model);

const ratesIn = (listed: ListedRates | undefined) => CLASSES.map((name) => listed?.[name] ?? null);

/** The period of the list in which a period of the book begins, or of which it is the last part. */
function listedPeriod(entry: Listed, period: BookPeriod): ListedPeriod | undefined {
  return entry.rates.find(
    (one) =>
      (one.effective_from === null || (period.from !== null && one.effective_from <= period.from)) &&
      (one.effective_to === null || period.from === null || period.from < one.effective_to),
  );
}

describe('the rate book of the generators', () => {
  it.each(RATE_BOOK.map((model) => [`${model.provider} ${model.model}`, model] as const))(
    '%s has the rates of the price list, whose sources agree',
    (_, model) => {
      const entry = entryOf(model);
      expect(entry?.agreement).toBe('agree');
      if (!entry) return;
      expect(entry.model === model.billed || entry.aliases.includes(model.billed)).toBe(true);
      if (model.usPerMille) expect(entry.regional_multipliers?.us).toBe(model.usPerMille / 1_000);
      for (const period of model.periods) {
        const listed = listedPeriod(entry, period);
        expect(ratesIn(listed)).toEqual([...period.standard]);
        const tier = (name: string | undefined, above: number | undefined) =>
          listed?.tiers.find((one) => one.service_tier === name && one.above_input_tokens === above);
        const expectTier = (rates: ListRates | undefined, name?: string, above?: number) => {
          if (rates) expect(ratesIn(tier(name, above))).toEqual([...rates]);
        };
        for (const name of ['batch', 'flex', 'priority', 'fast'] as const) expectTier(period[name], name);
        expectTier(period.long?.standard, undefined, period.long?.above);
        expectTier(period.long?.batch, 'batch', period.long?.above);
      }
    },
  );
});
