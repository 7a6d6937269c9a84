/** From which probability on a claim is HIGH or MEDIUM, by how much of such claims was credited. */
import type { Grade } from '../matching/cells.js';
import { BANDS } from '../matching/classLines.js';
import type { Judged } from './calibration.js';

export interface Thresholds {
  readonly high: number;
  readonly medium: number;
}

const startOf = (grade: 'HIGH' | 'MEDIUM' | 'LOW'): number => BANDS.find(([one]) => one === grade)?.[1] ?? 1;

/** The thresholds before any outcome. */
export const DEFAULT_THRESHOLDS: Thresholds = { high: startOf('HIGH'), medium: startOf('MEDIUM') };

/** The grade that a probability has by itself, before gates. */
export function bandOf(probability: number, { high, medium }: Thresholds = DEFAULT_THRESHOLDS): Grade {
  const from: Partial<Record<Grade, number>> = { HIGH: high, MEDIUM: medium };
  return BANDS.find(([grade, usual]) => probability >= (from[grade] ?? usual))?.[0] ?? 'UNVERIFIED';
}

/** The share of the dollars that must be credited, by the lower bound. */
const CREDITED: Thresholds = { high: 0.95, medium: 0.75 };
/** With fewer outcomes no threshold is moved. */
const OUTCOMES_MIN = 30;
/** One-sided 90 %. */
const Z = 1.2815515655446004;

/**
 * The smallest probability from which on the lower bound of what is credited reaches its share. The default where there are
 * too few outcomes; also where none reaches it, unless even the upper bound lies below: then nothing earns the grade.
 */
export function learnThresholds(judged: readonly Judged[]): Thresholds {
  const high = thresholdOf(judged, CREDITED.high, DEFAULT_THRESHOLDS.high);
  const medium = thresholdOf(judged, CREDITED.medium, DEFAULT_THRESHOLDS.medium);
  // Grades stay in their order, and above the next one's own beginning.
  const bounded = Math.max(medium, startOf('LOW'));
  return { high: Math.max(high, bounded, DEFAULT_THRESHOLDS.medium), medium: bounded };
}

function thresholdOf(judged: readonly Judged[], credited: number, usual: number): number {
  if (judged.length < OUTCOMES_MIN) return usual;
  const sorted = [...judged].sort((a, b) => b.p - a.p);
  let found: number | undefined;
  const sums = new Sums();
  sorted.forEach((one, at) => {
    sums.add(one);
    // All of one probability are in or out together.
    if (sorted[at + 1]?.p !== one.p && sums.bound(-Z) >= credited) found = one.p;
  });
  if (found !== undefined && found <= usual) return found;
  const above = new Sums();
  for (const one of sorted) if (one.p >= usual) above.add(one);
  const isTooLoose = above.bound(Z) < credited;
  return isTooLoose ? (found ?? 1) : usual;
}

/** Dollars, weighed by age, and how many outcomes of one size they are worth. */
class Sums {
  #total = 0;
  #squares = 0;
  #credited = 0;

  add({ claimedCents, weight, fraction }: Judged): void {
    const dollars = Number(claimedCents) * weight;
    this.#total += dollars;
    this.#squares += dollars * dollars;
    this.#credited += dollars * fraction;
  }

  /**
   * Wilson's bound of the credited share; the lower one for a negative z. Without dollars it is 0 below and 1 above.
   */
  bound(z: number): number {
    if (this.#total === 0) return z < 0 ? 0 : 1;
    const n = (this.#total * this.#total) / this.#squares;
    const share = this.#credited / this.#total;
    const middle = share + (z * z) / (2 * n);
    const half = z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
    return (middle + half) / (1 + (z * z) / n);
  }
}
