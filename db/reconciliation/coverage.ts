import { TOKEN_CLASSES, type TokenClass } from '../../domain/events/event.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, microsOfDay } from '../../domain/period.js';
import type { BilledKeyDay, CoverageFigures, ObservedKeyDay } from '../../domain/reconciliation/coverage.js';
import { joinKeyAccount, keyAccount } from '../billing/billingCells.js';
import { countedRowsSql, countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';
import { BILLING_KEYS, BILLING_MEASURE_NAMES, BILLING_QUANTITIES, CLASS_COLUMNS } from '../usage/rollups.js';
import { readFoldedXid } from '../usage/usage.js';
import { sumOfMeasure, usageLogSql } from '../usage/usageLog.js';
import { BUCKETS_OF_DAYS, comparedDaysSql } from './gapExplorer.js';

/** Columns by which buckets are grouped. Provider keys are not part of a bucket: see keyCoverage. */
export type BucketGroup = 'provider' | 'account' | 'model' | 'day';

export interface CoverageQuery {
  fromDay: string;
  toDay: string;
  provider: string | undefined;
  accountId: string | undefined;
}

/** The group's value; null: the sum over all, or, for a model, days that no run has compared. */
export interface CoverageGroup {
  provider: string | null;
  accountId: string | null;
  model: string | null;
  providerKeyId: string | null;
  day: string | null;
  days: number;
  figures: CoverageFigures;
}

interface CoverageRow {
  provider: string | null;
  account: string | null;
  model: string | null;
  on_day: string | null;
  days: number;
  calls: number;
  billed_tokens: bigint;
  observed_tokens: bigint;
  covered_tokens: bigint;
  explained: Pico;
  not_matched: Pico;
  not_observable: Pico;
  not_yet_observed: Pico;
  not_compared: Pico;
  uncounted: Pico;
}

/** The columns of a part that form a group. */
const GROUP_COLUMNS: Record<BucketGroup, readonly string[]> = {
  provider: ['provider'],
  account: ['provider', 'account'],
  model: ['provider', 'model'],
  day: ['on_day'],
};

const NAMES = ['provider', 'account', 'model', 'on_day'] as const;

/** Charges that no call can show, as the statement counts them. */
const NOT_OBSERVABLE = `coalesce(b.reason in ('not_observable', 'free_allowance'), false)`;
const NOT_YET_OBSERVED = `coalesce(b.reason = 'not_yet_observed', false)`;
/** Tokens of a free allowance are counted like others; charges that are excluded from comparison are not. */
const TOKENS_COMPARED = `b.billed_tokens is not null and coalesce(b.reason not in ('not_observable', 'not_yet_observed', 'not_in_cost_report', 'unconverted'), true)`;
const REST = 'b.provider_cost_usd - b.matched_usd';

/** Coverage of a half-open window by group: compared days by their buckets, other days by their bills. */
export async function listCoverage(
  orgDb: OrgDb,
  group: BucketGroup,
  query: CoverageQuery,
): Promise<CoverageGroup[]> {
  const columns = GROUP_COLUMNS[group];
  const shown = NAMES.map((name) => (columns.includes(name) ? name : `null as ${name}`)).join(', ');
  const rows = await orgDb.rows<CoverageRow>(
    `with ${comparedDaysSql('and ($4::text is null or d.provider = $4)')},
     parts as (
       select b.provider, b.provider_account_id as account, b.model, p.day as on_day, sum(b.event_count) as calls,
         sum(b.billed_tokens) filter (where ${TOKENS_COMPARED}) as billed_tokens,
         sum(b.observed_tokens) filter (where ${TOKENS_COMPARED}) as observed_tokens,
         sum(b.covered_tokens) filter (where ${TOKENS_COMPARED}) as covered_tokens,
         sum(b.matched_usd) as explained,
         sum(${REST}) filter (where not ${NOT_OBSERVABLE} and not ${NOT_YET_OBSERVED}) as not_matched,
         sum(${REST}) filter (where ${NOT_OBSERVABLE}) as not_observable,
         sum(${REST}) filter (where ${NOT_YET_OBSERVED}) as not_yet_observed,
         0::numeric as not_compared,
         sum(b.provider_cost_usd) filter (where b.billed_tokens is null and not ${NOT_OBSERVABLE} and not ${NOT_YET_OBSERVED}) as uncounted
       ${BUCKETS_OF_DAYS} where ($5::text is null or b.provider_account_id = $5) group by 1, 2, 3, 4
       union all
       select c.provider, c.provider_account_id, null, c.day, 0, 0, 0, 0, 0, 0, 0, 0, sum(c.amount_usd), 0
       from counted c where c.feed = 'cost' and c.charge_category = 'usage' and ($5::text is null or c.provider_account_id = $5)
         and (c.provider, c.day) not in (select provider, day from valid) group by 1, 2, 3, 4)
     select ${shown}, count(distinct on_day)::bigint as days, coalesce(sum(calls), 0)::bigint as calls,
       ${[
         'billed_tokens',
         'observed_tokens',
         'covered_tokens',
         'explained',
         'not_matched',
         'not_observable',
         'not_yet_observed',
         'not_compared',
         'uncounted',
       ]
         .map((name) => `coalesce(sum(${name}), 0) as ${name}`)
         .join(', ')}
     from parts group by ${columns.join(', ')}`,
    [orgDb.orgId, query.fromDay, query.toDay, query.provider ?? null, query.accountId ?? null],
  );
  return rows.map((row) => ({
    provider: row.provider,
    accountId: row.account,
    model: row.model,
    providerKeyId: null,
    day: row.on_day,
    days: row.days,
    figures: {
      calls: row.calls,
      billedTokens: row.billed_tokens,
      observedTokens: row.observed_tokens,
      coveredTokens: row.covered_tokens,
      billedPico:
        row.explained + row.not_matched + row.not_observable + row.not_yet_observed + row.not_compared,
      explainedPico: row.explained,
      notMatchedPico: row.not_matched,
      notObservablePico: row.not_observable,
      notYetObservedPico: row.not_yet_observed,
      notComparedPico: row.not_compared,
      uncountedPico: row.uncounted,
    },
  }));
}

export async function listBilledKeyDays(orgDb: OrgDb, query: CoverageQuery): Promise<BilledKeyDay[]> {
  const rows = await orgDb.rows<{
    provider: string;
    key: string;
    day: string;
    token_class: string;
    billed: Pico;
    not_observable: Pico;
    cost_quantity: bigint | null;
    usage_quantity: bigint | null;
    has_usage: boolean;
  }>(
    `with counted as materialized (${countedSourcesSql(
      'd.org_id = $1 and d.day >= $2 and d.day < $3 and ($4::text is null or d.provider = $4) and ($5::text is null or d.provider_account_id = $5)',
    )}),
     of_keys as (select r.*, (r.provider, r.provider_account_id, r.day) in (
         select provider, provider_account_id, day from counted where feed = 'usage') as is_reported
       from ${countedRowsSql("(feed = 'usage' or charge_category = 'usage')")} r offset 0)
     select r.provider, coalesce(r.api_key, '') as key, r.day, r.token_class,
       coalesce(sum(r.amount_usd) filter (where r.observable), 0) as billed,
       coalesce(sum(r.amount_usd) filter (where not r.observable), 0) as not_observable,
       case when bool_and(r.quantity is not null) filter (where r.feed = 'cost' and r.observable and not r.is_reported)
         then sum(r.quantity) filter (where r.feed = 'cost' and r.observable and not r.is_reported) end as cost_quantity,
       sum(r.quantity) filter (where r.feed = 'usage') as usage_quantity, bool_or(r.is_reported) as has_usage
     from of_keys r group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
    [orgDb.orgId, query.fromDay, query.toDay, query.provider ?? null, query.accountId ?? null],
  );
  const days = new Map<string, BilledKeyDay>();
  for (const row of rows) {
    const name = [row.provider, row.key, row.day].join('\n');
    const day = days.get(name) ?? {
      provider: row.provider,
      providerKeyId: row.key,
      day: row.day,
      billedPico: 0n,
      notObservablePico: 0n,
      quantities: [],
    };
    days.set(name, day);
    day.billedPico += row.billed;
    day.notObservablePico += row.not_observable;
    const tokenClass = TOKEN_CLASSES.find((known) => known === row.token_class);
    if (tokenClass === undefined) continue;
    const quantity = row.usage_quantity ?? (row.has_usage ? null : row.cost_quantity);
    // Dollars of a class that the usage report attributes to other keys: this key's part is unknown.
    if (quantity !== null || row.billed !== 0n) day.quantities.push({ tokenClass, quantity });
  }
  return [...days.values()];
}

const SUMS = ['calls', ...Object.values(CLASS_COLUMNS), 'computed_cost_usd'];
const WHO = ['billed_by', 'provider_account_id', 'provider_key_id'] as const;

/** Observed usage by biller, key and UTC day in one snapshot; calls without an account count for each account. */
export async function listObservedKeyDays(inside: OrgDb, query: CoverageQuery): Promise<ObservedKeyDay[]> {
  const rows = await inside.rows<
    { provider: string; key: string; day: string; calls: number; computed_cost_usd: Pico } & Record<
      string,
      number
    >
  >(
    `with parts as (
           select ${WHO.join(', ')}, (hour at time zone 'UTC')::date as day, ${BILLING_MEASURE_NAMES.join(', ')}
           from billing_cells where org_id = $1 and hour >= $2::timestamptz and hour < $3::timestamptz and status <> 'blocked'
           union all
           select ${WHO.map((name) => BILLING_KEYS[name]).join(', ')}, (end_at at time zone 'UTC')::date, ${BILLING_QUANTITIES}
           from (${usageLogSql('$6')}) log
           where end_at >= $2::timestamptz and end_at < $3::timestamptz and status <> 'blocked' group by 1, 2, 3, 4)
         select p.billed_by as provider, p.provider_key_id as key, p.day, ${SUMS.map((name) => `${sumOfMeasure(name)} as ${name}`).join(', ')}
         from parts p ${joinKeyAccount('p', 'p.billed_by')}
         where ($4::text is null or p.billed_by = $4) and ($5::text is null or ${keyAccount('p')} in ($5, ''))
         group by 1, 2, 3 having sum(calls) <> 0 order by 1, 2, 3`,
    [
      inside.orgId,
      isoFromMicros(microsOfDay(query.fromDay)),
      isoFromMicros(microsOfDay(query.toDay)),
      query.provider ?? null,
      query.accountId ?? null,
      await readFoldedXid(inside),
    ],
  );
  return rows.map((row) => ({
    provider: row.provider,
    providerKeyId: row.key,
    day: row.day,
    calls: row.calls,
    tokens: Object.fromEntries(
      TOKEN_CLASSES.map((name) => [name, BigInt(row[CLASS_COLUMNS[name]] ?? 0)]),
    ) as Record<TokenClass, bigint>,
    computedPico: row.computed_cost_usd,
  }));
}
