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

/**
 * A function that divides calls among these groups, a part for each. Weights are by class what a group's bill has beyond
 * the calls that name its profile; they do not change while calls are divided.
 */
export function dividerAmong(groups: readonly ProfileGroup[]): (cell: ObservedCell) => ObservedCell[] {
  const byClass = new Map(TOKEN_CLASSES.map((name) => [name, groups.map((group) => leftOf(group, name))]));
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
        hours && { hours: cell.hours.map((hour, n) => ({ ...hour, quantity: hours[n]?.[at] ?? 0n })) }),
    }));
  };
}

/** In 1e-12 tokens. */
function leftOf({ billed, observed }: ProfileGroup, name: TokenClass): bigint {
  const lines = billed.filter((cell) => cell.tokenClass === name);
  const named = sum(observed.map((cell) => (cell.status === 'error' ? 0n : cell.tokens[name])));
  const left = sum(lines.map((cell) => cell.quantity ?? 0n)) - named * QUANTITY_ONE;
  return left > 0n ? left : 0n;
}
