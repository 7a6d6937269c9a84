import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type {
  ModeledAction,
  RuleFindings,
  UnpricedReason,
  Verdict,
} from '../../domain/policies/enforcement/replay.js';
import type { Rule } from '../../domain/policies/enforcement/rule.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { type RuleColumns, ruleOfColumns } from './enforcementRules.js';

export interface ModeledRule {
  rule: Rule;
  findings: RuleFindings;
}

/**
 * Stores a copy of the present enabled rules for a run, in order of evaluation; it replaces that of another attempt.
 */
export async function insertModeledRules(inside: OrgDb, runId: string): Promise<void> {
  const values = [inside.orgId, runId];
  await inside.run('delete from modeled_savings where org_id = $1 and run_id = $2', values);
  await inside.run(
    `insert into modeled_savings (org_id, run_id, rule_id, place, name, type, config, scope, mode)
     select org_id, $2::uuid, id, row_number() over (order by created_at, id), name, type, config, scope, mode
     from enforcement_rules where org_id = $1 and enabled and removed_at is null`,
    values,
  );
}

export async function listModeledRules(orgDb: OrgDb, runId: string): Promise<ModeledRule[]> {
  const rows = await orgDb.rows<RuleColumns & Omit<RuleFindings, 'ruleId'>>(
    `select rule_id as id, name, type, config, scope, true as enabled, mode, asked, blocked, downgraded, saved_usd as "savedPico",
       unpriced, unjudged, forgotten
     from modeled_savings where org_id = $1 and run_id = $2 order by place`,
    [orgDb.orgId, runId],
  );
  return rows.map(({ name, type, config, scope, enabled, mode, id, ...findings }) => ({
    rule: ruleOfColumns({ id, name, type, config, scope, enabled, mode }),
    findings: { ruleId: id, ...findings },
  }));
}

/** The effect of the rules on a call. */
export interface JudgedCall {
  eventId: string;
  timestampMicros: bigint;
  verdict: Verdict;
}

/** Stores the calls that a run's rules block or change, in the transaction that records the run's progress. */
export async function insertModeledCalls(
  inside: OrgDb,
  runId: string,
  judged: readonly JudgedCall[],
): Promise<void> {
  if (judged.length === 0) return;
  const usd = (pico: Pico | null) => (pico === null ? null : decimalFromPico(pico));
  await inside.run(
    `insert into modeled_calls (org_id, run_id, event_id, timestamp, rule_id, action, saved_usd, unpriced_reason)
     select $1::uuid, $2::uuid, c.*
     from unnest($3::uuid[], $4::timestamptz[], $5::uuid[], $6::text[], $7::numeric[], $8::text[]) c`,
    [
      inside.orgId,
      runId,
      plainArray(judged.map(({ eventId }) => eventId)),
      textArray(judged.map(({ timestampMicros }) => isoFromMicros(timestampMicros))),
      plainArray(judged.map(({ verdict }) => verdict.ruleId)),
      plainArray(judged.map(({ verdict }) => verdict.action)),
      plainArray(judged.map(({ verdict }) => usd(verdict.savedPico))),
      plainArray(judged.map(({ verdict }) => verdict.unpricedReason)),
    ],
  );
}

/** Stores the sums of each rule of a run, in the transaction that publishes them. */
export async function recordFindings(
  inside: OrgDb,
  runId: string,
  findings: readonly RuleFindings[],
): Promise<void> {
  for (const found of findings)
    await inside.run(
      `update modeled_savings set asked = $4, blocked = $5, downgraded = $6, saved_usd = $7, unpriced = $8::jsonb, unjudged = $9::jsonb,
         forgotten = $10
       where org_id = $1 and run_id = $2 and rule_id = $3`,
      [
        inside.orgId,
        runId,
        found.ruleId,
        found.asked,
        found.blocked,
        found.downgraded,
        decimalFromPico(found.savedPico),
        JSON.stringify(found.unpriced),
        JSON.stringify(found.unjudged),
        found.forgotten,
      ],
    );
}

/** Deletes at most `limit` calls of a run, rule by rule along the key; returns the number, 0 at the end. */
export async function removeModeledCalls(inside: OrgDb, runId: string, limit: number): Promise<number> {
  const run = [inside.orgId, runId];
  const [first] = await inside.rows<{ rule_id: string }>(
    'select rule_id from modeled_calls where org_id = $1 and run_id = $2 order by org_id, run_id, rule_id limit 1',
    run,
  );
  if (!first) return 0;
  const ofRule = 'org_id = $1 and run_id = $2 and rule_id = $3';
  const [next] = await inside.rows<{ at: string; id: string }>(
    `select timestamp::text as at, event_id as id from modeled_calls where ${ofRule} order by timestamp, event_id offset $4 limit 1`,
    [...run, first.rule_id, limit],
  );
  if (!next) return inside.run(`delete from modeled_calls where ${ofRule}`, [...run, first.rule_id]);
  return inside.run(
    `delete from modeled_calls where ${ofRule} and (timestamp, event_id) < ($4::timestamptz, $5::uuid)`,
    [...run, first.rule_id, next.at, next.id],
  );
}

/** A call that contributes to the savings, with fields of its event; null where the event no longer exists. */
export interface ModeledCall {
  eventId: string;
  timestampMicros: bigint;
  ruleId: string;
  action: ModeledAction;
  savedPico: Pico | null;
  unpricedReason: UnpricedReason | null;
  event: ModeledEvent | null;
}

interface ModeledEvent {
  provider: string;
  model: string;
  sessionId: string;
  teamId: string | null;
  feature: string | null;
  costPico: Pico;
}

/** Calls of a run's result, newest first; of one rule if named. At most one page of each rule is read. */
export async function listModeledCalls(
  orgDb: OrgDb,
  runId: string,
  page: {
    ruleId: string | undefined;
    after: { timestampMicros: bigint; id: string } | undefined;
    limit: number;
  },
): Promise<ModeledCall[]> {
  const values: SqlValue[] = [orgDb.orgId, runId, page.limit, page.ruleId ?? null];
  const after = page.after && [isoFromMicros(page.after.timestampMicros), page.after.id];
  const behind = after ? 'and (c.timestamp, c.event_id) < ($5::timestamptz, $6::uuid)' : '';
  const newest = 'order by c.timestamp desc, c.event_id desc';
  const rows = await orgDb.rows<
    Omit<ModeledCall, 'event'> & {
      [K in keyof ModeledEvent]: ModeledEvent[K] | (K extends 'provider' ? null : never);
    }
  >(
    `select c.event_id as "eventId", c.timestamp as "timestampMicros", c.rule_id as "ruleId", c.action, c.saved_usd as "savedPico",
       c.unpriced_reason as "unpricedReason", e.provider, e.model, e.session_id as "sessionId", e.team_id as "teamId",
       e.feature, e.cost_usd as "costPico"
     from (
       select c.* from modeled_savings r cross join lateral (
         select * from modeled_calls c where c.org_id = $1 and c.run_id = $2 and c.rule_id = r.rule_id ${behind} ${newest} limit $3) c
       where r.org_id = $1 and r.run_id = $2 and ($4::uuid is null or r.rule_id = $4) ${newest} limit $3) c
     left join events e on e.org_id = c.org_id and e.timestamp = c.timestamp and e.id = c.event_id
     ${newest}`,
    [...values, ...(after ?? [])],
  );
  return rows.map(({ provider, model, sessionId, teamId, feature, costPico, ...call }) => ({
    ...call,
    event: provider === null ? null : { provider, model, sessionId, teamId, feature, costPico },
  }));
}

/** Ended runs whose results were replaced, and runs without a result. */
const REPLACED = `
select id from (
  select id, is_standard, status, created_at,
    row_number() over (partition by is_standard, status = 'succeeded' order by created_at desc, id desc) as place
  from savings_runs where org_id = $1 and emptied_at is null and status not in ('queued', 'running')) r
where status <> 'succeeded' or (is_standard and place > $2)
  or (not is_standard and (place > $3 or created_at < now() - make_interval(days => $4)))
order by created_at, id`;

/** The number of results that are kept, and the time (usecases/installation/retention.ts). */
export interface KeptSavings {
  standardRuns: number;
  otherRuns: number;
  otherDays: number;
}

export async function listReplacedSavings(
  orgDb: OrgDb,
  { standardRuns, otherRuns, otherDays }: KeptSavings,
): Promise<string[]> {
  const values = [orgDb.orgId, standardRuns, otherRuns, otherDays];
  return (await orgDb.rows<{ id: string }>(REPLACED, values)).map(({ id }) => id);
}

/** Deletes the rest of a result whose calls are deleted. */
export async function emptySavingsRun(inside: OrgDb, runId: string): Promise<void> {
  await inside.run('delete from modeled_savings where org_id = $1 and run_id = $2', [inside.orgId, runId]);
  await inside.run('update savings_runs set emptied_at = now() where org_id = $1 and id = $2', [
    inside.orgId,
    runId,
  ]);
}

/** Deletes runs that were emptied more than `days` days ago; returns their number. */
export function deleteEmptiedSavings(orgDb: OrgDb, days: number): Promise<number> {
  return orgDb.run(
    'delete from savings_runs where org_id = $1 and emptied_at < now() - make_interval(days => $2)',
    [orgDb.orgId, days],
  );
}
