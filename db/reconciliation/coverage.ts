import type { Pico } from '../../domain/money.js';
import type { CoverageFigures } from '../../domain/reconciliation/coverage/coverage.js';
import type { OrgDb } from '../orgDb.js';
import { BUCKETS_OF_DAYS, comparedDaysSql } from './gapExplorer.js';

/** By what buckets are put together. Keys of the provider are no part of a bucket: see keyCoverage. */
export const BUCKET_GROUPS = ['provider', 'account', 'model', 'day'] as const;
export type BucketGroup = (typeof BUCKET_GROUPS)[number];

export interface CoverageQuery {
  /** Half-open. */
  fromDay: string;
  toDay: string;
  provider: string | undefined;
  accountId: string | undefined;
}

/** What a group is of; null: of all, or, for a model, of days that no run has compared. */
export interface CoverageGroup {
  provider: string | null;
  accountId: string | null;
  model: string | null;
  providerKeyId: string | null;
  day: string | null;
  /** Days with a bill or a comparison. */
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

/** Which of a part's columns make a group. */
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
/** Tokens of an allowance are used and counted like others; what is left out of the bill is compared with nothing. */
const TOKENS_COMPARED = `b.billed_tokens is not null and coalesce(b.reason not in ('not_observable', 'not_yet_observed', 'not_in_cost_report', 'unconverted'), true)`;
const REST = 'b.provider_cost_usd - b.matched_usd';

/**
 * Coverage of a half-open window of days, group by group in no order: of days that count as compared what their buckets
 * say, of the others what was billed. Work grows with the window's buckets.
 */
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
