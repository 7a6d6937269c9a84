import { randomUUID } from 'node:crypto';
import { insertCredit } from '../../db/claims/claims.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { CreditSource } from '../../domain/claims/lifecycle.js';

const PICO_PER_CENT = 10n ** 10n;

/** A credit that is proposed for a claim, of one row; the uuid of the proposal. */
export async function storeCredit(
  orgDb: OrgDb,
  claimId: string,
  given: { cents: number; description?: string; source?: CreditSource; sourceKey?: string },
): Promise<string> {
  const id = randomUUID();
  await insertCredit(orgDb, {
    ...{ id, claimId, source: given.source ?? 'credit_row', isAccepted: false },
    rows: [
      {
        sourceKey: given.sourceKey ?? `test:${id}`,
        day: '2026-06-01',
        amountPico: BigInt(given.cents) * PICO_PER_CENT,
        cents: BigInt(given.cents),
        description: given.description ?? 'Credit',
      },
    ],
  });
  return id;
}
