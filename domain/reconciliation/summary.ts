import type { Pico } from '../money.js';
import { GRADES, type Grade } from './matching/cells.js';

/**
 * A month's billed usage by the grade of its match. The four grades add up to matched + unmatched, which is the
 * bill.
 */
export interface MonthSummary {
  /** `YYYY-MM` */
  period: string;
  matchedPico: Pico;
  unmatchedPico: Pico;
  distribution: Record<Grade, Pico>;
}

/** Unmatched usage counts as UNVERIFIED. */
export function summarizeMonth(
  period: string,
  billedPico: Pico,
  matchedByGrade: Partial<Record<Grade, Pico>>,
): MonthSummary {
  const distribution: Record<Grade, Pico> = { HIGH: 0n, MEDIUM: 0n, LOW: 0n, UNVERIFIED: 0n };
  let matchedPico = 0n;
  for (const grade of GRADES) {
    distribution[grade] = matchedByGrade[grade] ?? 0n;
    matchedPico += distribution[grade];
  }
  const unmatchedPico = billedPico - matchedPico;
  distribution.UNVERIFIED += unmatchedPico;
  return { period, matchedPico, unmatchedPico, distribution };
}
