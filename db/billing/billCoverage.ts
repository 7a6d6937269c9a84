import { MONTH_REPORT } from '../../domain/billing/billedRow.js';
import { LATE_REPORTS } from '../../domain/billing/formats/tableFormat.js';
import {
  BILLING_FORMATS,
  type BillingFormat,
  factsOfFormat,
  provisionalDaysOf,
} from '../../domain/billing/sources.js';
import { allotCredit, type ClaimedMonth } from '../../domain/claims/financialSummary.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { AskedBack } from '../../domain/reconciliation/statement/statement.js';
import type { CountedCopy } from '../../domain/reconciliation/statement/statementFigures.js';
import type { OrgDb } from '../orgDb.js';
import { countedSourcesSql, lacksLateCharge } from './billingRows.js';

type CountedCopyRow = Omit<CountedCopy, 'provisionalDays' | 'closesWithMonth'> & {
  format: BillingFormat;
  isFinal: boolean;
};

/** Sources that count for each account's day: a file is one source, all syncs of a connection are one. */
export async function listCountedCopies(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<CountedCopy[]> {
  const rows = await orgDb.rows<CountedCopyRow>(
    `select c.provider, c.provider_account_id as "accountId", c.day, s.kind, coalesce(s.connection_id, s.id) as "sourceId",
       coalesce(n.name, s.filename) as name, s.format, bool_and(coalesce(c.is_final, false)) as "isFinal", min(c.told_at) as "toldAtMicros"
     from (${countedSourcesSql(
       `d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost'`,
     )}) c
     cross join lateral (select * from billing_sources where org_id = $1 and id = c.source_id offset 0) s
     left join lateral (select name from billing_connections where org_id = $1 and id = s.connection_id offset 0) n on true
     group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2, 3, 5`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
  return rows.map(({ format, isFinal, ...copy }) => ({
    ...copy,
    provisionalDays: provisionalDaysOf([format], isFinal, copy.day),
    closesWithMonth: !isFinal && factsOfFormat(format).restatable.of === 'month',
  }));
}

export async function listBilledAccountNames(
  orgDb: OrgDb,
  window: { fromDay: string; toDay: string },
): Promise<{ provider: string; accountId: string }[]> {
  return orgDb.rows<{ provider: string; accountId: string }>(
    `select distinct provider, provider_account_id as "accountId" from billing_days
     where org_id = $1 and feed = 'cost' and day >= $2 and day < $3 order by 1, 2`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
}

export async function findBilledSpan(
  orgDb: OrgDb,
  provider: string,
): Promise<{ firstDay: string; lastDay: string } | undefined> {
  const [span] = await orgDb.rows<{ firstDay: string; lastDay: string }>(
    `select min(day) as "firstDay", max(day) as "lastDay" from billing_days
     where org_id = $1 and provider = $2 and feed = 'cost' having count(*) > 0`,
    [orgDb.orgId, provider],
  );
  return span;
}

/**
 * Disputed and credited amounts of a month (`YYYY-MM`) by account; a credit is spread over months in proportion to the
 * claim.
 */
export async function listAskedBack(orgDb: OrgDb, month: string): Promise<AskedBack[]> {
  const asked = new Map<string, AskedBack>();
  const of = (provider: string, accountId: string): AskedBack => {
    const key = JSON.stringify([provider, accountId]);
    const known = asked.get(key) ?? { provider, accountId, disputedPico: 0n, creditedPico: 0n };
    asked.set(key, known);
    return known;
  };
  for (const row of await listDisputed(orgDb, month))
    of(row.provider, row.accountId).disputedPico += row.impactPico;
  const claims = new Map<string, { claim: CreditedMonth; months: ClaimedMonth[] }>();
  for (const row of await listCredited(orgDb, month)) {
    const known = claims.get(row.claimId) ?? { claim: row, months: [] };
    known.months.push({ month: row.month, impactPico: row.impactPico });
    claims.set(row.claimId, known);
  }
  for (const { claim, months } of claims.values())
    of(claim.provider, claim.accountId).creditedPico +=
      allotCredit(claim.creditCents, months).get(month) ?? 0n;
  return [...asked.values()].sort((a, b) =>
    a.provider === b.provider ? (a.accountId < b.accountId ? -1 : 1) : a.provider < b.provider ? -1 : 1,
  );
}

interface DisputedSum {
  provider: string;
  accountId: string;
  impactPico: Pico;
}

const IN_MONTH = `d.day >= ($2 || '-01')::date and d.day < (($2 || '-01')::date + interval '1 month')::date`;

async function listDisputed(orgDb: OrgDb, month: string): Promise<DisputedSum[]> {
  return orgDb.rows<DisputedSum>(
    `select d.provider, d.provider_account_id as "accountId", sum(d.impact_usd) as "impactPico"
     from dispute_days d where d.org_id = $1 and d.live and ${IN_MONTH}
     group by d.provider, d.provider_account_id`,
    [orgDb.orgId, month],
  );
}

interface CreditedMonth extends DisputedSum {
  claimId: string;
  creditCents: number;
  month: string;
}

/** Credited claims with a day in the month, with all their months. */
async function listCredited(orgDb: OrgDb, month: string): Promise<CreditedMonth[]> {
  return orgDb.rows<CreditedMonth>(
    `with credited as (
       select distinct c.id, c.provider, c.provider_account_id, c.credit_issued_cents
       from claims c join disputes p on p.org_id = $1 and p.claim_id = c.id
       join dispute_days d on d.org_id = $1 and d.dispute_id = p.id
       where c.org_id = $1 and c.status in ('credit_issued', 'partial') and ${IN_MONTH})
     select c.id as "claimId", c.provider, c.provider_account_id as "accountId", c.credit_issued_cents as "creditCents",
       to_char(d.day, 'YYYY-MM') as month, sum(d.impact_usd) as "impactPico"
     from credited c join disputes p on p.org_id = $1 and p.claim_id = c.id
     join dispute_days d on d.org_id = $1 and d.dispute_id = p.id
     group by c.id, c.provider, c.provider_account_id, c.credit_issued_cents, to_char(d.day, 'YYYY-MM')
     order by c.id, month`,
    [orgDb.orgId, month],
  );
}

type SourceKind = 'file' | 'api';

/** Two copies of the same billed day or month that differ. */
export interface SourceDifference {
  provider: string;
  accountId: string;
  /** The first day of the month where `span` is `month`. */
  day: string;
  /** `month`: an invoice without days, compared with the counted sum of the month's days. */
  span: 'day' | 'month';
  chargeCategory: string;
  /** The latest source, where days of several sources count. */
  countedSourceId: string;
  countedKind: SourceKind;
  countedPico: Pico;
  otherSourceId: string;
  otherKind: SourceKind;
  otherPico: Pico;
}

/**
 * Copies whose difference is within the rounding of their rows count as equal; a difference of a cent always counts.
 */
const ROUNDING_MAX_USD = '0.01';
const roundingOf = (format: string, rows: string) =>
  `least(${ROUNDING_MAX_USD}, ${rows} * case ${format} ${BILLING_FORMATS.map(
    (name) => `when '${name}' then ${decimalFromPico(factsOfFormat(name).roundingPico)}`,
  ).join(' ')} else 0 end)`;

const PLACE = 'provider, provider_account_id, day, charge_category';
const WINDOW = `d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost'`;

/**
 * The copies of each day, each with the day's later charges. Copies in a currency without an exchange rate are
 * excluded.
 */
const TOLD_SQL = `
late as (select provider, provider_account_id, day, charge_category from billing_days d
  where ${WINDOW} and superseded_at is null and report like '${LATE_REPORTS}'),
told as (select o.provider, o.provider_account_id, o.day, o.charge_category, o.report, o.scope, o.source_id, s.kind, s.format,
    coalesce(o.confirmed_at, o.source_fetched_at) as told_at, o.amount_usd + l.amount_usd as amount_usd,
    ${roundingOf('s.format', '(o.row_count + l.row_count)')} as rounding
  from (select d.* from billing_days d where ${WINDOW} and superseded_at is null and unconverted_rows = 0) o
  cross join lateral (select kind, format from billing_sources where org_id = $1 and id = o.source_id offset 0) s
  cross join lateral (select coalesce(sum(amount_usd), 0) as amount_usd, coalesce(sum(row_count), 0) as row_count
    from (select distinct on (report) report, unconverted_rows, amount_usd, row_count from billing_days
      where org_id = $1 and provider = o.provider and day = o.day and provider_account_id = o.provider_account_id and feed = 'cost'
        and report like '${LATE_REPORTS}' and charge_category = o.charge_category and superseded_at is null
        and o.report = '' and coalesce((o.provider, o.provider_account_id, o.day, o.charge_category) in (select * from late), false)
      order by report, source_rank desc, coalesce(confirmed_at, source_fetched_at) desc, source_id desc) late
    where unconverted_rows = 0 and ${lacksLateCharge('o', 's.format', 'late.report')}) l)`;

/** Days and months where another copy states another amount than the counting one, latest first. */
export async function listSourceDifferences(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string; limit: number },
): Promise<SourceDifference[]> {
  return orgDb.rows<SourceDifference>(
    `with counted as (${countedSourcesSql(WINDOW)}), ${TOLD_SQL},
     -- Beside each copy of a part of the account's day the one of them that counts: in one pass, however many there are.
     copies as (select told.*, (${PLACE}, report, scope, source_id) in (select ${PLACE}, report, scope, source_id from counted) as counts from told offset 0),
     compared as (select copies.*, ${['source_id::text', 'kind', 'amount_usd', 'rounding']
       .map(
         (column) =>
           `max(${column}) filter (where counts) over same_part as counted_${column.replace('::text', '')}`,
       )
       .join(', ')}
       from copies window same_part as (partition by ${PLACE}, report, scope)),
     days as (select ${PLACE}, 'day' as span, counted_source_id::uuid as counted_source, counted_kind, counted_amount_usd as counted_usd,
         source_id as other_source, kind as other_kind, amount_usd as other_usd
       from compared where not counts and abs(amount_usd - counted_amount_usd) > rounding + counted_rounding),
     months as (select o.${PLACE.replaceAll(', ', ', o.')}, 'month' as span, (array_agg(c.source_id order by c.told_at desc, c.source_id))[1] as counted_source,
         (array_agg(s.kind order by c.told_at desc, c.source_id))[1] as counted_kind, sum(c.amount_usd) as counted_usd,
         o.source_id as other_source, o.kind as other_kind, o.amount_usd as other_usd
       from told o join counted c on c.provider = o.provider and c.provider_account_id = o.provider_account_id
         and c.charge_category = o.charge_category and c.report <> '${MONTH_REPORT}' and c.day >= o.day and c.day < o.day + interval '1 month'
       cross join lateral (select kind, format from billing_sources where org_id = $1 and id = c.source_id offset 0) s
       where o.report = '${MONTH_REPORT}'
       group by o.${PLACE.replaceAll(', ', ', o.')}, o.source_id, o.kind, o.amount_usd, o.rounding
       having sum(c.unconverted_rows) = 0
         and abs(sum(c.amount_usd) - o.amount_usd) > o.rounding + least(${ROUNDING_MAX_USD}, sum(${roundingOf('s.format', 'c.row_count')})))
     select provider, provider_account_id as "accountId", day, span, charge_category as "chargeCategory",
       counted_source as "countedSourceId", counted_kind as "countedKind", counted_usd as "countedPico",
       other_source as "otherSourceId", other_kind as "otherKind", other_usd as "otherPico"
     from (select * from days union all select * from months) found
     order by day desc, provider, provider_account_id, charge_category, span, other_source limit $5`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay, window.limit],
  );
}
