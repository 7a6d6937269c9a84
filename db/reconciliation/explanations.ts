import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';
import type { AccountName, SeriesName } from './explanationRuns.js';
import { countGapRunUnits } from './gapRunUnits.js';

/** What a run finds while it explains, before it is published, and how it is. */

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

/** Stores the explanations of some of an account's series; null for a series that has no day any more. */
export async function recordSeriesExplanations(
  inside: OrgDb,
  runId: string,
  account: AccountName,
  explained: readonly { model: string; explanation: string | null }[],
): Promise<void> {
  await inside.run(
    `update gap_run_series s set is_done = true, explanation = e.explanation
     from unnest($5::text[], $6::jsonb[]) as e(model, explanation)
     where s.org_id = $1 and s.run_id = $2 and s.provider = $3 and s.provider_account_id = $4 and s.model = e.model`,
    [
      inside.orgId,
      runId,
      account.provider,
      account.accountId,
      textArray(explained.map(({ model }) => model)),
      textArray(explained.map(({ explanation }) => explanation)),
    ],
  );
  await countGapRunUnits(inside, runId);
}

/** The explanations of all series of an account: those of this run, and of the others what is published. By model. */
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

/** Stores what was found in an account, all its series together; a repeat stores the same again. */
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

/** Notes that an account cannot be explained: its findings stay as they are published. */
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

/** What was found in one account of the run. */
export async function readAccountFindings(orgDb: OrgDb, runId: string, ordinal: number): Promise<unknown[]> {
  const [row] = await orgDb.rows<{ findings: unknown[] }>(
    'select findings from gap_run_accounts where org_id = $1 and run_id = $2 and ordinal = $3',
    [orgDb.orgId, runId, ordinal],
  );
  return row?.findings ?? [];
}

/**
 * Takes over what the run has explained, as a part of the transaction in which it ends: the explanations of its series,
 * and what its accounts rest on. Accounts of days that it published without explaining them are left as stale, so that
 * the next run explains them.
 */
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

/** Removes what runs that ended without publishing have left of their explanations. */
export async function clearEndedExplanations(inside: OrgDb): Promise<void> {
  const ended = `org_id = $1 and run_id in (select id from gap_runs where org_id = $1 and status not in ('queued', 'running'))`;
  await inside.run(`delete from gap_run_series where ${ended}`, [inside.orgId]);
  await inside.run(`delete from gap_run_accounts where ${ended}`, [inside.orgId]);
}

const PAGE_DAYS = 50;

/**
 * The evidence of a series' days from `fromDay` on, the oldest first, a page at a time: what is published, and in its
 * place what this run has matched. Days from before evidence was kept are left out.
 */
export async function* streamSeriesEvidence(
  orgDb: OrgDb,
  runId: string,
  series: SeriesName,
  fromDay: string,
): AsyncGenerator<unknown> {
  let after = '-infinity';
  for (;;) {
    const rows = await orgDb.rows<{ day: string; evidence: unknown }>(
      // The limit makes it one look into the index a day: of a join Postgres would read all buckets of the runs.
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
