import { findUuid } from '../../domain/ids.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';
import { listRulesById, type StoredRule } from './enforcementRules.js';

/** Sums over blocked calls. */
export interface PreventedSums {
  calls: number;
  /** Calls of which nobody said what they would have cost: not in the sum, and not known to be free. */
  callsWithoutAmount: number;
  /** Exact sum of what the calls would have cost by their wrappers' estimates. */
  preventedPico: Pico;
}

export interface PreventedByRule extends PreventedSums {
  /** As the calls name it; null: they name none. */
  ruleText: string | null;
  /** The organization's rule of this id, removed ones too; null: it has none. */
  rule: StoredRule | null;
}

export interface PreventedSpend {
  totals: PreventedSums;
  /** The most prevented first, then by the text; at most RULES_SHOWN_MAX. */
  rules: PreventedByRule[];
  /** Of all rules that are not shown; null: there are none. With `rules` it adds up to the totals. */
  others: PreventedSums | null;
}

/** Ids that are shown: an organization has 100 rules at a time, but calls may name anything. */
export const RULES_SHOWN_MAX = 1_000;

interface SumRow {
  is_total: boolean;
  rule: string | null;
  calls: number;
  without_amount: number;
  prevented_usd: Pico;
}

/**
 * What enforcement rules have prevented, by rule, of the calls that were blocked in [fromMicros, toMicros) and are still
 * kept, those of a handle's project alone where it has one. One statement over the index of blocked calls: the work grows
 * with the calls that were blocked in the window.
 */
export async function sumPreventedSpend(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
): Promise<PreventedSpend> {
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(window.fromMicros), isoFromMicros(window.toMicros)];
  const rows = await orgDb.rows<SumRow>(
    `select grouping(blocked_rule_id) = 1 as is_total, blocked_rule_id as rule, count(*)::bigint as calls,
       count(*) filter (where prevented_usd is null)::bigint as without_amount, coalesce(sum(prevented_usd), 0) as prevented_usd
     from events
     where org_id = $1 and status = 'blocked' and superseded_by is null
       and timestamp >= $2::timestamptz and timestamp < $3::timestamptz${andOfProject(orgDb, values)}
     group by grouping sets ((blocked_rule_id), ())
     order by is_total desc, prevented_usd desc, calls desc, rule limit ${RULES_SHOWN_MAX + 2}`,
    values,
  );
  const total = rows.find((row) => row.is_total);
  if (!total) throw new Error('the grand total is always one row');
  const groups = rows.filter((row) => !row.is_total);
  const shown = groups.slice(0, RULES_SHOWN_MAX);
  const totals = sumsOf(total);
  return {
    totals,
    rules: await withRules(orgDb, shown),
    others: groups.length > shown.length ? less(totals, shown.map(sumsOf)) : null,
  };
}

function sumsOf(row: SumRow): PreventedSums {
  return { calls: row.calls, callsWithoutAmount: row.without_amount, preventedPico: row.prevented_usd };
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
  const uuidOf = ({ rule }: SumRow) => (rule === null ? undefined : findUuid('rul', rule));
  const ids = rows.map(uuidOf).filter((id) => id !== undefined);
  const known = new Map((await listRulesById(orgDb, ids)).map((rule) => [rule.id, rule]));
  return rows.map((row) => ({
    ruleText: row.rule,
    rule: known.get(uuidOf(row) ?? '') ?? null,
    ...sumsOf(row),
  }));
}
