import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';

/** What a gap run explains anew: accounts in their order, each with its series, and what was found there so far. */

/** An account of a provider. */
export interface AccountName {
  provider: string;
  accountId: string;
}

/** A series: the days of one model at one account. */
export interface SeriesName extends AccountName {
  model: string;
}

/** An account with what its explanation rests on beside its days. */
export interface AccountContext extends AccountName {
  /** What it rests on, as JSON text; the marks tell whether it has changed. */
  context: string;
  contextMark: string;
  suspectsMark: string;
}

/**
 * Lets a run explain when no other run of the organization does, up to the end of either: what a run finds in a series
 * rests on all published days, and two that publish in turn would each undo the other's. The run keeps its turn.
 */
export async function takeExplainingTurn(inside: OrgDb, runId: string): Promise<'go' | 'wait' | 'over'> {
  await lockByName(inside, 'gapRunTurn', inside.orgId);
  const [run] = await inside.rows<{ status: string; others: number }>(
    `select r.status, (select count(*)::bigint from gap_runs o where o.org_id = $1 and o.status = 'running'
       and o.explaining_since is not null and o.id <> r.id) as others
     from gap_runs r where r.org_id = $1 and r.id = $2`,
    [inside.orgId, runId],
  );
  if (run?.status !== 'running') return 'over';
  const goes = run.others === 0;
  const changed = await inside.run(
    `update gap_runs set heartbeat_at = now(), stage = case when stage = 'cancelling' then stage when $3 then 'explaining' else 'waiting_for_turn' end,
       explaining_since = case when $3 then coalesce(explaining_since, now()) end
     where org_id = $1 and id = $2 and status = 'running'`,
    [inside.orgId, runId, goes],
  );
  if (changed === 0) return 'over';
  return goes ? 'go' : 'wait';
}

/** The provider-days that the run has matched. */
const DONE = `select provider, day from gap_run_units where org_id = $1 and run_id = $2 and status = 'done'`;

/** The evidence of the bucket that a row of `before` or `now` names; `run` is one of the two. */
const evidenceIn = (
  run: string,
) => `(select b.evidence from gap_buckets b where b.org_id = $1 and b.run_id = ${run}.run_id
  and b.provider = ${run}.provider and b.provider_account_id = ${run}.account and b.width = 'day'
  and b.bucket = ${run}.day::timestamp at time zone 'UTC' and b.model = ${run}.model)`;

/**
 * Series of which a day that the run has matched is not as it is published: its evidence is another, or it is there only
 * before or only now. Those of findings on such days that have no bucket there any more are among them.
 */
export async function listChangedSeries(orgDb: OrgDb, runId: string): Promise<SeriesName[]> {
  return orgDb.rows<SeriesName>(
    // Evidence is read of days that are there before and now: of a first run none, which would be all that it has found.
    `with done as materialized (${DONE}),
     before as materialized (
       select p.provider, p.provider_account_id as account, b.model, p.day, p.run_id
       from done cross join lateral (select * from gap_published
         where org_id = $1 and provider = done.provider and day = done.day offset 0) p
       cross join lateral (select model from gap_buckets where org_id = $1 and run_id = p.run_id and provider = p.provider
         and provider_account_id = p.provider_account_id and width = 'day' and bucket = p.day::timestamptz offset 0) b),
     now as materialized (
       select provider, provider_account_id as account, model, (bucket at time zone 'UTC')::date as day, run_id
       from gap_buckets where org_id = $1 and run_id = $2 and width = 'day'
         and coalesce((provider, (bucket at time zone 'UTC')::date) in (select provider, day from done), false))
     select provider, account as "accountId", model from before full join now using (provider, account, model, day)
       where before.run_id is null or now.run_id is null or ${evidenceIn('before')} is distinct from ${evidenceIn('now')}
     union
     select f.provider, f.provider_account_id, f.model from done
       cross join lateral (select finding_id from finding_days where org_id = $1 and day = done.day offset 0) d
       cross join lateral (select provider, provider_account_id, model from findings
         where org_id = $1 and id = d.finding_id and provider = done.provider and status <> 'gone' and invoice_id is null offset 0) f
       where (f.provider, f.provider_account_id, f.model, done.day) not in (select provider, account, model, day from now)
     order by 1, 2, 3`,
    [orgDb.orgId, runId],
  );
}

/** An account that was explained, as it was left. */
export interface ExplainedAccount extends Omit<AccountContext, 'context'> {
  /** Some of its days were published without being explained. */
  stale: boolean;
}

/** The accounts that have ever been explained, of one provider or of all. */
export async function listExplainedAccounts(
  orgDb: OrgDb,
  provider: string | null,
): Promise<ExplainedAccount[]> {
  return orgDb.rows<ExplainedAccount>(
    `select provider, provider_account_id as "accountId", context_mark as "contextMark", suspects_mark as "suspectsMark", stale
     from explained_accounts where org_id = $1 and ($2::text is null or provider = $2) order by 1, 2`,
    [orgDb.orgId, provider],
  );
}

/** Every series of an account that has a published day from `fromDay` on, or an explanation. */
export async function listSeriesOfAccount(
  orgDb: OrgDb,
  account: AccountName,
  fromDay: string,
): Promise<SeriesName[]> {
  return orgDb.rows<SeriesName>(
    `select b.provider, b.provider_account_id as "accountId", b.model from gap_published p
     cross join lateral (select provider, provider_account_id, model from gap_buckets where org_id = $1 and run_id = p.run_id
       and provider = p.provider and provider_account_id = p.provider_account_id and width = 'day' and bucket = p.day::timestamptz offset 0) b
     where p.org_id = $1 and p.provider = $2 and p.provider_account_id = $3 and p.day >= $4::date
     union select provider, provider_account_id, model from series_explanations
       where org_id = $1 and provider = $2 and provider_account_id = $3
     union select provider, provider_account_id, model from findings
       where org_id = $1 and provider = $2 and provider_account_id = $3 and status <> 'gone' and last_day >= $4::date and invoice_id is null
     order by 1, 2, 3`,
    [orgDb.orgId, account.provider, account.accountId, fromDay],
  );
}

/**
 * Stores what the run explains anew, and counts it into the run's progress; a repeat finds it and changes nothing.
 * Returns how many accounts there are.
 */
export async function insertExplanationPlan(
  inside: OrgDb,
  runId: string,
  accounts: readonly AccountContext[],
  series: readonly SeriesName[],
): Promise<number> {
  const stored = await countRunAccounts(inside, runId);
  if (stored > 0) return stored;
  await inside.run(
    `insert into gap_run_accounts (org_id, run_id, ordinal, provider, provider_account_id, context, context_mark, suspects_mark)
     select $1::uuid, $2::uuid, n - 1, provider, account, context, mark, suspects
     from unnest($3::text[], $4::text[], $5::jsonb[], $6::text[], $7::text[]) with ordinality as a(provider, account, context, mark, suspects, n)`,
    [
      inside.orgId,
      runId,
      textArray(accounts.map((account) => account.provider)),
      textArray(accounts.map((account) => account.accountId)),
      textArray(accounts.map((account) => account.context)),
      textArray(accounts.map((account) => account.contextMark)),
      textArray(accounts.map((account) => account.suspectsMark)),
    ],
  );
  await inside.run(
    `insert into gap_run_series (org_id, run_id, provider, provider_account_id, model)
     select $1::uuid, $2::uuid, * from unnest($3::text[], $4::text[], $5::text[])`,
    [
      inside.orgId,
      runId,
      textArray(series.map(({ provider }) => provider)),
      textArray(series.map(({ accountId }) => accountId)),
      textArray(series.map(({ model }) => model)),
    ],
  );
  await inside.run(
    `update gap_runs set total_units = (select count(*) from gap_run_units u where u.org_id = $1 and u.run_id = $2) + $3
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [inside.orgId, runId, series.length],
  );
  return accounts.length;
}

async function countRunAccounts(inside: OrgDb, runId: string): Promise<number> {
  const [row] = await inside.rows<{ count: number }>(
    'select count(*)::bigint as count from gap_run_accounts where org_id = $1 and run_id = $2',
    [inside.orgId, runId],
  );
  return row?.count ?? 0;
}

/** An account of a run. */
export interface RunAccount extends AccountName {
  context: unknown;
  ordinal: number;
  status: 'pending' | 'done' | 'failed';
  errorMessage: string | null;
}

/** The accounts that a run explains, in their order. */
export async function listRunAccounts(orgDb: OrgDb, runId: string): Promise<RunAccount[]> {
  return orgDb.rows<RunAccount>(
    `select ordinal, provider, provider_account_id as "accountId", context, status, error_message as "errorMessage"
     from gap_run_accounts where org_id = $1 and run_id = $2 order by ordinal`,
    [orgDb.orgId, runId],
  );
}
