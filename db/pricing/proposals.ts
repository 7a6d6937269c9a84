import { decimalFromPico, type Pico, picoFromDecimal } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { RateDifference } from '../../domain/pricing/imports/differences.js';
import type {
  CallTotals,
  ProposalEffect,
  ProposalStatus,
  ProposedPrice,
  ProposedTerms,
} from '../../domain/pricing/proposals.js';
import type { Biller } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { decimalOf, fromStoredTier, type StoredTier, tierJson } from './prices.js';

/** A proposed price as stored. */
export interface PriceProposal extends ProposedPrice, ProposalEffect {
  /** uuid */
  readonly id: string;
  readonly feed: string;
  readonly retrievedOn: string;
  /** End of the days of the effect. */
  readonly effectUntilMicros: bigint;
  readonly status: ProposalStatus;
  readonly reason: string | null;
  readonly overrideId: string | null;
  readonly createdAtMicros: bigint;
  readonly decidedAtMicros: bigint | null;
  readonly decidedBy: string | null;
}

export type NewPriceProposal = Omit<
  PriceProposal,
  'status' | 'reason' | 'overrideId' | 'createdAtMicros' | 'decidedAtMicros' | 'decidedBy'
>;

interface StoredRate {
  tier: string;
  rate_class: RateDifference['rateClass'];
  before: string | null;
  after: string;
}

interface StoredTerms {
  rates: Record<string, string>;
  tiers: StoredTier[];
  batch_multiplier: string | null;
}

type ProposalRow = Omit<PriceProposal, 'rates' | 'terms'> & { rates: StoredRate[]; terms: StoredTerms };

const SELECT = `
select id, feed, source, provider, model, kind, rates, terms, is_jump as "isJump", suspicions, retrieved_on as "retrievedOn",
  effect_until as "effectUntilMicros", calls, current_cost_usd as "currentPico", proposed_cost_usd as "proposedPico", status,
  reason, override_id as "overrideId", created_at as "createdAtMicros", decided_at as "decidedAtMicros", decided_by as "decidedBy"
from price_proposals`;

const picoOf = (decimal: string): Pico => picoFromDecimal(decimal) ?? 0n;

function fromProposalRow({ rates, terms, ...row }: ProposalRow): PriceProposal {
  return {
    ...row,
    rates: rates.map(({ tier, rate_class: rateClass, before, after }) => ({
      ...{ tier, rateClass },
      before: before === null ? null : picoOf(before),
      after: picoOf(after),
    })),
    terms: {
      rates: Object.fromEntries(Object.entries(terms.rates).map(([name, rate]) => [name, picoOf(rate)])),
      tiers: terms.tiers.map(fromStoredTier),
      batchMultiplier: terms.batch_multiplier === null ? null : picoOf(terms.batch_multiplier),
    },
  };
}

function termsJson({ rates, tiers, batchMultiplier }: ProposedTerms): StoredTerms {
  return {
    rates: Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, decimalFromPico(rate)])),
    tiers: tiers.map(tierJson),
    batch_multiplier: decimalOf(batchMultiplier),
  };
}

const RECORDS = `jsonb_to_recordset($3::jsonb) as n (id uuid, source text, provider text, model text, kind text, rates jsonb, terms jsonb,
  is_jump boolean, suspicions jsonb, retrieved_on date, effect_until timestamptz, calls bigint, current_cost_usd numeric, proposed_cost_usd numeric)`;

/**
 * Makes the open proposals of a feed equal to these, in a transaction: equal ones stay and get the new effect, others
 * are superseded. Terms that somebody dismissed, or that another feed proposes, are not proposed again. Returns the ids
 * of the new ones.
 */
export async function storeProposals(
  inside: OrgDb,
  feed: string,
  proposals: readonly NewPriceProposal[],
): Promise<Set<string>> {
  const rows = proposals.map((one) => ({
    id: one.id,
    source: one.source,
    provider: one.provider,
    model: one.model,
    kind: one.kind,
    rates: one.rates.map(({ tier, rateClass, before, after }) => ({
      ...{ tier, rate_class: rateClass },
      before: decimalOf(before),
      after: decimalFromPico(after),
    })),
    terms: termsJson(one.terms),
    is_jump: one.isJump,
    suspicions: one.suspicions,
    retrieved_on: one.retrievedOn,
    effect_until: isoFromMicros(one.effectUntilMicros),
    calls: one.calls,
    current_cost_usd: decimalOf(one.currentPico),
    proposed_cost_usd: decimalOf(one.proposedPico),
  }));
  const values = [inside.orgId, feed, JSON.stringify(rows)];
  await inside.run(
    `update price_proposals p set effect_until = n.effect_until, calls = n.calls, current_cost_usd = n.current_cost_usd,
       proposed_cost_usd = n.proposed_cost_usd, rates = n.rates, retrieved_on = n.retrieved_on
     from ${RECORDS}
     where p.org_id = $1 and p.feed = $2 and p.status = 'open' and p.provider = n.provider and p.model = n.model and p.terms = n.terms`,
    values,
  );
  await inside.run(
    `update price_proposals p set status = 'superseded', decided_at = now()
     where p.org_id = $1 and p.feed = $2 and p.status = 'open' and not exists (
       select from ${RECORDS} where p.provider = n.provider and p.model = n.model and p.terms = n.terms)`,
    values,
  );
  const stored = await inside.rows<{ id: string }>(
    `insert into price_proposals (org_id, feed, id, source, provider, model, kind, rates, terms, is_jump, suspicions, retrieved_on,
       effect_until, calls, current_cost_usd, proposed_cost_usd)
     select $1::uuid, $2::text, n.* from ${RECORDS}
     where not exists (
       select from price_proposals p where p.org_id = $1 and p.provider = n.provider and p.model = n.model and p.terms = n.terms
         and p.status in ('open', 'dismissed'))
     on conflict do nothing returning id`,
    values,
  );
  return new Set(stored.map(({ id }) => id));
}

export interface ProposalFilter {
  status: ProposalStatus | undefined;
  provider: string | undefined;
  model: string | undefined;
}

/** Open ones first, then the latest; among those of one run the largest change of cost. */
export async function listProposals(
  orgDb: OrgDb,
  { status, provider, model }: ProposalFilter,
  page: { limit: number; offset: number },
): Promise<PriceProposal[]> {
  const rows = await orgDb.rows<ProposalRow>(
    `${SELECT} where org_id = $1 and ($2::text is null or status = $2) and ($3::text is null or provider = $3)
       and ($4::text is null or model = $4)
     order by (status = 'open') desc, created_at desc, abs(proposed_cost_usd - current_cost_usd) desc nulls last, calls desc, id
     limit $5 offset $6`,
    [orgDb.orgId, status ?? null, provider ?? null, model ?? null, page.limit, page.offset],
  );
  return rows.map(fromProposalRow);
}

export async function countOpenProposals(orgDb: OrgDb): Promise<number> {
  const [row] = await orgDb.rows<{ open: number }>(
    `select count(*)::int as open from price_proposals where org_id = $1 and status = 'open'`,
    [orgDb.orgId],
  );
  return row?.open ?? 0;
}

/** Locks a proposal until the transaction ends. */
export async function lockProposal(inside: OrgDb, id: string): Promise<PriceProposal | undefined> {
  const [row] = await inside.rows<ProposalRow>(`${SELECT} where org_id = $1 and id = $2 for update`, [
    inside.orgId,
    id,
  ]);
  return row && fromProposalRow(row);
}

export type ProposalDecision =
  | { status: 'applied'; overrideId: string; by: string }
  | { status: 'dismissed'; reason: string | null; by: string };

/** Records a decision on a proposal that the caller has locked. */
export async function decideProposal(
  inside: OrgDb,
  id: string,
  decision: ProposalDecision,
): Promise<PriceProposal | undefined> {
  await inside.run(
    `update price_proposals set status = $3, decided_by = $4, decided_at = now(), reason = $5, override_id = $6
     where org_id = $1 and id = $2 and status = 'open'`,
    [
      inside.orgId,
      id,
      decision.status,
      decision.by,
      decision.status === 'dismissed' ? decision.reason : null,
      decision.status === 'applied' ? decision.overrideId : null,
    ],
  );
  return lockProposal(inside, id);
}

interface TotalsRow {
  billedBy: Biller;
  model: string;
  requestedModel: string;
  serviceTier: string | null;
  isBatch: boolean;
  band: number;
  calls: number;
  input: bigint;
  cacheRead: bigint;
  cacheWrite5m: bigint;
  cacheWrite1h: bigint;
  output: bigint;
  inputAudio: bigint;
  outputAudio: bigint;
}

/**
 * The metered calls of a half-open window by the facts that decide their rates. Reads the calls themselves: totals are
 * kept by the boundaries of the prices at their time, and a proposal may have others.
 */
export async function listCallTotals(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
  boundaries: readonly number[],
): Promise<CallTotals[]> {
  const rows = await orgDb.rows<TotalsRow>(
    `select billed_by as "billedBy", coalesce(response_model, model) as model, model as "requestedModel",
       service_tier as "serviceTier", is_batch as "isBatch",
       width_bucket(input_tokens + cache_read + cache_creation, $4::bigint[])::int as band, count(*)::int as calls,
       sum(input_tokens - input_audio)::text as input, sum(cache_read)::text as "cacheRead",
       sum(cache_creation - least(coalesce(cache_creation_1h, 0), cache_creation))::text as "cacheWrite5m",
       sum(least(coalesce(cache_creation_1h, 0), cache_creation))::text as "cacheWrite1h",
       sum(output_tokens - output_audio)::text as output, sum(input_audio)::text as "inputAudio",
       sum(output_audio)::text as "outputAudio"
     from events
     where org_id = $1 and timestamp >= $2 and timestamp < $3 and superseded_by is null and status <> 'blocked' and not unmetered
     group by 1, 2, 3, 4, 5, 6`,
    [
      orgDb.orgId,
      isoFromMicros(window.fromMicros),
      isoFromMicros(window.toMicros),
      // A boundary itself has the lower rates; the array must not be empty.
      `{${[0, ...boundaries].map((tokens) => tokens + 1).join(',')}}`,
    ],
  );
  return rows.map(({ band, ...row }) => ({
    billedBy: row.billedBy,
    model: row.model,
    requestedModel: row.requestedModel,
    serviceTier: row.serviceTier,
    isBatch: row.isBatch,
    calls: row.calls,
    aboveTokens: band <= 1 ? 0 : (boundaries[band - 2] ?? 0),
    tokens: {
      input: BigInt(row.input),
      cache_read: BigInt(row.cacheRead),
      cache_write_5m: BigInt(row.cacheWrite5m),
      cache_write_1h: BigInt(row.cacheWrite1h),
      output: BigInt(row.output),
      input_audio: BigInt(row.inputAudio),
      output_audio: BigInt(row.outputAudio),
    },
  }));
}
