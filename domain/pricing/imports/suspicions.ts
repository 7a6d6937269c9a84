import { divideHalfEven, type Pico } from '../../money.js';
import { familyNames } from '../pricedModel.js';
import type { PriceTier, RateClass, Rates } from '../prices.js';
import { BATCH_TIER, STANDARD_TIER } from '../rateCards.js';
import type { ListedModel } from './collection.js';

/** A rate that is hardly what the provider charges. */
export interface Suspicion {
  readonly listed: ListedModel;
  /** `standard`, `batch`, …, with the length where it has one. */
  readonly tier: string;
  readonly rateClass: RateClass;
  /** A sentence with the numbers that tell. */
  readonly because: string;
}

/** Cache writes cost the input rate times one of these, in hundredths. */
const WRITE_FACTORS: ReadonlySet<bigint> = new Set([100n, 125n, 200n]);
/** Service tiers cost between so much and so much of the standard rate, in hundredths. */
const TIER_FACTORS: Readonly<Record<string, readonly [bigint, bigint]>> = {
  flex: [25n, 100n],
  priority: [100n, 400n],
};
const HUNDRED = 100n;

/** The name of a tier, as differences and suspicions show it. */
export function tierName({
  serviceTier,
  aboveInputTokens,
}: Pick<PriceTier, 'serviceTier' | 'aboveInputTokens'>): string {
  const service = serviceTier ?? STANDARD_TIER;
  return aboveInputTokens === null ? service : `${service} above ${aboveInputTokens}`;
}

/** Everything in a collection that a person should look at, whether it is a change or not. */
export function findSuspicions(models: readonly ListedModel[]): Suspicion[] {
  const makers = makersWithWrites(models);
  return models.flatMap((listed) => [
    ...ratesSuspicions(listed, STANDARD_TIER, listed.rates),
    ...listed.tiers.flatMap((tier) => tierSuspicions(listed, tier)),
    ...missingWrite(listed, makers),
  ]);
}

function ratesSuspicions(listed: ListedModel, tier: string, rates: Rates): Suspicion[] {
  const { input, output } = rates;
  if (input === null || input === 0n) return [];
  const found: Suspicion[] = [];
  const say = (rateClass: RateClass, because: string) => found.push({ listed, tier, rateClass, because });
  if (output !== null && output < input && listed.mode !== 'embedding')
    say('output', 'output is below input');
  if (rates.cache_read !== null && rates.cache_read > input)
    say('cache_read', 'reading the cache costs more than input');
  for (const name of ['cache_write_5m', 'cache_write_1h'] as const) {
    const write = rates[name];
    if (write === null || WRITE_FACTORS.has(hundredths(write, input))) continue;
    say(name, `writing the cache costs ${factorText(write, input)} × input, not 1, 1.25 or 2`);
  }
  return found;
}

function tierSuspicions(listed: ListedModel, tier: PriceTier): Suspicion[] {
  const name = tierName(tier);
  const found = ratesSuspicions(listed, name, tier.rates);
  const standard = standardOf(listed, tier);
  for (const rateClass of ['input', 'output'] as const) {
    const [rate, base] = [tier.rates[rateClass], standard[rateClass]];
    if (rate === null || base === null || base === 0n) continue;
    const factor = hundredths(rate, base);
    const range = TIER_FACTORS[tier.serviceTier ?? ''];
    if (tier.serviceTier === BATCH_TIER && rate * 2n !== base) {
      found.push({
        listed,
        tier: name,
        rateClass,
        because: `batch costs ${factorText(rate, base)} × standard, not 0.5`,
      });
    } else if (range && (factor < range[0] || factor > range[1])) {
      found.push({
        listed,
        tier: name,
        rateClass,
        because: `${name} costs ${factorText(rate, base)} × standard`,
      });
    }
  }
  return found;
}

/** The standard rates for requests of the tier's length, where they are listed. */
function standardOf(listed: ListedModel, { aboveInputTokens }: PriceTier): Rates {
  const long = listed.tiers.find(
    (tier) => tier.serviceTier === null && tier.aboveInputTokens === aboveInputTokens,
  );
  return aboveInputTokens === null ? listed.rates : (long?.rates ?? listed.rates);
}

/** Families whose maker lists a cache write: a reseller without one most likely forgot it. */
function makersWithWrites(models: readonly ListedModel[]): ReadonlyMap<string, ListedModel> {
  const makers = models.filter(
    ({ provider, rates }) =>
      (provider === 'openai' || provider === 'anthropic') && rates.cache_write_5m !== null,
  );
  return new Map(makers.map((model) => [familyOf(model), model]));
}

function missingWrite(listed: ListedModel, makers: ReadonlyMap<string, ListedModel>): Suspicion[] {
  if (listed.rates.cache_write_5m !== null || listed.rates.cache_read === null) return [];
  const maker = makers.get(familyOf(listed));
  if (!maker || maker === listed) return [];
  const because = `it has no rate for writing the cache, and ${maker.key} has one`;
  return [{ listed, tier: STANDARD_TIER, rateClass: 'cache_write_5m', because }];
}

function familyOf({ provider, model }: ListedModel): string {
  return familyNames(provider, model).at(-1) ?? model;
}

function hundredths(rate: Pico, base: Pico): bigint {
  return divideHalfEven(rate * HUNDRED, base);
}

/** A factor with at most two decimals. */
export function factorText(rate: Pico, base: Pico): string {
  const factor = hundredths(rate, base);
  const fraction = (factor % HUNDRED).toString().padStart(2, '0').replace(/0+$/, '');
  return `${factor / HUNDRED}${fraction === '' ? '' : `.${fraction}`}`;
}
