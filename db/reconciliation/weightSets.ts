import type { DisputeTier } from '../../domain/claims/financialSummary.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Grade, Visibility, WaterfallStep } from '../../domain/reconciliation/matching/cells.js';
import { type FindingKind, VIOLATION_KINDS } from '../../domain/reconciliation/taxonomy.js';
import { type LearnedWeights, learnedSet } from '../../domain/reconciliation/weights/learn.js';
import type { Outcome } from '../../domain/reconciliation/weights/outcome.js';
import { DEFAULT_WEIGHTS, type WeightSet } from '../../domain/reconciliation/weights/weightSet.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray } from '../pgArray.js';

/** A draft whose tier a recomputation changed. */
export interface RescoredDraft {
  claimId: string;
  from: DisputeTier;
  to: DisputeTier;
  /** Its present probability is below LOW, for which no tier exists. */
  belowLow: boolean;
}

export interface StoredWeightSet {
  version: number;
  learned: LearnedWeights;
  rescored: RescoredDraft[];
  madeAtMicros: bigint;
}

export async function findWeightSet(orgDb: OrgDb): Promise<StoredWeightSet | undefined> {
  const rows = await orgDb.rows<{
    version: number;
    learned: LearnedWeights;
    rescored: { claim_id: string; from: DisputeTier; to: DisputeTier; below_low: boolean }[];
    made_at: bigint;
  }>(
    `select version, learned, rescored, made_at from weight_sets where org_id = $1 order by version desc limit 1`,
    [orgDb.orgId],
    'weight_set',
  );
  const [row] = rows;
  return (
    row && {
      version: row.version,
      learned: row.learned,
      rescored: row.rescored.map((one) => ({
        claimId: one.claim_id,
        from: one.from,
        to: one.to,
        belowLow: one.below_low,
      })),
      madeAtMicros: row.made_at,
    }
  );
}

/** The weight set of the organization's runs: its newest one, or the default before any outcome. */
export async function currentWeights(orgDb: OrgDb): Promise<WeightSet> {
  const stored = await findWeightSet(orgDb);
  return stored ? learnedSet(DEFAULT_WEIGHTS, stored.learned, stored.version) : DEFAULT_WEIGHTS;
}

/** Stores a new version; the table refuses a second one with the same number. */
export async function insertWeightSet(inside: OrgDb, set: StoredWeightSet): Promise<void> {
  const rescored = set.rescored.map((one) => ({
    claim_id: one.claimId,
    from: one.from,
    to: one.to,
    below_low: one.belowLow,
  }));
  await inside.run(
    `insert into weight_sets (org_id, version, base, learned, outcomes, rescored, made_at)
     values ($1, $2, $3, $4::jsonb, $5, $6::jsonb, $7::timestamptz)`,
    [
      ...[inside.orgId, set.version, set.learned.base, JSON.stringify(set.learned), set.learned.outcomes],
      ...[JSON.stringify(rescored), isoFromMicros(set.madeAtMicros)],
    ],
  );
}

/** The outcomes of the organization's claims, kind by kind, newest first; all of them unless a page is requested. */
export async function listOutcomes(
  orgDb: OrgDb,
  page: { limit: number | null; offset: number } = { limit: null, offset: 0 },
): Promise<Outcome[]> {
  const rows = await orgDb.rows<Omit<Outcome, 'claimedCents'> & { claimedCents: number }>(
    `select k.claim_id as "claimId", k.claimed_type as "claimedType", k.provider, o.status, o.violation_type as "violationType",
       k.claimed_cents as "claimedCents", k.fraction::double precision as fraction, k.levels,
       k.raw_probability as "rawProbability", k.at as "atMicros"
     from claim_outcome_kinds k join claim_outcomes o on o.org_id = $1 and o.claim_id = k.claim_id
     where k.org_id = $1 and k.claimed_type = any($2::text[])
     order by k.at desc, k.claim_id, k.claimed_type limit $3 offset $4`,
    [orgDb.orgId, LEARNED_KINDS, page.limit, page.offset],
  );
  return rows.map((row) => ({ ...row, claimedCents: BigInt(row.claimedCents) }));
}

/** The number of outcomes, and the time of the newest; null: there are none. */
export async function sumOutcomes(orgDb: OrgDb): Promise<{ count: number; newestMicros: bigint | null }> {
  const rows = await orgDb.rows<{ count: number; newest: bigint | null }>(
    `select count(*)::int as count, max(at) as newest from claim_outcome_kinds
     where org_id = $1 and claimed_type = any($2::text[])`,
    [orgDb.orgId, LEARNED_KINDS],
  );
  return { count: rows[0]?.count ?? 0, newestMicros: rows[0]?.newest ?? null };
}

/** Organizations whose newest set misses outcomes or rests on another default, without a pending message. */
export async function listUnlearnedOrganizations(database: Database, seconds: number): Promise<string[]> {
  const rows = await unscoped(
    database,
    'the sweeper looks for outcomes of every organization that nobody learned from',
    (system) =>
      system.rows<{ org_id: string }>(
        `select k.org_id from (
           select org_id, count(*) as outcomes, max(at) as newest from claim_outcome_kinds
           where claimed_type = any($1::text[]) group by org_id) k
         left join lateral (
           select outcomes, base from weight_sets w where w.org_id = k.org_id order by version desc limit 1) w on true
         where k.newest < now() - make_interval(secs => $2)
           and (w.outcomes is distinct from k.outcomes or w.base is distinct from $3)
           and not exists (select from outbox o where o.org_id = k.org_id and o.kind = 'weights.recompute'
             and o.dispatched_at is null and o.dead_at is null)
         order by k.org_id limit 1000`,
        [LEARNED_KINDS, seconds, DEFAULT_WEIGHTS.version],
      ),
  );
  return rows.map((row) => row.org_id);
}

/** Unexplained dollars have no detector with weights, so they are excluded. */
const LEARNED_KINDS = plainArray(VIOLATION_KINDS);

/** Inputs of a dispute's tier; null: the dispute was opened without it. */
interface RatedDispute {
  kind: FindingKind;
  provider: string;
  disputeTier: DisputeTier;
  grade: Grade | null;
  probability: number | null;
  missing: readonly string[];
  visibility: Visibility | null;
  waterfall: readonly WaterfallStep[];
}

interface DraftedDispute extends RatedDispute {
  claimId: string;
  claimTier: DisputeTier;
}

const RATED = `d.kind, d.provider, d.confidence_tier as "disputeTier", d.evidence ->> 'grade' as grade,
  (d.evidence ->> 'probability')::double precision as probability, coalesce(nullif(d.evidence -> 'missing_gates', 'null'), '[]') as missing,
  d.evidence ->> 'visibility' as visibility, coalesce(nullif(d.evidence -> 'waterfall', 'null'), '[]') as waterfall`;

export async function listRatedDisputes(orgDb: OrgDb, ids: readonly string[]): Promise<RatedDispute[]> {
  return orgDb.rows<RatedDispute>(
    `select ${RATED} from disputes d where d.org_id = $1 and d.id = any($2::uuid[]) order by d.id`,
    [orgDb.orgId, plainArray(ids)],
  );
}

/** The disputes of every draft, draft by draft; filed claims are excluded. */
export async function listDraftedDisputes(orgDb: OrgDb): Promise<DraftedDispute[]> {
  return orgDb.rows<DraftedDispute>(
    `select c.id as "claimId", c.confidence_tier as "claimTier", ${RATED}
     from claims c join disputes d on d.org_id = $1 and d.claim_id = c.id
     where c.org_id = $1 and c.status = 'draft' order by c.id, d.id`,
    [orgDb.orgId],
  );
}

/** Changes a draft's tier; false: it was filed or discarded meanwhile. */
export async function rescoreDraft(inside: OrgDb, claimId: string, tier: DisputeTier): Promise<boolean> {
  const rows = await inside.rows<{ id: string }>(
    `update claims set confidence_tier = $3, updated_at = now()
     where org_id = $1 and id = $2::uuid and status = 'draft' returning id`,
    [inside.orgId, claimId, tier],
  );
  return rows.length > 0;
}
