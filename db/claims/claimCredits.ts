import { MONTH_REPORT } from '../../domain/billing/billedRow.js';
import type { CreditRow } from '../../domain/claims/matchCredits.js';
import type { Pico } from '../../domain/money.js';
import { countedRowsSql, countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';

/** A filed claim as the search for credits needs it. */
export interface WatchedClaim {
  id: string;
  accountId: string;
  submittedAtMicros: bigint;
  periodStart: string;
  periodEnd: string;
  recoverableCents: number;
  externalTicketId: string | null;
  /** For a claim that a person recorded as credited; null: it is open. */
  creditedCents: number | null;
}

/** Days after a claim's end in which the credit that a person recorded may still appear on a bill. */
const AWAITED_DAYS = 400;

/** Providers with claims that wait for credits, and the time when the first of these was filed. */
export async function listWatchedProviders(
  orgDb: OrgDb,
  provider: string | null,
): Promise<{ provider: string; filedFromMicros: bigint }[]> {
  return orgDb.rows(
    `select c.provider, min(c.submitted_at) as "filedFromMicros" from claims c
     where ${WATCHED} and ($2::text is null or c.provider = $2) group by 1 order by 1`,
    [orgDb.orgId, provider],
  );
}

const WATCHED = `c.org_id = $1 and (c.resolved_at is null and c.status <> 'draft'
  or c.status in ('credit_issued', 'partial') and c.resolved_at > now() - interval '${AWAITED_DAYS} days')`;

/** Locks the watched claims of a provider; a move also locks its claim before it decides on credits. */
export async function lockWatchedClaims(orgDb: OrgDb, provider: string): Promise<WatchedClaim[]> {
  return orgDb.rows<WatchedClaim>(
    `select c.id, c.provider_account_id as "accountId", c.submitted_at as "submittedAtMicros", c.period_start as "periodStart",
       c.period_end as "periodEnd", c.total_recoverable_cents as "recoverableCents", c.external_ticket_id as "externalTicketId",
       case when c.resolved_at is not null then c.credit_issued_cents end as "creditedCents"
     from claims c where ${WATCHED} and c.provider = $2 order by c.id for update`,
    [orgDb.orgId, provider],
  );
}

/** Rows of counted bills that return money from a day on. `key` is the same in every copy of the bill. */
export async function listCreditRows(
  orgDb: OrgDb,
  of: { provider: string; fromDay: string },
): Promise<CreditRow[]> {
  return orgDb.rows<CreditRow>(
    `with counted as (${countedSourcesSql(
      `d.org_id = $1 and d.provider = $2 and d.feed = 'cost' and d.charge_category in ('credit', 'refund', 'adjustment', 'usage')
       and d.day >= (case when d.report = '${MONTH_REPORT}' then date_trunc('month', $3::date)::date else $3::date end)`,
    )})
     select 'row:' || md5(jsonb_build_array($2::text, r.provider_account_id, r.day, trim_scale(r.amount_usd))::text) || ':' || row_number() over (
         partition by r.provider_account_id, r.day, r.amount_usd order by r.charge_category, r.line_item, r.source_id, r.row_no) as key,
       r.provider_account_id as "accountId", r.day, r.period_end as "endMicros", -r.amount_usd as "amountPico",
       r.line_item as description, r.charge_category = 'usage' as "isUsage"
     from ${countedRowsSql('amount_usd < 0')} r order by 3, 1`,
    [orgDb.orgId, of.provider, of.fromDay],
  );
}

/** Days of a filed claim whose bill has changed since its evidence was frozen. */
export interface RestatedClaim {
  claimId: string;
  /** Number of days of a series. */
  days: number;
  firstDay: string;
  lastDay: string;
  /** The decrease of the billed amount; for each day at most the amount claimed for it. */
  fallPico: Pico;
}

/** The provider's filed open claims with such days, according to the published results of runs. */
export async function listRestatedClaims(orgDb: OrgDb, provider: string): Promise<RestatedClaim[]> {
  return orgDb.rows<RestatedClaim>(
    `with told as (
       select c.id, c.provider_account_id as account, t.model, t.day, t.usd
       from claims c cross join lateral jsonb_to_recordset(c.billed_days) as t(model text, day date, usd numeric)
       where c.org_id = $1 and c.provider = $2 and c.resolved_at is null and c.status <> 'draft'),
     changed as (
       select told.id, told.account, told.model, told.day, told.usd - coalesce(b.usd, 0) as fall
       from told join gap_published p on p.org_id = $1 and p.provider = $2 and p.provider_account_id = told.account and p.day = told.day
       left join lateral (select sum(provider_cost_usd) as usd from gap_buckets g
         where g.org_id = $1 and g.run_id = p.run_id and g.provider = $2 and g.provider_account_id = told.account
           and g.width = 'day' and g.bucket = told.day::timestamptz and g.model = told.model) b on true
       where told.usd <> coalesce(b.usd, 0)),
     asked as (
       select p.claim_id as id, d.model, d.day, sum(d.impact_usd) as usd
       from disputes p join dispute_days d on d.org_id = $1 and d.dispute_id = p.id
       where p.org_id = $1 and p.claim_id in (select id from changed) group by 1, 2, 3),
     -- What is less than several claims ask for of one day is nobody's for certain.
     shared as (
       select c.*, coalesce(a.usd, 0) as asked, sum(coalesce(a.usd, 0)) over same_day as asked_by_all, count(*) over same_day as claims
       from changed c left join asked a using (id, model, day) window same_day as (partition by c.account, c.model, c.day))
     select id as "claimId", count(*)::bigint as days, min(day) as "firstDay", max(day) as "lastDay",
       sum(case when claims = 1 or asked_by_all <= fall then greatest(0, least(fall, asked)) else 0 end) as "fallPico"
     from shared group by id order by id`,
    [orgDb.orgId, provider],
  );
}

/** Stores with a draft the present bill of its series' days, in the transaction that freezes its evidence. */
export async function recordBilledDays(inside: OrgDb, claimId: string): Promise<void> {
  await inside.run(
    `update claims c set billed_days = coalesce((
       select jsonb_agg(jsonb_build_object('model', s.model, 'day', s.day, 'usd', b.usd::text) order by s.day, s.model)
       from (select distinct d.provider, d.provider_account_id, d.model, d.day from disputes p
           join dispute_days d on d.org_id = $1 and d.dispute_id = p.id where p.org_id = $1 and p.claim_id = $2::uuid) s
       join gap_published p on p.org_id = $1 and p.provider = s.provider and p.provider_account_id = s.provider_account_id and p.day = s.day
       cross join lateral (select sum(provider_cost_usd) as usd from gap_buckets g
         where g.org_id = $1 and g.run_id = p.run_id and g.provider = s.provider and g.provider_account_id = s.provider_account_id
           and g.width = 'day' and g.bucket = s.day::timestamptz and g.model = s.model) b
       where b.usd is not null), '[]'::jsonb)
     where c.org_id = $1 and c.id = $2::uuid and c.status = 'draft'`,
    [inside.orgId, claimId],
  );
}

/** Marks a claim's evidence as different from the present bill; the time of the first mark stays. */
export async function markEvidenceStale(inside: OrgDb, claimId: string): Promise<void> {
  await inside.run(
    'update claims set evidence_stale_at = now() where org_id = $1 and id = $2::uuid and evidence_stale_at is null',
    [inside.orgId, claimId],
  );
}
