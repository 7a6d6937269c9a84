import { findUuid } from '../../domain/ids.js';
import { decimalFromPico, type Pico, picoFromDecimal } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import {
  RULES_MAX,
  type Rule,
  type RuleConfig,
  type RuleMode,
  type RuleScope,
  type RuleType,
} from '../../domain/policies/enforcement/rule.js';
import { lockByName } from '../locks.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';
import { plainArray } from '../pgArray.js';

/** A stored rule; a removed one is still referenced by the calls that it blocked. */
export type StoredRule = Rule & {
  createdAtMicros: bigint;
  updatedAtMicros: bigint;
  createdBy: string;
  removedAtMicros: bigint | null;
};

interface RuleRow {
  id: string;
  name: string | null;
  type: RuleType;
  config: Record<string, unknown>;
  scope: { team_id?: string; feature?: string; model?: string };
  enabled: boolean;
  mode: RuleMode;
  created_at: bigint;
  updated_at: bigint;
  created_by: string;
  removed_at: bigint | null;
}

const COLUMNS =
  'id, name, type, config, scope, enabled, mode, created_at, updated_at, created_by, removed_at';
/** Rules are evaluated in the order of their creation. */
const IN_ORDER = 'order by created_at, id';

function fromRuleRow(row: RuleRow): StoredRule {
  return {
    ...ruleOfColumns(row),
    createdAtMicros: row.created_at,
    updatedAtMicros: row.updated_at,
    createdBy: row.created_by,
    removedAtMicros: row.removed_at,
  };
}

/** The columns that define a rule; copies of rules have them too. */
export type RuleColumns = Pick<RuleRow, 'id' | 'name' | 'type' | 'config' | 'scope' | 'enabled' | 'mode'>;

export function ruleOfColumns(row: RuleColumns): Rule {
  const scope: RuleScope = {
    teamId: row.scope.team_id ?? null,
    feature: row.scope.feature ?? null,
    model: row.scope.model ?? null,
  };
  return {
    id: row.id,
    name: row.name,
    ...configOfRow(row.type, row.config),
    scope,
    enabled: row.enabled,
    mode: row.mode,
  };
}

type TypedConfig = { [T in RuleType]: Pick<Extract<Rule, { type: T }>, 'type' | 'config'> }[RuleType];

/** Restores the variant of a config that the API validated before it was stored. */
function configOfRow(type: RuleType, config: Record<string, unknown>): TypedConfig {
  switch (type) {
    case 'token_ceiling':
      return { type, config: { maxTokens: Number(config.max_tokens) } };
    case 'session_budget_usd':
      return { type, config: { budgetPico: picoFromDecimal(String(config.budget_usd)) ?? 0n } };
    case 'duplicate_window_seconds':
      return { type, config: { windowSeconds: Number(config.window_seconds) } };
    case 'max_tool_calls':
      return { type, config: { maxToolCalls: Number(config.max_tool_calls) } };
    case 'model_downgrade':
      return { type, config: { toModel: String(config.to_model) } };
  }
}

/** A config in its stored form: dollars as a decimal text. */
function configForRow(config: RuleConfig): Record<string, string | number> {
  if ('maxTokens' in config) return { max_tokens: config.maxTokens };
  if ('budgetPico' in config) return { budget_usd: decimalFromPico(config.budgetPico) };
  if ('windowSeconds' in config) return { window_seconds: config.windowSeconds };
  if ('maxToolCalls' in config) return { max_tool_calls: config.maxToolCalls };
  return { to_model: config.toModel };
}

function scopeForRow({ teamId, feature, model }: RuleScope): Record<string, string> {
  return {
    ...(teamId === null ? {} : { team_id: teamId }),
    ...(feature === null ? {} : { feature }),
    ...(model === null ? {} : { model }),
  };
}

/** The entered fields; the database sets the others. */
export type NewRule = Rule & { createdBy: string };

/** Stores a rule after all others, in a transaction under a lock; undefined at the limit. */
export async function insertRule(inside: OrgDb, rule: NewRule): Promise<StoredRule | undefined> {
  await lockByName(inside, 'enforcementRules', inside.orgId);
  const [row] = await inside.rows<RuleRow>(
    `with told as materialized (select clock_timestamp() as at)
     insert into enforcement_rules (org_id, id, name, type, config, scope, enabled, mode, created_by, created_at, updated_at)
     select $1::uuid, $2::uuid, $3::text, $4::text, $5::jsonb, $6::jsonb, $7::boolean, $8::text, $9::text, at, at
     from told where (select count(*) from enforcement_rules where org_id = $1 and removed_at is null) < $10
     returning ${COLUMNS}`,
    [
      inside.orgId,
      rule.id,
      rule.name,
      rule.type,
      JSON.stringify(configForRow(rule.config)),
      JSON.stringify(scopeForRow(rule.scope)),
      rule.enabled,
      rule.mode,
      rule.createdBy,
      RULES_MAX,
    ],
  );
  return row && fromRuleRow(row);
}

export interface RuleFilter {
  type?: RuleType | undefined;
  enabled?: boolean | undefined;
  mode?: RuleMode | undefined;
}

/** Rules that are not removed, in order of evaluation. */
export async function listRules(
  orgDb: OrgDb,
  filter: RuleFilter = {},
  page: { limit: number; offset: number } = { limit: RULES_MAX, offset: 0 },
): Promise<StoredRule[]> {
  const rows = await orgDb.rows<RuleRow>(
    `select ${COLUMNS} from enforcement_rules where org_id = $1 and removed_at is null and ($2::text is null or type = $2)
       and ($3::boolean is null or enabled = $3) and ($4::text is null or mode = $4) ${IN_ORDER} limit $5 offset $6`,
    [orgDb.orgId, filter.type ?? null, filter.enabled ?? null, filter.mode ?? null, page.limit, page.offset],
  );
  return rows.map(fromRuleRow);
}

/** Rules by uuid, including removed ones; unknown ids are skipped. */
export async function listRulesById(orgDb: OrgDb, ids: readonly string[]): Promise<StoredRule[]> {
  if (ids.length === 0) return [];
  const rows = await orgDb.rows<RuleRow>(
    `select ${COLUMNS} from enforcement_rules where org_id = $1 and id = any($2::uuid[]) ${IN_ORDER}`,
    [orgDb.orgId, plainArray(ids)],
  );
  return rows.map(fromRuleRow);
}

export async function findRule(orgDb: OrgDb, id: string): Promise<StoredRule | undefined> {
  return (await listRulesById(orgDb, [id]))[0];
}

/** `findRule` with a lock: the rule cannot change until the transaction ends. */
export async function lockRule(inside: OrgDb, id: string): Promise<StoredRule | undefined> {
  const rows = await inside.rows<RuleRow>(
    `select ${COLUMNS} from enforcement_rules where org_id = $1 and id = $2 for update`,
    [inside.orgId, id],
  );
  return rows[0] && fromRuleRow(rows[0]);
}

export async function updateRule(orgDb: OrgDb, rule: Rule): Promise<StoredRule | undefined> {
  const rows = await orgDb.rows<RuleRow>(
    `update enforcement_rules set name = $3, config = $4::jsonb, scope = $5::jsonb, enabled = $6, mode = $7, updated_at = clock_timestamp()
     where org_id = $1 and id = $2 and removed_at is null returning ${COLUMNS}`,
    [
      orgDb.orgId,
      rule.id,
      rule.name,
      JSON.stringify(configForRow(rule.config)),
      JSON.stringify(scopeForRow(rule.scope)),
      rule.enabled,
      rule.mode,
    ],
  );
  return rows[0] && fromRuleRow(rows[0]);
}

/**
 * Removes a rule from the list and the wrappers' configuration; undefined: it does not exist or was already removed.
 */
export async function removeRule(orgDb: OrgDb, id: string): Promise<StoredRule | undefined> {
  const rows = await orgDb.rows<RuleRow>(
    `update enforcement_rules set removed_at = clock_timestamp() where org_id = $1 and id = $2 and removed_at is null
     returning ${COLUMNS}`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromRuleRow(rows[0]);
}

export interface PreventedSums {
  calls: number;
  /** Calls without a cost estimate: they are not in the sum, and may not have been free. */
  callsWithoutAmount: number;
  /** Exact sum of the blocked calls' costs as their wrappers estimated them. */
  preventedPico: Pico;
}

interface PreventedByRule extends PreventedSums {
  /** As the calls name it; null: they name none. */
  ruleText: string | null;
  /** The organization's rule with this id, including removed ones; null: it has none. */
  rule: StoredRule | null;
}

export interface PreventedSpend {
  totals: PreventedSums;
  /** Most prevented first, then by text; at most RULES_SHOWN_MAX. */
  rules: PreventedByRule[];
  /** Sums of the rules that are not listed; null: there are none. With `rules` it adds up to the totals. */
  others: PreventedSums | null;
}

/** Most rule ids that are listed: an organization has 100 rules at a time, but calls may name any id. */
export const RULES_SHOWN_MAX = 1_000;

interface SumRow extends PreventedSums {
  isTotal: boolean;
  ruleText: string | null;
}

/** Sums blocked calls in [fromMicros, toMicros) by rule; time grows with the blocked calls of the window. */
export async function sumPreventedSpend(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
): Promise<PreventedSpend> {
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(window.fromMicros), isoFromMicros(window.toMicros)];
  const rows = await orgDb.rows<SumRow>(
    `select grouping(blocked_rule_id) = 1 as "isTotal", blocked_rule_id as "ruleText", count(*)::bigint as calls,
       count(*) filter (where prevented_usd is null)::bigint as "callsWithoutAmount", coalesce(sum(prevented_usd), 0) as "preventedPico"
     from events
     where org_id = $1 and status = 'blocked' and superseded_by is null
       and timestamp >= $2::timestamptz and timestamp < $3::timestamptz${andOfProject(orgDb, values)}
     group by grouping sets ((blocked_rule_id), ())
     order by "isTotal" desc, "preventedPico" desc, calls desc, "ruleText" limit ${RULES_SHOWN_MAX + 2}`,
    values,
  );
  const total = rows.find((row) => row.isTotal);
  if (!total) throw new Error('the grand total is always one row');
  const groups = rows.filter((row) => !row.isTotal);
  const shown = groups.slice(0, RULES_SHOWN_MAX);
  const totals = sumsOf(total);
  return {
    totals,
    rules: await withRules(orgDb, shown),
    others: groups.length > shown.length ? less(totals, shown.map(sumsOf)) : null,
  };
}

function sumsOf({ calls, callsWithoutAmount, preventedPico }: SumRow): PreventedSums {
  return { calls, callsWithoutAmount, preventedPico };
}

function less(totals: PreventedSums, parts: readonly PreventedSums[]): PreventedSums {
  return parts.reduce(
    (rest, part) => ({
      calls: rest.calls - part.calls,
      callsWithoutAmount: rest.callsWithoutAmount - part.callsWithoutAmount,
      preventedPico: rest.preventedPico - part.preventedPico,
    }),
    totals,
  );
}

async function withRules(orgDb: OrgDb, rows: readonly SumRow[]): Promise<PreventedByRule[]> {
  const uuidOf = ({ ruleText }: SumRow) => (ruleText === null ? undefined : findUuid('rul', ruleText));
  const ids = rows.map(uuidOf).filter((id) => id !== undefined);
  const known = new Map((await listRulesById(orgDb, ids)).map((rule) => [rule.id, rule]));
  return rows.map((row) => ({
    ...{ ruleText: row.ruleText, rule: known.get(uuidOf(row) ?? '') ?? null },
    ...sumsOf(row),
  }));
}
