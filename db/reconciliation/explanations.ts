import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { jsonLinesSql, jsonTextLines, textArray } from '../pgArray.js';
import { countGapRunUnits } from './gapRuns.js';

/** Results of explaining, before a run publishes them. */

/** The models of an account whose series the run has not explained yet. */
export async function listPendingSeries(
  orgDb: OrgDb,
  runId: string,
  account: AccountName,
): Promise<string[]> {
  const rows = await orgDb.rows<{ model: string }>(
    `select model from gap_run_series where org_id = $1 and run_id = $2 and provider = $3 and provider_account_id = $4 and not is_done order by 1`,
    [orgDb.orgId, runId, account.provider, account.accountId],
  );
  return rows.map(({ model }) => model);
}

/** Stores the explanations of some of an account's series; null: the series has no days any more. */
export async function recordSeriesExplanations(
  inside: OrgDb,
  runId: string,
  account: AccountName,
  explained: readonly { model: string; explanation: string | null }[],
): Promise<void> {
  await inside.run(
    `update gap_run_series s set is_done = true, explanation = e.explanation
     from unnest($5::text[], ${jsonLinesSql('$6')}) as e(model, explanation)
     where s.org_id = $1 and s.run_id = $2 and s.provider = $3 and s.provider_account_id = $4 and s.model = e.model`,
    [
      inside.orgId,
      runId,
      account.provider,
      account.accountId,
      textArray(explained.map(({ model }) => model)),
      jsonTextLines(explained.map(({ explanation }) => explanation)),
    ],
    'series_explained',
  );
  await countGapRunUnits(inside, runId);
}

/** The explanations of all series of an account, by model: this run's, else the published ones. */
export async function listAccountExplanations(
  orgDb: OrgDb,
  runId: string,
  account: AccountName,
): Promise<unknown[]> {
  const rows = await orgDb.rows<{ explanation: unknown }>(
    `select explanation from (
       select model, explanation from gap_run_series
         where org_id = $1 and run_id = $2 and provider = $3 and provider_account_id = $4
       union all
       select model, explanation from series_explanations e
         where org_id = $1 and provider = $3 and provider_account_id = $4 and not exists (
           select from gap_run_series s where s.org_id = $1 and s.run_id = $2 and s.provider = $3 and s.provider_account_id = $4 and s.model = e.model)
     ) series where explanation is not null order by model collate "C"`,
    [orgDb.orgId, runId, account.provider, account.accountId],
  );
  return rows.map(({ explanation }) => explanation);
}

/** Stores the findings of an account, all its series together; a repeat stores the same again. */
export async function recordAccountFindings(
  orgDb: OrgDb,
  runId: string,
  ordinal: number,
  findings: string,
): Promise<void> {
  await orgDb.run(
    `update gap_run_accounts set status = 'done', error_message = null, findings = $4::jsonb
     where org_id = $1 and run_id = $2 and ordinal = $3`,
    [orgDb.orgId, runId, ordinal, findings],
  );
}

/** Records that an account cannot be explained: its published findings stay. */
export async function failRunAccount(
  inside: OrgDb,
  runId: string,
  ordinal: number,
  message: string,
): Promise<void> {
  await inside.run(
    `with failed as (
       update gap_run_accounts set status = 'failed', error_message = $4
       where org_id = $1 and run_id = $2 and ordinal = $3 and status <> 'done' returning provider, provider_account_id)
     update gap_run_series s set is_done = true from failed f
     where s.org_id = $1 and s.run_id = $2 and s.provider = f.provider and s.provider_account_id = f.provider_account_id`,
    [inside.orgId, runId, ordinal, message.slice(0, 1_000)],
  );
  await countGapRunUnits(inside, runId);
}

export async function readAccountFindings(orgDb: OrgDb, runId: string, ordinal: number): Promise<unknown[]> {
  const [row] = await orgDb.rows<{ findings: unknown[] }>(
    'select findings from gap_run_accounts where org_id = $1 and run_id = $2 and ordinal = $3',
    [orgDb.orgId, runId, ordinal],
  );
  return row?.findings ?? [];
}

/** Publishes a run's explanations in its last transaction; accounts published without explanation become stale. */
export async function publishExplanations(inside: OrgDb, runId: string): Promise<void> {
  const run = [inside.orgId, runId];
  await inside.run(
    `with ready as (select s.* from gap_run_series s
       join gap_run_accounts a on a.org_id = $1 and a.run_id = $2 and a.provider = s.provider and a.provider_account_id = s.provider_account_id
       where s.org_id = $1 and s.run_id = $2 and a.status = 'done'),
     gone as (delete from series_explanations e using ready r where r.explanation is null
       and e.org_id = $1 and e.provider = r.provider and e.provider_account_id = r.provider_account_id and e.model = r.model)
     insert into series_explanations (org_id, provider, provider_account_id, model, run_id, explanation)
     select org_id, provider, provider_account_id, model, run_id, explanation from ready where explanation is not null
     on conflict (org_id, provider, provider_account_id, model) do update
       set run_id = excluded.run_id, explanation = excluded.explanation, explained_at = now()`,
    run,
  );
  await inside.run(
    `insert into explained_accounts (org_id, provider, provider_account_id, context_mark, suspects_mark, stale)
     select $1::uuid, provider, account, max(context), max(suspects), bool_and(stale) from (
       select provider, provider_account_id as account, context_mark as context, suspects_mark as suspects, status <> 'done' as stale
         from gap_run_accounts where org_id = $1 and run_id = $2
       union all
       select u.provider, s.key, '', '', true from gap_run_units u cross join lateral jsonb_each_text(u.counted_sources) s
         join gap_runs r on r.org_id = u.org_id and r.id = u.run_id
         where u.org_id = $1 and u.run_id = $2 and u.status = 'done' and r.explaining_since is null
     ) parts group by 2, 3
     on conflict (org_id, provider, provider_account_id) do update set stale = excluded.stale,
       context_mark = case when excluded.stale then explained_accounts.context_mark else excluded.context_mark end,
       suspects_mark = case when excluded.stale then explained_accounts.suspects_mark else excluded.suspects_mark end`,
    run,
  );
  await inside.run('delete from gap_run_series where org_id = $1 and run_id = $2', run);
  await inside.run('delete from gap_run_accounts where org_id = $1 and run_id = $2', run);
}

/** Deletes explanations of runs that ended without publishing. */
export async function clearEndedExplanations(inside: OrgDb): Promise<void> {
  const ended = `org_id = $1 and run_id in (select id from gap_runs where org_id = $1 and status not in ('queued', 'running'))`;
  await inside.run(`delete from gap_run_series where ${ended}`, [inside.orgId]);
  await inside.run(`delete from gap_run_accounts where ${ended}`, [inside.orgId]);
}

const PAGE_DAYS = 100;

/** Evidence of a series' days from `fromDay` on, oldest first: this run's, else the published one. */
export async function* streamSeriesEvidence(
  orgDb: OrgDb,
  runId: string,
  series: SeriesName,
  fromDay: string,
): AsyncGenerator<unknown> {
  let after = '-infinity';
  for (;;) {
    const rows = await orgDb.rows<{ day: string; evidence: unknown }>(
      // The limit makes it one index lookup a day: with a join Postgres would read all buckets of the runs.
      `select d.day, b.evidence from (
         select day, run_id from gap_run_units where org_id = $1 and run_id = $2 and provider = $3 and status = 'done'
         union all
         select day, run_id from gap_published p where org_id = $1 and provider = $3 and provider_account_id = $4
           and day not in (select day from gap_run_units where org_id = $1 and run_id = $2 and provider = $3 and status = 'done')
       ) d cross join lateral (
         select evidence from gap_buckets where org_id = $1 and run_id = d.run_id and provider = $3 and provider_account_id = $4
           and width = 'day' and bucket = d.day::timestamptz and model = $5 limit 1) b
       where d.day >= $6::date and d.day > $7::date and b.evidence is not null order by d.day limit ${PAGE_DAYS}`,
      [orgDb.orgId, runId, series.provider, series.accountId, series.model, fromDay, after],
      'series_evidence',
    );
    for (const row of rows) yield row.evidence;
    const last = rows.at(-1);
    if (!last || rows.length < PAGE_DAYS) return;
    after = last.day;
  }
}

/** Accounts that a gap run explains again, in order, each with its series and the findings so far. */

export interface AccountName {
  provider: string;
  accountId: string;
}

/** A series: the days of one model at one account. */
export interface SeriesName extends AccountName {
  model: string;
}

/** An account with the inputs of its explanation besides its days. */
export interface AccountContext extends AccountName {
  /** These inputs as JSON text; the marks show whether they have changed. */
  context: string;
  contextMark: string;
  suspectsMark: string;
}

/** Permits one run of the organization to explain at a time: two would overwrite each other's findings. */
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

/** Series with a matched day whose evidence differs from the published one, appeared or vanished. */
export async function listChangedSeries(orgDb: OrgDb, runId: string): Promise<SeriesName[]> {
  return orgDb.rows<SeriesName>(
    // Evidence is compared only of days that exist before and now; a first run, for which that would be all days, has
    // none.
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

export interface ExplainedAccount extends Omit<AccountContext, 'context'> {
  /** Some of its days were published without being explained. */
  stale: boolean;
}

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

/** Every series of an account with a published day from `fromDay` on, or an explanation. */
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

/** Stores accounts and series to explain and counts them into the progress; a repeat changes nothing. */
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
     from unnest($3::text[], $4::text[], ${jsonLinesSql('$5')}, $6::text[], $7::text[]) with ordinality as a(provider, account, context, mark, suspects, n)`,
    [
      inside.orgId,
      runId,
      textArray(accounts.map((account) => account.provider)),
      textArray(accounts.map((account) => account.accountId)),
      jsonTextLines(accounts.map((account) => account.context)),
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

export interface RunAccount extends AccountName {
  context: unknown;
  ordinal: number;
  status: 'pending' | 'done' | 'failed';
  errorMessage: string | null;
}

export async function listRunAccounts(orgDb: OrgDb, runId: string): Promise<RunAccount[]> {
  return orgDb.rows<RunAccount>(
    `select ordinal, provider, provider_account_id as "accountId", context, status, error_message as "errorMessage"
     from gap_run_accounts where org_id = $1 and run_id = $2 order by ordinal`,
    [orgDb.orgId, runId],
  );
}
