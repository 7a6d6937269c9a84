import { QUANTITY_ONE } from '../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../events/event.js';
import type { Pico } from '../../money.js';
import { microsOfDay } from '../../period.js';
import { addCoverage, type CoverageFigures, noCoverage } from './coverage.js';

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** What bills say of one provider key on one day; '' where they name none. */
export interface BilledKeyDay {
  provider: string;
  providerKeyId: string;
  day: string;
  /** Of usage that calls can show, and of the other. */
  billedPico: Pico;
  notObservablePico: Pico;
  /** By class, in 1e-12 tokens; null: what is charged for is not all counted. */
  quantities: { tokenClass: TokenClass; quantity: bigint | null }[];
}

/** What was observed of one provider key on one day; '' where calls name none. */
export interface ObservedKeyDay {
  provider: string;
  providerKeyId: string;
  day: string;
  calls: number;
  /** Whole tokens. */
  tokens: Readonly<Record<TokenClass, bigint>>;
  computedPico: Pico;
}

/** A provider key with its figures and the number of its days. */
export interface KeyCoverage {
  provider: string;
  providerKeyId: string;
  days: number;
  figures: CoverageFigures;
}

/**
 * Coverage by provider key. Key and day are compared class by class; dollars are explained as far as the key's calls
 * cost as much. What a bill charges without naming a key, and what it charges a provider's keys while no call names any,
 * cannot be compared by key. `observedSince`: the first call of each provider, in microseconds.
 */
export function coverageByKey(
  billed: readonly BilledKeyDay[],
  observed: readonly ObservedKeyDay[],
  observedSince: ReadonlyMap<string, bigint>,
): KeyCoverage[] {
  const namesKeys = new Set(observed.flatMap((day) => (day.providerKeyId === '' ? [] : [day.provider])));
  const found = new Map<string, KeyCoverage>();
  const groupOf = (day: BilledKeyDay | ObservedKeyDay): KeyCoverage => {
    const name = `${day.provider}\n${day.providerKeyId}`;
    const known = found.get(name) ?? {
      provider: day.provider,
      providerKeyId: day.providerKeyId,
      days: 0,
      figures: noCoverage(),
    };
    found.set(name, known);
    return known;
  };
  const seen = new Map(observed.map((day) => [dayName(day), day]));
  for (const day of billed) {
    const group = groupOf(day);
    const since = observedSince.get(day.provider);
    const isComparable = day.providerKeyId !== '' && namesKeys.has(day.provider);
    const isObserved = since !== undefined && since <= microsOfDay(day.day);
    group.days += 1;
    addCoverage(group.figures, figuresOfKeyDay(day, seen.get(dayName(day)), { isComparable, isObserved }));
    seen.delete(dayName(day));
  }
  const billedDays = new Set(billed.map(({ provider, day }) => `${provider}\n${day}`));
  for (const day of seen.values()) {
    // A day without a bill says nothing of anybody's coverage.
    if (!billedDays.has(`${day.provider}\n${day.day}`)) continue;
    const group = groupOf(day);
    group.days += 1;
    group.figures.calls += day.calls;
    if (day.providerKeyId !== '') group.figures.observedTokens += sumOf(day.tokens);
  }
  return [...found.values()];
}

const dayName = (day: { provider: string; providerKeyId: string; day: string }) =>
  `${day.provider}\n${day.providerKeyId}\n${day.day}`;

const sumOf = (tokens: ObservedKeyDay['tokens']): bigint =>
  TOKEN_CLASSES.reduce((total, name) => total + tokens[name], 0n) * QUANTITY_ONE;

function figuresOfKeyDay(
  billed: BilledKeyDay,
  observed: ObservedKeyDay | undefined,
  { isComparable, isObserved }: { isComparable: boolean; isObserved: boolean },
): CoverageFigures {
  const figures = noCoverage();
  figures.calls = observed?.calls ?? 0;
  figures.billedPico = billed.billedPico + billed.notObservablePico;
  figures.notObservablePico = billed.notObservablePico;
  if (!isComparable) {
    figures.notComparedPico = billed.billedPico;
    return figures;
  }
  const computed = observed?.computedPico ?? 0n;
  const explained = least(billed.billedPico, computed);
  figures.explainedPico = explained > 0n ? explained : 0n;
  const rest = billed.billedPico - figures.explainedPico;
  if (isObserved) figures.notMatchedPico = rest;
  else figures.notYetObservedPico = rest;
  if (!isObserved) return figures;
  if (billed.quantities.some(({ quantity }) => quantity === null)) {
    figures.uncountedPico = billed.billedPico;
    return figures;
  }
  figures.observedTokens = observed ? sumOf(observed.tokens) : 0n;
  for (const { tokenClass, quantity } of billed.quantities) {
    figures.billedTokens += quantity ?? 0n;
    figures.coveredTokens += least(quantity ?? 0n, (observed?.tokens[tokenClass] ?? 0n) * QUANTITY_ONE);
  }
  return figures;
}
