import { MONTH_REPORT } from '../../domain/billing/billedRow.js';
import { LATE_REPORTS } from '../../domain/billing/formats/cells.js';
import { BILLING_FORMATS, factsOfFormat } from '../../domain/billing/sources.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { OrgDb } from '../orgDb.js';
import { countedSourcesSql, lacksLateCharge } from './billingRows.js';

/** Where a copy of a bill came from. */
export type SourceKind = 'file' | 'api';

/** Two copies of a bill, of a day or of a whole month, that do not say the same. */
export interface SourceDifference {
  provider: string;
  accountId: string;
  /** The first day of the month where `span` is `month`. */
  day: string;
  /** `month`: an invoice that tells no day, beside what counts of the month's days. */
  span: 'day' | 'month';
  chargeCategory: string;
  /** Where days of several sources count, the one that was told last. */
  countedSourceId: string;
  countedKind: SourceKind;
  countedPico: Pico;
  otherSourceId: string;
  otherKind: SourceKind;
  otherPico: Pico;
}

interface SourceDifferenceRow {
  provider: string;
  account: string;
  day: string;
  span: 'day' | 'month';
  charge_category: string;
  counted_source: string;
  counted_kind: SourceKind;
  counted_usd: Pico;
  other_source: string;
  other_kind: SourceKind;
  other_usd: Pico;
}

/** Copies that differ by less than the rounding of their rows say the same; by a cent each they never do. */
const ROUNDING_MAX_USD = '0.01';
const roundingOf = (format: string, rows: string) =>
  `least(${ROUNDING_MAX_USD}, ${rows} * case ${format} ${BILLING_FORMATS.map(
    (name) => `when '${name}' then ${decimalFromPico(factsOfFormat(name).roundingPico)}`,
  ).join(' ')} else 0 end)`;

const PLACE = 'provider, provider_account_id, day, charge_category';
const WINDOW = `d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost'`;

/**
 * The copies of each day with what they say of it: a bill of one period together with what later bills have of its days.
 * A copy in a currency that nobody can convert says nothing that could be compared.
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

/**
 * Days on which a copy that does not count says another amount than the one of the same part of the account that counts,
 * and months of which an invoice says another amount than the days that count; the latest first. What a connection said
 * before it said otherwise is a restatement, not a difference.
 */
export async function listSourceDifferences(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string; limit: number },
): Promise<SourceDifference[]> {
  const rows = await orgDb.rows<SourceDifferenceRow>(
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
     select provider, provider_account_id as account, day, span, charge_category, counted_source, counted_kind, counted_usd, other_source, other_kind, other_usd
     from (select * from days union all select * from months) found
     order by day desc, provider, provider_account_id, charge_category, span, other_source limit $5`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay, window.limit],
  );
  return rows.map((row) => ({
    provider: row.provider,
    accountId: row.account,
    day: row.day,
    span: row.span,
    chargeCategory: row.charge_category,
    countedSourceId: row.counted_source,
    countedKind: row.counted_kind,
    countedPico: row.counted_usd,
    otherSourceId: row.other_source,
    otherKind: row.other_kind,
    otherPico: row.other_usd,
  }));
}
