import type { BilledCell, ObservedCell, UsageCell } from '../matching/cells.js';
import type { ObservedSource, ObservedVector } from './seriesDay.js';
import { SOURCES_MAX } from './seriesDay.js';

/** Text order, the same on every machine. */
export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Orders things by a text that tells them apart; does not change the input. */
export function sortedBy<T>(things: readonly T[], keyOf: (thing: T) => string): T[] {
  return things
    .map((thing) => ({ thing, key: keyOf(thing) }))
    .sort((a, b) => byText(a.key, b.key))
    .map(({ thing }) => thing);
}

export const billedKey = (cell: BilledCell): string =>
  `${cell.accountId}|${cell.model}|${cell.lineItem}|${cell.tokenClass}|${cell.serviceTier}|${cell.isBatch}|${cell.longContext}|${cell.region}|${cell.observable}|${cell.amountPico}|${cell.quantity}`;

export const usageKey = (cell: UsageCell): string =>
  `${cell.accountId}|${cell.model}|${cell.tokenClass}|${cell.serviceTier}|${cell.isBatch}|${cell.longContext}|${cell.region}|${cell.hourMicros}|${cell.quantity}`;

const vectorKey = (cell: ObservedVector): string =>
  `${cell.model}|${cell.serviceTier}|${cell.isBatch}|${cell.contextBand}|${cell.status}`;

export const observedKey = (cell: ObservedCell): string =>
  `${cell.accountId}|${vectorKey(cell)}|${cell.hourMicros}`;

/** A day's calls with their hours added up, in a fixed order. */
export function vectorsOf(observed: readonly ObservedCell[]): ObservedVector[] {
  const vectors = new Map<string, ObservedVector>();
  for (const { accountId: _, hourMicros: __, hours: ___, ...cell } of observed) {
    const key = vectorKey(cell);
    const known = vectors.get(key);
    vectors.set(key, known ? added(known, cell) : cell);
  }
  return [...vectors].sort(([a], [b]) => byText(a, b)).map(([, vector]) => vector);
}

function added(a: ObservedVector, b: ObservedVector): ObservedVector {
  const tokens = { ...a.tokens };
  for (const name of Object.keys(tokens) as (keyof typeof tokens)[]) tokens[name] += b.tokens[name];
  return {
    ...a,
    tokens,
    calls: a.calls + b.calls,
    computedCostPico: a.computedCostPico + b.computedCostPico,
    unpriced: a.unpriced + b.unpriced,
    priceGaps: a.priceGaps + b.priceGaps,
    unmetered: a.unmetered + b.unmetered,
  };
}

/** A day's usage report with its hours added up, in a fixed order. */
export function dayUsageOf(usage: readonly UsageCell[]): UsageCell[] {
  const cells = new Map<string, UsageCell>();
  for (const { hours: _, ...cell } of usage) {
    const whole = { ...cell, hourMicros: null, quantity: 0n };
    const key = usageKey(whole);
    const known = cells.get(key);
    cells.set(key, { ...whole, quantity: (known?.quantity ?? 0n) + cell.quantity });
  }
  return [...cells].sort(([a], [b]) => byText(a, b)).map(([, cell]) => cell);
}

/** The services of the calls of some accounts and models, the busiest first. */
export function sourcesOf(
  sources: ReadonlyMap<string, ReadonlyMap<string, readonly ObservedSource[]>>,
  isOwn: (accountId: string) => boolean,
  models: readonly string[],
): ObservedSource[] {
  const byService = new Map<string, ObservedSource>();
  const own = [...sources].flatMap(([account, ofAccount]) => (isOwn(account) ? [ofAccount] : []));
  for (const source of own.flatMap((of) => models.flatMap((model) => of.get(model) ?? []))) {
    const known = byService.get(source.serviceName);
    const sum = (of: (one: ObservedSource) => number | undefined) =>
      ((known && of(known)) ?? 0) + (of(source) ?? 0);
    const namedByAnswer = sum((one) => one.namedByAnswer);
    const refused = sum((one) => one.refused);
    byService.set(source.serviceName, {
      serviceName: source.serviceName,
      calls: sum((one) => one.calls),
      callsWithoutCache: sum((one) => one.callsWithoutCache),
      ...(namedByAnswer > 0 && { namedByAnswer }),
      ...(refused > 0 && { refused }),
    });
  }
  return [...byService.values()]
    .sort((a, b) => b.calls - a.calls || byText(a.serviceName, b.serviceName))
    .slice(0, SOURCES_MAX);
}
