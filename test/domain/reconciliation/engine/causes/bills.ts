/** Changes to the bills of inference/support.ts. */

import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';

import type { DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import type { Lines, Use } from '../series/support.js';

/** The lines at another price; of some classes alone where they are named. */
export function scaled(lines: Lines, numerator: bigint, denominator: bigint, only?: (keyof Use)[]): Lines {
  const change = (name: keyof Use) =>
    !only || only.includes(name)
      ? { ...lines[name], amountPico: (lines[name].amountPico * numerator) / denominator }
      : lines[name];
  return { input: change('input'), cache_read: change('cache_read'), output: change('output') };
}

/** Clients that name no tier. */
export const withoutTier = (input: DayInput): DayInput => ({
  ...input,
  observed: input.observed.map((one) => ({ ...one, serviceTier: '' })),
});

/** A bill that folds batch and tiers into its lines. */
export const merged = (input: DayInput): DayInput => ({
  ...input,
  billed: input.billed.map((one) => ({ ...one, isBatch: null })),
});

/** The main fields of a finding. */
export const said = ({ kind, variant, blame, claimable, grade }: Finding) => ({
  is: `${kind}/${variant}`,
  blame,
  claimable,
  grade,
});
