import { type BillingFormat, provisionalDaysOf } from '../../domain/billing/sources.js';
import type { Provider } from '../../domain/providers.js';
import { BILLED_ACCOUNT, type BilledAccount, IS_DAILY_USAGE, JOIN_FORMATS } from '../billing/billedDays.js';
import { countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';
import { readFoldedXid } from '../usage/usage.js';
import { usageLogSql } from '../usage/usageLog.js';

/**
 * What tells whether a provider-day would be matched as it was: read for a whole window at once, before a run decides
 * what it compares. Each part is text or a number that changes whenever the inputs do.
 */

export interface InputWindow {
  provider: string | null;
  fromDay: string;
  toDay: string;
}

/** The copies that count for an account's day, those of its usage reports among them. */
export interface CountedDay extends BilledAccount {
  provider: Provider;
  day: string;
}

interface CountedDayRow {
  provider: Provider;
  day: string;
  account: string;
  formats: BillingFormat[];
  is_final: boolean;
  told_at: bigint;
  counted_sources: string;
}

/** The accounts whose cost feed covers a day of the window, by provider, day and account. */
export async function listCountedDays(orgDb: OrgDb, window: InputWindow): Promise<CountedDay[]> {
  const rows = await orgDb.rows<CountedDayRow>(
    `with counted as (${countedSourcesSql('d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4')}),
     told as (select counted.*, source.format from counted ${JOIN_FORMATS})
     select provider, day, ${BILLED_ACCOUNT}
     from told group by 1, 2, 3 having bool_or(${IS_DAILY_USAGE}) order by 1, 2, 3`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
  return rows.map((row) => ({
    provider: row.provider,
    day: row.day,
    accountId: row.account,
    fetchedAtMicros: row.told_at,
    provisionalDays: provisionalDaysOf(row.formats, row.is_final),
    countedSources: row.counted_sources,
  }));
}

const dayKey = (row: { provider: string; day: string }) => `${row.provider} ${row.day}`;

/**
 * The revision of each provider-day's calls, as `provider day`: how many rows of the log its cells were made of, those
 * counted that are in no total yet. The log only grows and keeps every row at its transaction, so the number is the same
 * before and after a fold and another after any change. Days without calls are absent.
 */
export async function listObservedRevisions(
  inside: OrgDb,
  window: InputWindow,
): Promise<Map<string, number>> {
  const rows = await inside.rows<{ provider: string; day: string; revision: number }>(
    `select billed_by as provider, day, sum(revision)::bigint as revision from (
           select billed_by, day, revision from observed_days
           where org_id = $1 and ($2::text is null or billed_by = $2) and day >= $3::date and day < $4::date
           union all
           select billed_by, (end_at at time zone 'UTC')::date, count(*) from (${usageLogSql('$5')}) log
           where ($2::text is null or billed_by = $2) and status <> 'blocked'
             and end_at >= $3::date and end_at < $4::date group by 1, 2
         ) parts group by 1, 2`,
    [inside.orgId, window.provider, window.fromDay, window.toDay, await readFoldedXid(inside)],
  );
  return new Map(rows.map((row) => [dayKey(row), row.revision]));
}

/** By provider: which account each of its keys belongs to, as a digest. Providers without such keys are absent. */
export async function listKeyDigests(orgDb: OrgDb): Promise<Map<string, string>> {
  const rows = await orgDb.rows<{ provider: string; digest: string }>(
    `select provider, md5(string_agg(provider_key_id || '=' || provider_account_id, ',' order by provider_key_id)) as digest
     from provider_keys where org_id = $1 and provider_account_id is not null group by 1`,
    [orgDb.orgId],
  );
  return new Map(rows.map((row) => [row.provider, row.digest]));
}

/** The UTC day of the oldest call that is stored: of the days before it only sums are left. Undefined without calls. */
export async function findFirstEventDay(orgDb: OrgDb): Promise<string | undefined> {
  const [row] = await orgDb.rows<{ day: string | null }>(
    `select (min(timestamp) at time zone 'UTC')::date as day from events where org_id = $1`,
    [orgDb.orgId],
  );
  return row?.day ?? undefined;
}

/** What a provider-day was published from. */
export interface PublishedDay {
  provider: string;
  day: string;
  inputMark: string;
}

/** The published provider-days of the window, with the mark of what they were matched from. */
export async function listPublishedDays(orgDb: OrgDb, window: InputWindow): Promise<PublishedDay[]> {
  return orgDb.rows<PublishedDay>(
    `select p.provider, p.day, coalesce(min(u.input_mark), '') as "inputMark"
     from gap_published p
     left join lateral (select input_mark from gap_run_units
       where org_id = $1 and run_id = p.run_id and provider = p.provider and day = p.day offset 0) u on true
     where p.org_id = $1 and ($2::text is null or p.provider = $2) and p.day >= $3::date and p.day < $4::date
     group by 1, 2 order by 1, 2`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}
