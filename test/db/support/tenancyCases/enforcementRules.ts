import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as rules from '../../../../db/policies/enforcementRules.js';
import { sumPreventedSpend } from '../../../../db/policies/enforcementRules.js';
import { changeRule, createRule, withdrawRule } from '../../../../usecases/policies/enforcementRules.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const ruleOf = (id: string, name: string): rules.NewRule => ({
  id,
  name,
  type: 'max_tool_calls',
  config: { maxToolCalls: 5 },
  scope: { teamId: name, feature: null, model: null },
  enabled: true,
  mode: 'block',
  createdBy: name,
});

const NOW = 1_780_000_000_000_000n;
const ALWAYS = { fromMicros: 0n, toMicros: 4_000_000_000_000_000n };

/** Functions of enforcement rules and the spend that they prevented. */
export const RULE_CASES: Record<string, TenancyCase> = {
  insertRule: (db) => rules.insertRule(db, ruleOf(randomUUID(), 'new')),
  listRules: (db) => rules.listRules(db),
  listRulesById: (db, { ruleId }) => rules.listRulesById(db, [ruleId]),
  findRule: (db, { ruleId }) => rules.findRule(db, ruleId),
  lockRule: (db, { ruleId }) => rules.lockRule(db, ruleId),
  updateRule: (db, { ruleId }) => rules.updateRule(db, ruleOf(ruleId, 'taken over')),
  removeRule: (db, { ruleId }) => rules.removeRule(db, ruleId),
  createRule: (db, { marker }) => createRule(db, ruleOf('', 'new'), anAuthor(marker), NOW),
  changeRule: (db, { ruleId, marker }) =>
    changeRule(
      db,
      ruleId,
      { name: 'taken over', configFor: undefined, scope: undefined, enabled: undefined, mode: undefined },
      anAuthor(marker),
      NOW,
    ),
  withdrawRule: (db, { ruleId, marker }) => withdrawRule(db, ruleId, anAuthor(marker), NOW),
  sumPreventedSpend: (db) => sumPreventedSpend(db, ALWAYS),
};

/** Creates the data of the cases above; the blocked call is among the organization's calls. */
export async function makeRules(db: OrgDb, marker: string): Promise<{ ruleId: string }> {
  const ruleId = randomUUID();
  await rules.insertRule(db, ruleOf(ruleId, marker));
  return { ruleId };
}
