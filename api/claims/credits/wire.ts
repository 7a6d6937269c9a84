import { z } from 'zod';
import type { StoredCredit } from '../../../db/claims/claimCredits.js';
import type { StoredClaim } from '../../../db/claims/claims.js';
import { CREDIT_SOURCES, CREDIT_STATUSES, moveOfCredit } from '../../../domain/claims/lifecycle.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import { isoOrNull } from '../../runs/runWire.js';

/** The move that a credit asks for. */
export const creditMoveSchema = z
  .strictObject({ status: z.enum(['credit_issued', 'partial']), credit_issued_cents: z.int() })
  .meta({ id: 'ClaimCreditMove', description: 'What PATCH …/status takes to say that it is the answer' });

/** A credit with what may be done about it. */
export const creditSchema = z
  .strictObject({
    id: z.string(),
    source: z.enum(CREDIT_SOURCES).meta({
      description:
        'credit_row: rows of a bill that give money back; restatement: days of the claim that are billed at less now',
    }),
    status: z.enum(CREDIT_STATUSES),
    amount_cents: z.int(),
    rows: z.array(z.strictObject({ day: z.string(), amount_usd: z.number(), description: z.string() })),
    move: creditMoveSchema.nullable().meta({ description: 'Null once it is decided on' }),
    found_at: z.string(),
    decided_at: z.string().nullable(),
    decided_by: z.string().nullable(),
  })
  .meta({ id: 'ProposedCredit' });

export function presentCredit(claim: StoredClaim, credit: StoredCredit): z.output<typeof creditSchema> {
  return {
    id: publicId('crd', credit.id),
    source: credit.source,
    status: credit.status,
    amount_cents: credit.cents,
    rows: credit.rows.map(({ day, amountPico, description }) => ({
      day,
      amount_usd: usdNumberFromPico(amountPico),
      description,
    })),
    move: credit.status === 'proposed' ? presentMove(claim, credit.cents) : null,
    found_at: isoFromMicros(credit.foundAtMicros),
    decided_at: isoOrNull(credit.decidedAtMicros),
    decided_by: credit.decidedBy,
  };
}

export function presentMove(claim: StoredClaim, cents: number): z.output<typeof creditMoveSchema> | null {
  const move = moveOfCredit(claim, cents);
  return move ? { status: move.status, credit_issued_cents: move.creditIssuedCents } : null;
}
