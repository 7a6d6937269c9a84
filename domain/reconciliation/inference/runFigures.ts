/** What the days of a run come to: dollars, shares, the next best explanation, and lines that a reader recomputes. */
import { absPico, type Pico } from '../../money.js';
import { billedRate } from '../matching/classLines.js';
import type { InvoiceTie } from '../matching/linkModels.js';
import type { FindingKind } from '../taxonomy.js';
import type { WeightSet } from '../weights/weightSet.js';
import type { MeterImpact } from './decompose.js';
import type { Finding, FindingDay, FindingLine } from './finding.js';
import { type Match, matchOf } from './match.js';
import type { JudgedDay, RunOfDays } from './runs.js';

interface MatchInput {
  readonly weights: WeightSet;
  readonly ties: ReadonlyMap<string, InvoiceTie> | undefined;
}

/** Odds beyond this say no more. */
export const ODDS_MAX = 1e9;

export function dayOf({ judged, impacts, impactPico }: RunOfDays['days'][number]): FindingDay {
  const sum = (of: (one: MeterImpact) => Pico) => impacts.reduce((total, one) => total + of(one), 0n);
  const billedPico = sum((one) => one.billedPico);
  return {
    day: judged.work.reading.day.day,
    billedPico,
    expectedPico: billedPico - impactPico,
    impactPico,
    ratePico: sum((one) => one.ratePico),
    volumePico: sum((one) => one.volumePico),
    ownPricingPico: 0n,
    probability: judged.alone,
  };
}

export const totalOf = (run: RunOfDays): Pico => run.days.reduce((total, day) => total + day.impactPico, 0n);

export function strongestOf(run: RunOfDays): RunOfDays['days'][number] {
  const [first, ...rest] = run.days;
  if (!first) throw new RangeError('a run has days');
  return rest.reduce((best, day) => (absPico(day.impactPico) > absPico(best.impactPico) ? day : best), first);
}

export function matchAt({ work, shown }: JudgedDay, input: MatchInput): Match {
  const { day } = work.reading.day;
  return matchOf(work.reading, shown, input.weights, input.ties?.get(day.slice(0, 7)));
}

/** Each day's share of the run's dollars. */
export function sharesOf(run: RunOfDays): number[] {
  const sizes = run.days.map(({ impactPico }) => Number(absPico(impactPico)));
  const all = sizes.reduce((total, size) => total + size, 0);
  return sizes.map((size) => (all > 0 ? size / all : 1 / sizes.length));
}

export function weighted(run: RunOfDays, shares: readonly number[], of: (one: JudgedDay) => number): number {
  return run.days.reduce((total, { judged }, at) => total + of(judged) * (shares[at] ?? 0), 0);
}

export function nextBest(
  run: RunOfDays,
  shares: readonly number[],
  own: FindingKind,
  probability: number,
): Finding['next'] {
  const kinds = new Set(run.days.flatMap(({ judged }) => [...judged.pooled.keys()]));
  let best: { kind: FindingKind | 'none'; p: number } | undefined;
  for (const kind of kinds) {
    if (kind === own) continue;
    const p = weighted(run, shares, (one) => one.pooled.get(kind) ?? 0);
    if (!best || p > best.p) best = { kind, p };
  }
  if (!best || best.p <= probability / ODDS_MAX) return null;
  return { kind: best.kind, odds: probability / best.p };
}

/** One line for each meter that the bill tells apart, over all days. */
export function linesOf(run: RunOfDays): FindingLine[] {
  const lines = new Map<string, { line: FindingLine; mixed: boolean; expectedOfBilled: Pico | null }>();
  for (const { impacts } of run.days) {
    for (const impact of impacts) {
      const { meter } = impact;
      const own = meter?.meter;
      const key = own
        ? [own.tokenClass, own.serviceTier, own.isBatch, own.longContext, own.region].join('|')
        : '';
      const known = lines.get(key);
      const expectedPico = impact.billedPico - impact.ratePico - impact.volumePico;
      const quantity = own?.quantity ?? null;
      lines.set(key, {
        mixed: (known?.mixed ?? false) || (meter?.mix.length ?? 2) > 1,
        expectedOfBilled: addKnown(known?.expectedOfBilled ?? 0n, meter?.expectedPico ?? null),
        line: {
          tokenClass: own?.tokenClass ?? 'other',
          serviceTier: own?.serviceTier ?? 'standard',
          isBatch: own?.isBatch ?? null,
          longContext: own?.longContext ?? null,
          region: own?.region ?? null,
          billedQuantity: known ? addKnown(known.line.billedQuantity, quantity) : quantity,
          observedQuantity: (known?.line.observedQuantity ?? 0n) + (meter?.observed ?? 0n),
          billedRate: null,
          expectedRate: null,
          billedPico: (known?.line.billedPico ?? 0n) + impact.billedPico,
          expectedPico: (known?.line.expectedPico ?? 0n) + expectedPico,
        },
      });
    }
  }
  return [...lines]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { line, mixed, expectedOfBilled }]) => {
      const quantity = line.billedQuantity;
      if (mixed || quantity === null || quantity <= 0n) return line;
      return {
        ...line,
        billedRate: billedRate(line.billedPico, quantity),
        expectedRate: expectedOfBilled === null ? null : billedRate(expectedOfBilled, quantity),
      };
    });
}

const addKnown = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || b === null ? null : a + b;
