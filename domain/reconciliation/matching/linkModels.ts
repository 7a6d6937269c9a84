import type { DayRates } from '../audit/dayRates.js';

/** How a billed and an observed model were found to be one, best first. */
export type ModelLevel = 'exact' | 'alias' | 'family_same_price' | 'family_other_price';

export interface ModelLinks {
  /** Entry key of an observed model → entry key of the billed model that it belongs to. */
  billedKeyOf(observedModel: string): string;
  level(billedModels: readonly string[], observedModels: readonly string[]): ModelLevel;
}

/**
 * Tells which billed and observed ids of one account's day are the same model: by the same price entry, else by the
 * family where the day has exactly one billed and one observed entry of it left. Two candidates are never chosen
 * between.
 */
export function linkModels(
  billed: readonly string[],
  observed: readonly string[],
  rates: DayRates,
): ModelLinks {
  const billedKeys = new Set(billed.map((model) => rates.entryKey(model)));
  const observedKeys = new Set(observed.map((model) => rates.entryKey(model)));
  const byFamily = linkFamilies(
    keysByFamily(billed, rates, (key) => !observedKeys.has(key)),
    keysByFamily(observed, rates, (key) => !billedKeys.has(key)),
  );
  return {
    billedKeyOf: (model) => {
      const key = rates.entryKey(model);
      return byFamily.get(key) ?? key;
    },
    level: (billedModels, observedModels) => levelOf(billedModels, observedModels, rates),
  };
}

function keysByFamily(
  models: readonly string[],
  rates: DayRates,
  isLeft: (key: string) => boolean,
): Map<string, Set<string>> {
  const families = new Map<string, Set<string>>();
  for (const model of models) {
    const key = rates.entryKey(model);
    if (!isLeft(key)) continue;
    const family = rates.family(model);
    const keys = families.get(family) ?? new Set<string>();
    families.set(family, keys.add(key));
  }
  return families;
}

function linkFamilies(
  billed: Map<string, Set<string>>,
  observed: Map<string, Set<string>>,
): Map<string, string> {
  const links = new Map<string, string>();
  for (const [family, observedKeys] of observed) {
    const billedKeys = billed.get(family);
    const [from, ...moreObserved] = observedKeys;
    const [to, ...moreBilled] = billedKeys ?? [];
    if (from !== undefined && to !== undefined && moreObserved.length === 0 && moreBilled.length === 0)
      links.set(from, to);
  }
  return links;
}

function levelOf(
  billedModels: readonly string[],
  observedModels: readonly string[],
  rates: DayRates,
): ModelLevel {
  const ids = new Set(billedModels);
  if (observedModels.every((model) => ids.has(model))) return 'exact';
  const keys = new Set(billedModels.map((model) => rates.entryKey(model)));
  if (observedModels.every((model) => keys.has(rates.entryKey(model)))) return 'alias';
  const billed = billedModels[0] ?? '';
  return observedModels.every((model) => rates.samePrice(billed, model))
    ? 'family_same_price'
    : 'family_other_price';
}
