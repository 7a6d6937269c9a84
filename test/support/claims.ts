import { createHash, randomUUID } from 'node:crypto';
import { findClaim, insertClaimEvent, type StoredClaim } from '../../db/claims/claims.js';
import { insertDispute } from '../../db/claims/disputes.js';
import type { OrgDb } from '../../db/orgDb.js';
import { BusinessDays, nextDeadline } from '../../domain/claims/deadlines.js';
import {
  type ClaimCommand,
  type ClaimStatus,
  canMove,
  type MoveFields,
  NO_FIELDS,
} from '../../domain/claims/lifecycle.js';
import { DEFAULT_SETTINGS } from '../../domain/installation/settings.js';
import { isoFromMicros } from '../../domain/period.js';
import { recordClaimMove } from '../../usecases/claims/moveClaim.js';
import { aFindingDay, type FindingToStore, storeFindings } from './findings.js';

const PICO_PER_CENT = 10n ** 10n;
/** The year 2200: no test waits for it. */
const FAR_MICROS = 7_258_118_400_000_000;

export interface ClaimToStore {
  status?: ClaimStatus;
  /** The days of its disputes, one each; one of 12,345 cents by default. */
  disputes?: readonly (FindingToStore & { cents: number })[];
  /** The claimed cents, where less than the disputes' sum. */
  recoverableCents?: number;
  notes?: string;
  /** The actor who made it, also in its history. */
  by?: string;
  evidence?: Record<string, unknown>;
  /** When it was made and, as a draft, came into its status; now by default. */
  atMicros?: bigint;
}

/** The required fields of a move to a status, and no others. */
export function fieldsFor(to: ClaimStatus, cents = 1_000): MoveFields {
  if (to === 'denied')
    return { ...NO_FIELDS, denialReason: 'not ours', violationType: 'insufficient_evidence' };
  if (to === 'credit_issued' || to === 'partial') return { ...NO_FIELDS, creditIssuedCents: cents };
  return NO_FIELDS;
}

/** A command that nothing is wrong with, for a claim as it is. */
export function aCommand(
  claim: Pick<StoredClaim, 'id' | 'version'>,
  to: ClaimStatus,
  parts: Partial<ClaimCommand> = {},
): ClaimCommand {
  return {
    claimId: claim.id,
    commandId: randomUUID(),
    to,
    version: claim.version,
    notAfterMicros: FAR_MICROS,
    fields: fieldsFor(to),
    keyId: 'key_test',
    requestId: 'test',
    ...parts,
  };
}

/** The moves that lead from a draft to a status, by the shortest way. */
function wayTo(status: ClaimStatus): ClaimStatus[] {
  if (status === 'draft') return [];
  return canMove('submitted_to_provider', status)
    ? ['submitted_to_provider', status]
    : ['submitted_to_provider'];
}

/** Stores a claim over new disputes, and moves it to a status. */
export async function storeClaim(orgDb: OrgDb, given: ClaimToStore = {}): Promise<StoredClaim> {
  return orgDb.transaction(async (inside) => {
    let claim = await storeDraft(inside, given);
    for (const to of wayTo(given.status ?? 'draft'))
      claim = await recordClaimMove(
        inside,
        aCommand(claim, to, {
          fields: fieldsFor(to, to === 'credit_issued' ? claim.recoverableCents : 1_000),
          ...(given.by === undefined ? {} : { keyId: given.by }),
        }),
      );
    return claim;
  });
}

async function storeDraft(inside: OrgDb, given: ClaimToStore): Promise<StoredClaim> {
  const id = randomUUID();
  const by = given.by ?? 'key_test';
  const at = given.atMicros ?? BigInt(Date.now()) * 1_000n;
  const wanted = given.disputes ?? [{ cents: 12_345 }];
  const disputeIds: string[] = [];
  for (const { cents, ...finding } of wanted) disputeIds.push(await storeDispute(inside, finding, cents, by));
  const evidence = given.evidence ?? { pricing_snapshot: { version: 'test' } };
  const total = wanted.reduce((sum, { cents }) => sum + cents, 0);
  const next = nextDeadline(
    {
      status: 'draft',
      enteredAtMicros: at,
      periodEnd: '2026-03-10',
      notifiedSteps: [],
      snoozedUntilMicros: null,
    },
    new BusinessDays(DEFAULT_SETTINGS),
  );
  await inside.run(
    `insert into claims (org_id, id, provider, provider_account_id, period_start, period_end, total_recoverable_cents, confidence_tier,
       evidence, evidence_sha256, notes, created_at, entered_at, updated_at, created_by, next_action, next_action_at)
     values ($1, $2, 'openai', 'acc-1', '2026-03-10', '2026-03-10', $3, 'HIGH', $4::jsonb, $5, $6, $7, $7, $7, $8, $9, $10)`,
    [
      ...[inside.orgId, id, given.recoverableCents ?? total, JSON.stringify(evidence)],
      createHash('sha256').update(JSON.stringify(evidence)).digest(),
      ...[given.notes ?? null, isoFromMicros(at), by, next?.action ?? null],
      next ? isoFromMicros(next.atMicros) : null,
    ],
  );
  await insertClaimEvent(inside, {
    ...{ claimId: id, version: 1, commandId: randomUUID(), from: null, to: 'draft', atMicros: at, actor: by },
    ...{ fields: NO_FIELDS, nextAction: next?.action ?? null, nextActionAtMicros: next?.atMicros ?? null },
  });
  for (const disputeId of disputeIds)
    await inside.run('update disputes set claim_id = $2 where org_id = $1 and id = $3', [
      inside.orgId,
      id,
      disputeId,
    ]);
  const claim = await findClaim(inside, id);
  if (!claim) throw new Error('the claim was just stored');
  return claim;
}

/** An open dispute over a new finding; returns its id. */
async function storeDispute(
  inside: OrgDb,
  finding: FindingToStore,
  cents: number,
  by: string,
): Promise<string> {
  const day = aFindingDay('2026-03-10', BigInt(cents) * PICO_PER_CENT);
  const [findingId = ''] = await storeFindings(inside, [
    { model: `model-${randomUUID()}`, ...finding, days: [day], status: 'confirmed' },
  ]);
  const dispute = await insertDispute(inside, findingId, {
    ...{ id: randomUUID(), days: [day], amountCents: BigInt(cents), tier: 'HIGH', notes: by, openedBy: by },
    reason: 'Cached input was charged at the full rate.',
  });
  if (!dispute) throw new Error('the finding was just stored');
  return dispute.id;
}
