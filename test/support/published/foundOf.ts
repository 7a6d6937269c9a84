import type { BilledRow } from '../../../domain/billing/billedRow.js';
import type { Finding } from '../../../domain/reconciliation/engine/index.js';

import { reconcileDays } from '../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import type { PublishedCase } from './case.js';
import { inputOf } from './judge.js';

/** The findings of a case; `read` gets its bill in another way than from its documents. */
export async function foundOf(
  one: PublishedCase,
  read?: (one: PublishedCase) => Promise<BilledRow[]>,
): Promise<readonly Finding[]> {
  const { days, prices } = await inputOf(one, read);
  return reconcileDays(one.provider, days, prices, DEFAULT_WEIGHTS, []).findings;
}

/** The content of findings, without ids and evidence. */
export const gistOf = (findings: readonly Finding[]) =>
  findings.map(({ kind, variant, direction, blame, model, grade, days }) => ({
    kind,
    variant,
    direction,
    blame,
    model,
    grade,
    days,
  }));

/** The overcharge of each day, 1e-12 dollars. */
export const impactByDay = (findings: readonly Finding[]): Map<string, bigint> =>
  new Map(findings.flatMap(({ days }) => days.map(({ day, impactPico }) => [day, impactPico])));

/** A scaled integer as the decimal text that a provider writes. */
export const decimalText = (scaled: bigint, digits: number): string =>
  `${scaled / 10n ** BigInt(digits)}.${String(scaled % 10n ** BigInt(digits)).padStart(digits, '0')}`;
