import { type BilledClass, type ChargeCategory, MONTH_REPORT } from '../../domain/billing/billedRow.js';
import type { Pico } from '../../domain/money.js';
import type { Provider } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { countedRowsSql, countedSourcesSql } from './billingRows.js';

/** Charges of one account, day, category, model and class in one currency, from the counted copies. */
export interface BilledCharge {
  accountId: string;
  /** The first of the month for a charge without a day. */
  day: string;
  isOfMonth: boolean;
  category: ChargeCategory;
  model: string | null;
  tokenClass: BilledClass;
  /** null: some row has no quantity. */
  quantity: bigint | null;
  /** Dollars; null: the currency has no exchange rate. */
  amountPico: Pico | null;
  currency: string;
  /** In `currency`, twelve decimals. */
  originalAmount: bigint;
}

interface Period {
  provider: Provider;
  /** null: every account. */
  accountId: string | null;
  /** Both inclusive, `YYYY-MM-DD`. */
  fromDay: string;
  toDay: string;
}

const IN_PERIOD = `d.org_id = $1 and d.provider = $2 and ($3::text is null or d.provider_account_id = $3) and d.day >= $4 and d.day <= $5 and d.feed = 'cost'`;
const valuesOf = (orgDb: OrgDb, { provider, accountId, fromDay, toDay }: Period) => [
  ...[orgDb.orgId, provider, accountId, fromDay, toDay],
];

/**
 * Billed charges of a period. Charges of a whole month belong to the period in which the month begins. Time grows with
 * the rows.
 */
export async function listBilledCharges(orgDb: OrgDb, period: Period): Promise<BilledCharge[]> {
  return orgDb.rows<BilledCharge>(
    `with counted as (${countedSourcesSql(IN_PERIOD)})
     select r.provider_account_id as "accountId", r.day::text as day, r.report = '${MONTH_REPORT}' as "isOfMonth", r.charge_category as category, r.model,
       r.token_class as "tokenClass", case when bool_and(r.quantity is not null) then sum(r.quantity) end as quantity,
       case when bool_and(r.amount_usd is not null) then sum(r.amount_usd) end as "amountPico",
       coalesce(r.currency, 'USD') as currency, sum(coalesce(r.original_amount, r.amount_usd)) as "originalAmount"
     from ${countedRowsSql()} r
     group by 1, 2, 3, 4, 5, 6, 9 order by 1, 2, 4, 5, 6, 9`,
    valuesOf(orgDb, period),
  );
}

/** The days that an account's bill covers, both inclusive. */
export interface BilledSpan {
  accountId: string;
  fromDay: string;
  toDay: string;
}

/** The spans of bills with a charge or a covered day in a period; a bill of a whole month covers its days. */
export async function listBilledSpans(orgDb: OrgDb, period: Period): Promise<BilledSpan[]> {
  return orgDb.rows<BilledSpan>(
    `select c.provider_account_id as "accountId", least(min(c.day), min(s.period_start))::text as "fromDay",
       greatest(max(case when c.report = '${MONTH_REPORT}' then (c.day + interval '1 month' - interval '1 day')::date else c.day end),
         max(s.period_end))::text as "toDay"
     from (${countedSourcesSql(IN_PERIOD)}) c
     cross join lateral (select period_start, period_end from billing_sources where org_id = $1 and id = c.source_id offset 0) s
     group by c.provider_account_id, c.source_id order by 1, 2, 3`,
    valuesOf(orgDb, period),
  );
}
