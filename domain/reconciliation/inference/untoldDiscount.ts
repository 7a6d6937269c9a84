/**
 * Something can be wrong on top of a discount that nobody entered. Between days on which everything was charged exactly that
 * much below what is entered, the discount is taken for agreed, and what else a day shows is explained against it.
 */
import { CENT } from './reading.js';
import type { JudgedDay } from './runs.js';

/** Days that have to show a discount before anything is held against it. */
const DAYS_MIN = 7;

/** For the days that something else than a discount has to explain: the one that the days about them show, in percent. */
export function untoldDiscounts(judged: readonly JudgedDay[]): ReadonlyMap<string, number> {
  const days = judged.filter(({ work }) => work.reading.judged && work.reading.depth === 'quantities');
  const shown = days.map(discountOf);
  const counts = new Map<number, number>();
  for (const one of shown) if (one) counts.set(one, (counts.get(one) ?? 0) + 1);
  const found = new Map<string, number>();
  days.forEach(({ work, state, parts }, at) => {
    const isRight = state.kind === 'none' && parts.unexplained.length === 0;
    if (shown[at] !== undefined || isRight) return;
    const before = shown.slice(0, at).findLast((one) => one !== undefined);
    const after = shown.slice(at + 1).find((one) => one !== undefined);
    const discount = before ?? after;
    if (!discount || (after ?? discount) !== discount || (counts.get(discount) ?? 0) < DAYS_MIN) return;
    found.set(work.reading.day.day, discount);
  });
  return found;
}

/**
 * Of a day on which nothing else shows: its discount, 0 for none. Undefined where something is left to explain, and where
 * nothing is only because the bill leaves open who used what.
 */
function discountOf({ state, parts, work }: JudgedDay): number | undefined {
  if (parts.unexplained.length > 0) return undefined;
  const isReported = work.reading.meters.some((one) => one.rateEvidence === 'sharp' && one.amount > CENT);
  if (state.kind === 'none') return isReported ? 0 : undefined;
  return state.kind === 'contract_terms' ? Number(state.variant.split(':')[1] ?? 0) : undefined;
}
