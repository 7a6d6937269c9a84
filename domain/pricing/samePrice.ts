import type { PricedModel } from './priceBook.js';

/** Two entries have one price when every rate of every period is the same. */
export function samePrice(left: readonly PricedModel[], right: readonly PricedModel[]): boolean {
  return (
    left.length === right.length && left.every((one, index) => priceText(one) === priceText(right[index]))
  );
}

function priceText(priced: PricedModel | undefined): string {
  if (!priced) return '';
  const { effectiveFrom, effectiveTo, rates, batchMultiplier, tiers } = priced.version;
  const plain = [
    effectiveFrom,
    effectiveTo,
    rates,
    batchMultiplier,
    tiers.map(({ checkedOn: _, ...tier }) => tier),
  ];
  return JSON.stringify(plain, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
