import { recordAudit } from '../../db/access/auditLog.js';
import { readBusinessDays } from '../../db/claims/businessDays.js';
import { findClaimEventOf, insertClaimEvent } from '../../db/claims/claimEvents.js';
import {
  type ClaimedDispute,
  type ClaimOutcomeKind,
  insertClaimOutcome,
  listClaimedDisputes,
} from '../../db/claims/claimOutcomes.js';
import { findClaim, lockClaim, type StoredClaim } from '../../db/claims/claims.js';
import { resolveDisputesOfClaim } from '../../db/claims/resolveDispute.js';
import { readClock } from '../../db/clock.js';
import { newUuid } from '../../db/newUuid.js';
import type { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { publishMessages } from '../../db/webhooks/webhookMessages.js';
import type { BusinessDays } from '../../domain/claims/deadlines.js';
import { nextDeadline } from '../../domain/claims/deadlines.js';
import type { ClaimCommand } from '../../domain/claims/lifecycle.js';
import {
  assertMovable,
  creditedFraction,
  isTerminal,
  movedFields,
  resolutionOf,
} from '../../domain/claims/lifecycle.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import type { FindingKind } from '../../domain/reconciliation/taxonomy.js';
import { levelsOf, rawProbabilityOf } from '../../domain/reconciliation/weights/levels.js';
import { claimMovedMessage } from '../../domain/webhooks/claimMessage.js';
import { settleCredits } from './decideCredits.js';

/**
 * Carries a move out, with everything that follows from it, in the caller's transaction; a command that is recorded already
 * changes nothing more. Whoever comes at the same time waits for the row, so the history is in one order. Errors not_found,
 * command_too_late, illegal_transition, claim_conflict (it is another version by now), invalid_body (partial of the whole).
 */
export async function recordClaimMove(inside: OrgDb, command: ClaimCommand): Promise<StoredClaim> {
  const before = await lockClaim(inside, command.claimId);
  if (!before) throw new DomainError('not_found', 'there is no claim with this id');
  // Statements after the lock, sent together: what was recorded, the time and the calendar, as they are now.
  const [recorded, atMicros, days] = await Promise.all([
    findClaimEventOf(inside, command.commandId),
    readClock(inside),
    readBusinessDays(inside),
  ]);
  if (recorded) return before;
  if (atMicros >= BigInt(command.notAfterMicros))
    throw new DomainError('command_too_late', 'whoever asked for this move is no longer waiting for it');
  assertMovable(before, command);
  const at = atMicros < before.enteredAtMicros ? before.enteredAtMicros : atMicros;
  const after = await moveRow(inside, before, command, { at, days });
  await insertClaimEvent(inside, {
    claimId: before.id,
    version: after.version,
    commandId: command.commandId,
    from: before.status,
    to: command.to,
    atMicros: at,
    actor: command.keyId,
    fields: command.fields,
    nextAction: after.nextAction,
    nextActionAtMicros: after.nextActionAtMicros,
  });
  if (before.status === 'draft') await claimDisputes(inside, before.id);
  if (isTerminal(command.to)) await endClaim(inside, after, command, at);
  await publishMessages(inside, [claimMovedMessage(newUuid(at), after, before.status, at)]);
  await tellAudit(inside, before, after, command);
  return after;
}

async function moveRow(
  inside: OrgDb,
  before: StoredClaim,
  { to, fields }: ClaimCommand,
  { at, days }: { at: bigint; days: BusinessDays },
): Promise<StoredClaim> {
  const { externalTicketId, creditIssuedCents } = movedFields(before, to, fields);
  const { periodEnd } = before;
  const next = nextDeadline(
    { status: to, enteredAtMicros: at, periodEnd, stepsTold: [], snoozedUntilMicros: null },
    days,
  );
  await inside.run(
    `update claims set version = version + 1, status = $3, entered_at = $4::timestamptz, updated_at = $4::timestamptz,
       submitted_at = coalesce(submitted_at, $4::timestamptz),
       resolved_at = case when $5::boolean then $4::timestamptz end,
       external_ticket_id = $6, credit_issued_cents = $7, next_action = $8, next_action_at = $9::timestamptz, steps_told = '{}',
       snoozed_until = null
     where org_id = $1 and id = $2::uuid`,
    [
      ...[inside.orgId, before.id, to, isoFromMicros(at), isTerminal(to), externalTicketId],
      ...[creditIssuedCents, next?.action ?? null, next ? isoFromMicros(next.atMicros) : null],
    ],
  );
  const after = await findClaim(inside, before.id);
  if (!after) throw new Error('the claim is held, so it is there');
  return after;
}

/** What was sent to a provider is open no longer. */
async function claimDisputes(inside: OrgDb, claimId: string): Promise<void> {
  await inside.run(
    `update disputes set status = 'claimed' where org_id = $1 and claim_id = $2::uuid and status = 'open'`,
    [inside.orgId, claimId],
  );
}

/** The outcome is written down, the disputes are resolved, their days and what was netted are free again, and credits are settled. */
async function endClaim(
  inside: OrgDb,
  claim: StoredClaim,
  { to, fields, keyId }: ClaimCommand,
  atMicros: bigint,
): Promise<void> {
  const disputes = await listClaimedDisputes(inside, claim.id);
  await insertClaimOutcome(
    inside,
    {
      claimId: claim.id,
      status: to,
      denialReason: fields.denialReason,
      violationType: fields.violationType,
      creditIssuedCents: claim.creditIssuedCents,
      actor: keyId,
      atMicros,
    },
    {
      provider: claim.provider,
      fraction: creditedFraction(to, claim.creditIssuedCents, claim.recoverableCents),
      kinds: kindsOf(disputes),
    },
  );
  const resolution = resolutionOf(to, fields.violationType);
  if (resolution === undefined) throw new Error(`a claim that is ${to} has not ended`);
  await resolveDisputesOfClaim(inside, claim.id, { resolution, notes: null, by: keyId, atMicros });
  await inside.run(
    'update claim_undercharges set live = false where org_id = $1 and claim_id = $2::uuid and live',
    [inside.orgId, claim.id],
  );
  const creditCents = to === 'denied' ? null : claim.creditIssuedCents;
  await settleCredits(inside, claim.id, { creditCents, by: keyId, atMicros });
  await insertOutboxMessage(inside, 'weights.recompute', claim.id);
}

/** Kind by kind; of several disputes of a kind the largest says what it was believed on. */
function kindsOf(disputes: readonly ClaimedDispute[]): ClaimOutcomeKind[] {
  const kinds = new Map<FindingKind, ClaimOutcomeKind>();
  for (const { kind, amountCents, probability, waterfall, weightSet } of disputes) {
    const known = kinds.get(kind);
    if (known) kinds.set(kind, { ...known, claimedCents: known.claimedCents + BigInt(amountCents) });
    else
      kinds.set(kind, {
        claimedType: kind,
        claimedCents: BigInt(amountCents),
        levels: levelsOf(waterfall),
        probability,
        rawProbability: rawProbabilityOf(probability, waterfall),
        weightSet,
      });
  }
  return [...kinds.values()];
}

function tellAudit(
  inside: OrgDb,
  before: StoredClaim,
  after: StoredClaim,
  { keyId, requestId, fields }: ClaimCommand,
): Promise<void> {
  return recordAudit(inside, {
    action: before.status === 'draft' ? 'claim.submitted' : 'claim.status_changed',
    actor: { kind: 'key', id: keyId },
    subject: { type: 'claim', id: publicId('clm', after.id) },
    details: {
      from: before.status,
      to: after.status,
      version: after.version,
      total_recoverable_cents: after.recoverableCents,
      credit_issued_cents: after.creditIssuedCents,
      external_ticket_id: after.externalTicketId,
      violation_type: fields.violationType,
    },
    requestId,
  });
}
