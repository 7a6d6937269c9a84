/**
 * Calls that name a model of Bedrock without its inference profile, while the bill has a model for each profile
 * (`us.anthropic.…`, `global.anthropic.…`): they are divided among the profiles as the bill is, like calls among places.
 */
import { QUANTITY_ONE } from '../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../events/event.js';
import type { BilledCell, ObservedCell } from './cells.js';
import { apportion, sum } from './classLines.js';

const PREFIX = /^[a-z-]+$/;

/** Whether the billed model is a profile of the other one. */
export function isProfileOf(billed: string, model: string): boolean {
  return billed.endsWith(`.${model}`) && PREFIX.test(billed.slice(0, -model.length - 1));
}

interface ProfileGroup {
  billed: readonly BilledCell[];
  observed: readonly ObservedCell[];
}

/** Counts of a use's fresh input, and of what it read from the cache and wrote to it; in one unit. */
interface InputCounts {
  input: bigint;
  cached: bigint;
}

/** Counts that differ by one part in so many are the same. */
const SAME_PARTS = 500n;

/** More bills are not searched for those that count what is cached once more: each doubles the choices. */
const BILLS_MAX = 8;

/**
 * The fresh input on each of several bills of which some count all that is cached on them as input once more. Only their sum
 * can be held against the calls: divided as their input is, the calls' fresh tokens would go where most is cached. Undefined
 * where the bills' cached tokens are not those of the calls, or where not exactly one choice of bills has as many cached tokens
 * as all bills have more input than the calls.
 */
export function freshBesidesCached(
  bills: readonly InputCounts[],
  calls: InputCounts,
): readonly bigint[] | undefined {
  const isSame = (a: bigint, b: bigint) => (a > b ? a - b : b - a) * SAME_PARTS <= b;
  const [input, cached] = [sum(bills.map((one) => one.input)), sum(bills.map((one) => one.cached))];
  if (calls.cached === 0n || !isSame(cached, calls.cached) || bills.length > BILLS_MAX) return undefined;
  let choices: InputCounts[][] = [[]];
  for (const one of bills)
    if (one.cached > 0n && one.cached <= one.input)
      choices = [...choices, ...choices.map((some) => [...some, one])];
  const [doubled, another] = choices.filter(
    (some) => some.length > 0 && isSame(input - calls.input, sum(some.map((one) => one.cached))),
  );
  if (doubled === undefined || another !== undefined) return undefined;
  return bills.map((one) => (doubled.includes(one) ? one.input - one.cached : one.input));
}

/**
 * A function that divides these calls among these groups, a part for each. Weights are by class what a group's bill has beyond
 * the calls that name its profile; they do not change while calls are divided.
 */
export function dividerAmong(
  groups: readonly ProfileGroup[],
  calls: readonly ObservedCell[],
): (cell: ObservedCell) => ObservedCell[] {
  const byClass = new Map(TOKEN_CLASSES.map((name) => [name, groups.map((group) => leftOf(group, name))]));
  const fresh = freshBesidesCached(
    groups.map((_, at) => countsOf((name) => byClass.get(name)?.[at] ?? 0n)),
    countsOf((name) => usedBy(calls, name)),
  );
  if (fresh) byClass.set('input', [...fresh]);
  const whole = groups.map((_, at) => sum(TOKEN_CLASSES.map((name) => byClass.get(name)?.[at] ?? 0n)));
  const weightsOf = (name: TokenClass) => {
    const own = byClass.get(name) ?? [];
    return own.some((one) => one > 0n) ? own : whole;
  };
  return (cell) => {
    const parts = new Map(TOKEN_CLASSES.map((name) => [name, apportion(cell.tokens[name], weightsOf(name))]));
    const shares = groups.map((_, at) => sum(TOKEN_CLASSES.map((name) => parts.get(name)?.[at] ?? 0n)));
    const divided = (value: bigint) => apportion(value, shares.some((one) => one > 0n) ? shares : whole);
    const [calls, costs] = [divided(BigInt(cell.calls)), divided(cell.computedCostPico)];
    const hours = cell.hours?.map((hour) => divided(hour.quantity));
    return groups.map((_, at) => ({
      ...cell,
      calls: Number(calls[at] ?? 0n),
      computedCostPico: costs[at] ?? 0n,
      tokens: Object.fromEntries(
        TOKEN_CLASSES.map((name) => [name, parts.get(name)?.[at] ?? 0n]),
      ) as ObservedCell['tokens'],
      ...(cell.hours &&
        hours && {
          hours: cell.hours.map(({ hourMicros }, n) => ({ hourMicros, quantity: hours[n]?.[at] ?? 0n })),
        }),
    }));
  };
}

const countsOf = (of: (name: TokenClass) => bigint): InputCounts => ({
  input: of('input'),
  cached: of('cache_read') + of('cache_write_5m') + of('cache_write_1h'),
});

/** In 1e-12 tokens. */
function usedBy(calls: readonly ObservedCell[], name: TokenClass): bigint {
  return sum(calls.map((cell) => (cell.status === 'error' ? 0n : cell.tokens[name]))) * QUANTITY_ONE;
}

/** In 1e-12 tokens. */
function leftOf({ billed, observed }: ProfileGroup, name: TokenClass): bigint {
  const lines = billed.filter((cell) => cell.tokenClass === name);
  const left = sum(lines.map((cell) => cell.quantity ?? 0n)) - usedBy(observed, name);
  return left > 0n ? left : 0n;
}
