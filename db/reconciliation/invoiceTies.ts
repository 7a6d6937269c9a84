import { nextMonth } from '../../domain/billing/periods/month.js';
import { shiftDay } from '../../domain/period.js';
import { countedSourcesSql } from '../billing/billingRows.js';
import { listComparedInvoices } from '../invoices/comparedInvoices.js';
import type { OrgDb } from '../orgDb.js';
import type { AccountName } from './explanationRuns.js';

/** How an invoice of a month, or another copy of the month's whole bill, compares with the bill that counts. */
export type InvoiceTie = 'exact' | 'close' | 'contradicts';

export interface AccountTie extends AccountName {
  /** `YYYY-MM` */
  month: string;
  tie: InvoiceTie;
}

/** Two totals that differ by less than this share are close: rounding of many lines. */
const CLOSE_SHARE = 0.001;

/** Whole months of a half-open window that uploaded invoices charge for, and how these tie; the last issued counts. */
export async function listUploadedTies(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<AccountTie[]> {
  const invoices = await listComparedInvoices(orgDb, window);
  return invoices.flatMap(({ provider, accountId, fromDay, toDay, tie }) =>
    tie !== 'not_comparable' && fromDay.endsWith('-01') && toDay === shiftDay(nextMonth(fromDay), -1)
      ? [{ provider, accountId, month: fromDay.slice(0, 7), tie }]
      : [],
  );
}

/**
 * Months of a half-open window of days of which another copy of the account's whole bill is there, beside the one that
 * counts (an export of the closed month, say), and whether the two come to the same amount, to the cent. Of several other
 * copies the one that would count first is asked. Months that either does not cover day by day are left out.
 */
export async function listInvoiceTies(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<AccountTie[]> {
  const days = `d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost' and d.charge_category = 'usage'`;
  return orgDb.rows<AccountTie>(
    `with counted as materialized (${countedSourcesSql(days)}),
     months as (select provider, provider_account_id as account, date_trunc('month', day)::date as month,
         sum(amount_usd) as amount, count(distinct day) as days from counted group by 1, 2, 3),
     others as (select d.provider, d.provider_account_id as account, date_trunc('month', d.day)::date as month, d.source_id,
         max(d.source_rank) as rank, max(d.source_fetched_at) as fetched_at, sum(d.amount_usd) as amount, count(distinct d.day) as days
       from billing_days d where ${days} and d.superseded_at is null and d.scope = ''
         and (d.provider, d.provider_account_id, d.day, d.source_id) not in (select provider, provider_account_id, day, source_id from counted)
       group by 1, 2, 3, 4),
     whole as (select m.provider, m.account, m.month, m.amount, o.amount as other, row_number() over (
         partition by m.provider, m.account, m.month order by o.rank desc, o.fetched_at desc, o.source_id desc) as place
       from months m join others o using (provider, account, month)
       where m.days = o.days and m.days = date_part('days', m.month + interval '1 month' - interval '1 day'))
     select provider, account as "accountId", to_char(month, 'YYYY-MM') as month,
       case when round(amount, 2) = round(other, 2) then 'exact'
         when abs(amount - other) <= ${CLOSE_SHARE} * greatest(abs(amount), abs(other)) then 'close' else 'contradicts' end as tie
     from whole where place = 1 order by 1, 2, 3`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}
