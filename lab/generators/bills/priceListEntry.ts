/**
 * A model of the rate book as an entry of the product's price file (data/README.md explains the fields), right or
 * wrong.
 */
import type { BookModel, BookPeriod, ListRates } from './rateBook.js';

/** The cause of a wrong entry, and the listings of its sources. */
export interface WrongPrice {
  /** By class in the order of CLASSES: listed rate ÷ right rate. */
  factors: readonly number[];
  agreement: 'agree' | 'single_source' | 'disagree';
}

const FIELDS = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'output'] as const;

const round = (value: number): number => Number(value.toPrecision(6));

function rates(list: ListRates, factors: readonly number[]): Record<string, number | null> {
  return Object.fromEntries(
    FIELDS.map((field, at) => {
      const rate = list[at] as number | null;
      return [field, rate === null ? null : round(rate * (factors[at] as number))];
    }),
  );
}

function period(one: BookPeriod, until: string | null, factors: readonly number[]): object {
  const tiers: object[] = [];
  const tier = (head: object, list: ListRates | undefined): void => {
    if (list) tiers.push({ ...head, ...rates(list, factors) });
  };
  if (one.long) tier({ above_input_tokens: one.long.above }, one.long.standard);
  tier({ service_tier: 'batch' }, one.batch);
  if (one.long?.batch) tier({ service_tier: 'batch', above_input_tokens: one.long.above }, one.long.batch);
  for (const name of ['flex', 'priority', 'fast'] as const) tier({ service_tier: name }, one[name]);
  return {
    effective_from: one.from,
    effective_to: until,
    ...rates(one.standard, factors),
    input_audio: null,
    output_audio: null,
    batch_multiplier: one.batch ? 0.5 : null,
    tiers,
  };
}

const RIGHT = [1, 1, 1, 1, 1];

/** The wrong entry that replaces the right one in the list. */
export function priceListEntry(model: BookModel, wrong: WrongPrice): object {
  const last = model.periods.at(-1) as BookPeriod;
  const stale = rates(last.standard, wrong.factors);
  const right = rates(last.standard, RIGHT);
  const second =
    wrong.agreement === 'single_source' ? {} : { genai_prices: wrong.agreement === 'agree' ? stale : right };
  const family = model.model.replace(/-\d{8}$/, '').replace(/^amazon\.(.*)-v1:0$/, '$1');
  return {
    provider: model.provider,
    model: model.model,
    canonical_family: family,
    aliases: model.billed === model.model ? [] : [model.billed],
    mode: 'chat',
    first_party: model.provider !== 'azure_openai' && model.provider !== 'aws_bedrock',
    context_window: model.contextTokens,
    rates: model.periods.map((one, at) => period(one, model.periods[at + 1]?.from ?? null, wrong.factors)),
    agreement: wrong.agreement,
    ...(model.usPerMille ? { regional_multipliers: { us: model.usPerMille / 1_000 } } : {}),
    sources: { litellm: stale, ...second },
  };
}
