import { type BilledClass, type ChargeCategory, MONTH_REPORT } from '../../domain/billing/billedRow.js';
import type { ComparedDay, FocusCharge } from '../../domain/billing/focus/focusCharge.js';
import type { Pico } from '../../domain/money.js';
import { shiftDay } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { Grade, MatchStatus } from '../../domain/reconciliation/matching/cells.js';
import type { OrgDb } from '../orgDb.js';
import { BUCKETS_OF_DAYS, comparedDaysSql } from '../reconciliation/gapExplorer.js';
import { fromStoredLine, type StoredLine } from '../reconciliation/matches.js';
import { countedRowsSql, countedSourcesSql } from './billingRows.js';

interface DayScope {
  provider: Provider;
  day: string;
}

interface FocusChargeRow {
  account: string;
  is_of_month: boolean;
  charge_category: ChargeCategory;
  line_item: string;
  model: string | null;
  token_class: BilledClass;
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
  observable: boolean;
  project: string | null;
  api_key: string | null;
  team_id: string | null;
  quantity: bigint | null;
  quantity_unit: string | null;
  amount_usd: Pico | null;
  list_usd: Pico | null;
  contracted_usd: Pico | null;
  currency: string;
  original_amount: bigint;
}

/** Provider-days of a half-open window on which anything is billed, invoices' lines of whole months too; in their order. */
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

/** What all rows say, or nothing. */
const sumOfAll = (column: string) => `case when bool_and(r.${column} is not null) then sum(r.${column}) end`;

/**
 * What was billed on one provider's day in every category, of the sources that count, added up where rows say the same of
 * everything else. Work grows with the day's rows.
 */
export async function listFocusCharges(orgDb: OrgDb, scope: DayScope): Promise<FocusCharge[]> {
  const rows = await orgDb.rows<FocusChargeRow>(
    `with counted as (${countedSourcesSql(`d.org_id = $1 and d.provider = $2 and d.day = $3 and d.feed = 'cost'`)})
     select r.provider_account_id as account, r.charge_category, r.line_item, r.model, r.token_class, r.service_tier, r.is_batch,
       r.long_context, r.region, r.observable, r.project, r.api_key, k.team_id, r.quantity_unit, coalesce(r.currency, 'USD') as currency, r.report = '${MONTH_REPORT}' as is_of_month,
       ${sumOfAll('quantity')} as quantity, ${sumOfAll('amount_usd')} as amount_usd, ${sumOfAll('list_amount_usd')} as list_usd,
       ${sumOfAll('contracted_amount_usd')} as contracted_usd, sum(coalesce(r.original_amount, r.amount_usd)) as original_amount
     from ${countedRowsSql()} r
     left join lateral (select team_id from provider_keys
       where org_id = $1 and provider = $2 and provider_key_id = r.api_key offset 0) k on true
     group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, r.amount_usd is null
     order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, r.amount_usd is null`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_focus_charges',
  );
  return rows.map((row) => ({
    accountId: row.account,
    isOfMonth: row.is_of_month,
    chargeCategory: row.charge_category,
    lineItem: row.line_item,
    model: row.model,
    tokenClass: row.token_class,
    serviceTier: row.service_tier,
    isBatch: row.is_batch,
    longContext: row.long_context,
    region: row.region,
    observable: row.observable,
    project: row.project,
    apiKey: row.api_key,
    teamId: row.team_id,
    quantity: row.quantity,
    quantityUnit: row.quantity_unit,
    amountPico: row.amount_usd,
    listPico: row.list_usd,
    contractedPico: row.contracted_usd,
    currency: row.currency,
    originalAmount: row.original_amount,
  }));
}

interface ComparedDayRow {
  account: string;
  model: string;
  match_status: MatchStatus;
  grade: Grade;
  reason: string | null;
  provisional: boolean;
  our_cost_usd: Pico;
  cells: StoredLine[];
}

/** A model's day without what is said of it elsewhere: findings and disputes. */
export type ComparedModelDay = Omit<ComparedDay, 'finding' | 'disputeId'>;

/** The models of one provider's day as they were compared; none where the bill has changed since, or no run has come by. */
export async function listComparedModels(orgDb: OrgDb, scope: DayScope): Promise<ComparedModelDay[]> {
  const rows = await orgDb.rows<ComparedDayRow>(
    `with ${comparedDaysSql('and d.provider = $4')}
     select b.provider_account_id as account, b.model, b.match_status, b.grade, b.reason, b.provisional, b.our_cost_usd, b.cells
     ${BUCKETS_OF_DAYS} order by 1, 2`,
    [orgDb.orgId, scope.day, shiftDay(scope.day, 1), scope.provider],
    'day_compared_models',
  );
  return rows.map((row) => ({
    accountId: row.account,
    model: row.model,
    matchStatus: row.match_status,
    grade: row.grade,
    reason: row.reason,
    provisional: row.provisional,
    ourCostPico: row.our_cost_usd,
    lines: row.cells.map(fromStoredLine),
  }));
}
