import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { readBusinessDays } from '../../db/claims/businessDays.js';
import { recordBilledDays } from '../../db/claims/claimCredits.js';
import { insertClaimEvent } from '../../db/claims/claimEvents.js';
import { findClaim, type StoredClaim } from '../../db/claims/claims.js';
import type { OrgDb } from '../../db/orgDb.js';
import { plainArray } from '../../db/pgArray.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { nextDeadline } from '../../domain/claims/deadlines.js';
import type { DraftClaim } from '../../domain/claims/draft.js';
import { NO_FIELDS } from '../../domain/claims/lifecycle.js';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { FrozenEvidence } from './freezeEvidence.js';

const compress = promisify(gzip);

/** Stores a claim as a draft with everything that it is made of. Its disputes are held, open and in no claim. */
export async function insertDraft(
  inside: OrgDb,
  draft: DraftClaim,
  frozen: FrozenEvidence,
  said: { by: string; notes: string | null },
): Promise<StoredClaim> {
  const atMicros = await readTime(inside);
  const at = isoFromMicros(atMicros);
  const { periodEnd } = draft;
  const next = nextDeadline(
    { status: 'draft', enteredAtMicros: atMicros, periodEnd, stepsTold: [], snoozedUntilMicros: null },
    await readBusinessDays(inside),
  );
  await inside.run(
    `insert into claims (org_id, id, provider, provider_account_id, period_start, period_end, total_recoverable_cents, confidence_tier,
       evidence, evidence_sha256, notes, next_action, next_action_at, entered_at, created_at, created_by, updated_at)
     values ($1, $2::uuid, $3, $4, $5::date, $6::date, $7::bigint, $8, $9::jsonb, $10, $11, $12, $13::timestamptz, $14::timestamptz,
       $14::timestamptz, $15, $14::timestamptz)`,
    [
      ...[inside.orgId, draft.id, draft.provider, draft.accountId, draft.periodStart, periodEnd],
      ...[draft.recoverableCents, draft.tier, JSON.stringify(frozen.evidence), sha256Of(frozen), said.notes],
      ...[next?.action ?? null, next ? isoFromMicros(next.atMicros) : null, at, said.by],
    ],
  );
  await insertParts(inside, draft, frozen);
  await insertClaimEvent(inside, {
    ...{ claimId: draft.id, version: 1, commandId: `draft:${draft.id}`, from: null, to: 'draft' },
    ...{ atMicros, actor: said.by, fields: NO_FIELDS },
    ...{ nextAction: next?.action ?? null, nextActionAtMicros: next?.atMicros ?? null },
  });
  return woken(inside, draft.id);
}

/**
 * Makes another claim of a draft under the same id: of more disputes, netted and frozen anew. It stays as old as it is, and
 * its history says that it was made once more. The row is held; what it netted is free already.
 */
export async function replaceDraft(
  inside: OrgDb,
  before: StoredClaim,
  draft: DraftClaim,
  frozen: FrozenEvidence,
  by: string,
): Promise<StoredClaim> {
  const atMicros = await readTime(inside);
  const { periodStart, periodEnd } = draft;
  // Of what somebody was told of the draft as it was nobody is told again.
  const next = nextDeadline(
    { ...before, periodEnd, snoozedUntilMicros: null },
    await readBusinessDays(inside),
  );
  await inside.run('delete from claim_files where org_id = $1 and claim_id = $2::uuid', [
    inside.orgId,
    draft.id,
  ]);
  await inside.run(
    `update claims set version = version + 1, period_start = $3::date, period_end = $4::date, total_recoverable_cents = $5::bigint,
       confidence_tier = $6, evidence = $7::jsonb, evidence_sha256 = $8, evidence_stale_at = null, next_action = $9,
       next_action_at = $10::timestamptz, snoozed_until = null, updated_at = $11::timestamptz
     where org_id = $1 and id = $2::uuid and status = 'draft'`,
    [
      ...[inside.orgId, draft.id, periodStart, periodEnd, draft.recoverableCents, draft.tier],
      ...[JSON.stringify(frozen.evidence), sha256Of(frozen), next?.action ?? null],
      ...[next ? isoFromMicros(next.atMicros) : null, isoFromMicros(atMicros)],
    ],
  );
  await insertParts(inside, draft, frozen);
  const version = before.version + 1;
  await insertClaimEvent(inside, {
    ...{ claimId: draft.id, version, commandId: `draft:${draft.id}:${version}`, from: null, to: 'draft' },
    ...{ atMicros, actor: by, fields: NO_FIELDS },
    ...{ nextAction: next?.action ?? null, nextActionAtMicros: next?.atMicros ?? null },
  });
  return woken(inside, draft.id);
}

/** The claim as it is stored, with word to its workflow, which keeps its deadlines. */
async function woken(inside: OrgDb, id: string): Promise<StoredClaim> {
  await insertOutboxMessage(inside, 'claim.wake', id);
  const claim = await findClaim(inside, id);
  if (!claim) throw new Error('the claim was stored, so it is there');
  return claim;
}

/** Its disputes, what it nets, what the bill says of its days, and the files of its evidence. */
async function insertParts(inside: OrgDb, draft: DraftClaim, frozen: FrozenEvidence): Promise<void> {
  await inside.run('update disputes set claim_id = $2::uuid where org_id = $1 and id = any($3::uuid[])', [
    inside.orgId,
    draft.id,
    plainArray(draft.disputes.map(({ id }) => id)),
  ]);
  await inside.run(
    `insert into claim_undercharges (org_id, claim_id, finding_id, day, provider, provider_account_id, model, kind, variant, impact_usd)
     select $1::uuid, $2::uuid, t.finding_id, t.day, $3, $4, t.model, t.kind, t.variant, t.impact_usd
     from jsonb_to_recordset($5::jsonb) as t(finding_id uuid, day date, model text, kind text, variant text, impact_usd numeric)`,
    [
      ...[inside.orgId, draft.id, draft.provider, draft.accountId],
      JSON.stringify(
        draft.undercharges.map(({ findingId, day, model, kind, variant, impactPico }) => ({
          ...{ finding_id: findingId, day, model, kind, variant, impact_usd: decimalFromPico(impactPico) },
        })),
      ),
    ],
  );
  await recordBilledDays(inside, draft.id);
  for (const { name, mediaType, bytes } of frozen.files)
    await inside.run(
      `insert into claim_files (org_id, claim_id, name, media_type, bytes, sha256, content)
       values ($1, $2::uuid, $3, $4, $5, $6, $7)`,
      [
        ...[inside.orgId, draft.id, name, mediaType, bytes.length],
        ...[createHash('sha256').update(bytes).digest(), await compress(bytes)],
      ],
    );
}

const sha256Of = ({ sha256 }: FrozenEvidence): Buffer => Buffer.from(sha256, 'hex');

async function readTime(inside: OrgDb): Promise<bigint> {
  const [row] = await inside.rows<{ at: bigint }>('select clock_timestamp() as at');
  if (!row) throw new Error('a clock answers');
  return row.at;
}
