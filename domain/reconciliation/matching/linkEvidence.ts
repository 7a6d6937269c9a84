import { QUANTITY_ONE } from '../../billing/billedRow.js';
import { absPico, type Pico } from '../../money.js';
import { isTokenClass } from '../audit/dayRates.js';
import type { BillableInput } from './bucket.js';
import type { ClassLine } from './cells.js';
import { sum } from './classLines.js';
import { tolerancePico } from './grade.js';
import type { LinkEvidence } from './linkScore.js';
import type { Meter } from './meters.js';

/** A bucket's sums, as the evidence is judged against. */
export interface Totals {
  providerCostPico: Pico;
  ourCostPico: Pico;
  expectedCostPico: Pico | null;
  expectedOfObserved: Pico | null;
  roundingPico: Pico;
}

/** What speaks for a charge being the observed usage. */
export function evidenceOf(
  input: BillableInput,
  meters: readonly Meter[],
  lines: readonly ClassLine[],
  totals: Totals,
): LinkEvidence {
  const { providerCostPico, expectedCostPico } = totals;
  const requests =
    sum(
      [...meters, ...input.usage]
        .filter((one) => one.tokenClass === 'requests')
        .map((one) => one.quantity ?? 0n),
    ) / QUANTITY_ONE;
  const calls = BigInt(input.billable.reduce((count, cell) => count + cell.calls, 0));
  return {
    model: input.level,
    worstQuantityDeviation: worstDeviation(lines, totals),
    callDeviation: requests === 0n ? null : share(requests - calls, requests),
    rateRatio:
      expectedCostPico === null || expectedCostPico === 0n
        ? null
        : Number(providerCostPico) / Number(expectedCostPico),
    rateWithinRounding:
      expectedCostPico !== null &&
      expectedCostPico !== 0n &&
      absPico(providerCostPico - expectedCostPico) <= totals.roundingPico + BigInt(meters.length),
    totalDeviation: share(providerCostPico - totals.ourCostPico, providerCostPico),
  };
}

/** The least coverage that may be taken out as a common factor; below it the shortfall counts as deviation. */
const COVERAGE_MIN = 0.5;

/**
 * How far the worst class that matters lies from its billed quantity, once the common share of calls that we saw is
 * taken out: a gap in observation scales all classes alike and does not make the charge another's.
 */
function worstDeviation(lines: readonly ClassLine[], totals: Totals): number | null {
  const priced = lines.filter((line) => isTokenClass(line.tokenClass));
  if (priced.length === 0 || priced.some((line) => line.billedQuantity === null)) return null;
  const { expectedCostPico, expectedOfObserved } = totals;
  const ratio =
    expectedCostPico && expectedOfObserved ? Number(expectedOfObserved) / Number(expectedCostPico) : 1;
  const coverage = Math.min(1, Math.max(COVERAGE_MIN, ratio));
  const matters = tolerancePico(totals.providerCostPico, totals.roundingPico);
  let worst = 0;
  for (const line of priced) {
    if (
      (line.expectedOfBilledPico ?? matters + 1n) <= matters &&
      (line.expectedOfObservedPico ?? matters + 1n) <= matters
    )
      continue;
    const billed = Number(line.billedQuantity ?? 0n) * coverage;
    const observed = Number(line.observedQuantity);
    worst = Math.max(worst, Math.abs(observed - billed) / Math.max(billed, observed, 1));
  }
  return worst;
}

/** |part| ÷ |whole| for a score; 1 where the whole is zero. */
function share(part: bigint, whole: bigint): number {
  return whole === 0n ? 1 : Math.abs(Number(part) / Number(whole));
}
