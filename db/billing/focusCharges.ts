import { MONTH_REPORT } from '../../domain/billing/billedRow.js';
import type { ComparedDay, FocusCharge } from '../../domain/billing/focus/focusCharge.js';
import { shiftDay } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import {
  BUCKETS_OF_DAYS,
  comparedDaysSql,
  fromStoredLine,
  type StoredLine,
} from '../reconciliation/gapExplorer.js';
import { countedRowsSql, countedSourcesSql } from './billingRows.js';

interface DayScope {
  provider: Provider;
  day: string;
}

/** Provider-days of a half-open window with any charge, including invoice lines of whole months, in order. */
export async function listFocusDays(
  orgDb: OrgDb,
  window: { fromDay: string; toDay: string },
): Promise<DayScope[]> {
  return orgDb.rows<DayScope>(
    `select distinct provider, day from billing_days where org_id = $1 and day >= $2 and day < $3 and feed = 'cost'
     order by provider, day`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
}

/** Sum of a column; null where any row lacks it. */
const sumOfAll = (column: string) => `case when bool_and(r.${column} is not null) then sum(r.${column}) end`;

/** All charges of one provider's day in the counted copies, summed over equal attributes. */
export async function listFocusCharges(orgDb: OrgDb, scope: DayScope): Promise<FocusCharge[]> {
  return orgDb.rows<FocusCharge>(
    `with counted as (${countedSourcesSql(`d.org_id = $1 and d.provider = $2 and d.day = $3 and d.feed = 'cost'`)})
     select r.provider_account_id as "accountId", r.charge_category as "chargeCategory", r.line_item as "lineItem", r.model,
       r.token_class as "tokenClass", r.service_tier as "serviceTier", r.is_batch as "isBatch", r.long_context as "longContext", r.region,
       r.observable, r.project, r.api_key as "apiKey", k.team_id as "teamId", r.quantity_unit as "quantityUnit",
       coalesce(r.currency, 'USD') as currency, r.report = '${MONTH_REPORT}' as "isOfMonth", ${sumOfAll('quantity')} as quantity,
       ${sumOfAll('amount_usd')} as "amountPico", ${sumOfAll('list_amount_usd')} as "listPico",
       ${sumOfAll('contracted_amount_usd')} as "contractedPico", sum(coalesce(r.original_amount, r.amount_usd)) as "originalAmount"
     from ${countedRowsSql()} r
     left join lateral (select team_id from provider_keys
       where org_id = $1 and provider = $2 and provider_key_id = r.api_key offset 0) k on true
     group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, r.amount_usd is null
     order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, r.amount_usd is null`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_focus_charges',
  );
}

export type ComparedModelDay = Omit<ComparedDay, 'finding' | 'disputeId'>;

/**
 * The models of one provider's day as they were compared; empty where the bill has changed since, or no run has
 * compared it.
 */
export async function listComparedModels(orgDb: OrgDb, scope: DayScope): Promise<ComparedModelDay[]> {
  const rows = await orgDb.rows<Omit<ComparedModelDay, 'lines'> & { cells: StoredLine[] }>(
    `with ${comparedDaysSql('and d.provider = $4')}
     select b.provider_account_id as "accountId", b.model, b.match_status as "matchStatus", b.grade, b.reason, b.provisional,
       b.our_cost_usd as "ourCostPico", b.cells
     ${BUCKETS_OF_DAYS} order by 1, 2`,
    [orgDb.orgId, scope.day, shiftDay(scope.day, 1), scope.provider],
    'day_compared_models',
  );
  return rows.map(({ cells, ...day }) => ({ ...day, lines: cells.map(fromStoredLine) }));
}
