import { isDeepStrictEqual } from 'node:util';
import type { OrgDb } from '../../db/orgDb.js';
import {
  insertRule,
  lockRule,
  removeRule,
  type StoredRule,
  updateRule,
} from '../../db/policies/enforcementRules.js';
import type { AuditAction } from '../../domain/access/auditLog.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../domain/ids.js';
import {
  findRuleFault,
  RULES_MAX,
  type Rule,
  type RuleConfig,
  type RuleMode,
  type RuleScope,
  type RuleType,
} from '../../domain/policies/enforcement/rule.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { remodelSavings } from './savings.js';

/** A changed rule; the dispatcher must be woken when the change opened a savings run. */
interface ChangedRule {
  rule: StoredRule;
  isRemodeled: boolean;
}

export function ruleNotFound(): DomainError {
  return new DomainError('not_found', 'there is no enforcement rule with this id');
}

/** The uuid in a rule's public id. Error not_found. */
export function uuidOfRule(id: string): string {
  const uuid = findUuid('rul', id);
  if (uuid === undefined) throw ruleNotFound();
  return uuid;
}

/** Stores a rule after the existing ones. Errors: invalid_body, too_many_items. */
export async function createRule(
  orgDb: OrgDb,
  wanted: Pick<Rule, 'name' | 'type' | 'config' | 'scope' | 'enabled' | 'mode'>,
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<ChangedRule> {
  const rule = { ...wanted, id: newUuid(nowMicros) } as Rule;
  assertRule(rule);
  return orgDb.transaction(async (inside) => {
    const made = await insertRule(inside, { ...rule, createdBy: author.caller.keyId });
    if (!made)
      throw new DomainError(
        'too_many_items',
        `an organization can have ${RULES_MAX} enforcement rules: remove some that are no longer used`,
      );
    const isRemodeled = await remodel(inside, nowMicros, made);
    await record(inside, author, 'enforcement_rule.created', made);
    return { rule: made, isRemodeled };
  });
}

/** A change of a rule; absent fields keep their values. */
interface RuleChange {
  name: string | null | undefined;
  /** Parses the given configuration by the rule's type. */
  configFor: ((type: RuleType) => RuleConfig) | undefined;
  scope: RuleScope | undefined;
  enabled: boolean | undefined;
  mode: RuleMode | undefined;
}

/** Changes a rule. Errors not_found, rule_removed, invalid_body. */
export async function changeRule(
  orgDb: OrgDb,
  id: string,
  change: RuleChange,
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<ChangedRule> {
  return orgDb.transaction(async (inside) => {
    const before = await lockRule(inside, id);
    if (!before) throw ruleNotFound();
    if (before.removedAtMicros !== null)
      throw new DomainError('rule_removed', 'the rule was removed: make another one');
    const wanted = {
      ...before,
      name: change.name === undefined ? before.name : change.name,
      config: change.configFor?.(before.type) ?? before.config,
      scope: change.scope ?? before.scope,
      enabled: change.enabled ?? before.enabled,
      mode: change.mode ?? before.mode,
    } as StoredRule;
    assertRule(wanted);
    if (isDeepStrictEqual(before, wanted)) return { rule: before, isRemodeled: false };
    const after = await updateRule(inside, wanted);
    if (!after) throw ruleNotFound();
    const isRemodeled = await remodel(inside, nowMicros, before, after);
    await record(inside, author, 'enforcement_rule.changed', after);
    return { rule: after, isRemodeled };
  });
}

/** Removes a rule from the wrappers' configuration; it stays readable. Error: not_found. */
export async function withdrawRule(
  orgDb: OrgDb,
  id: string,
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<ChangedRule> {
  return orgDb.transaction(async (inside) => {
    const rule = await removeRule(inside, id);
    if (!rule) throw ruleNotFound();
    const isRemodeled = await remodel(inside, nowMicros, rule);
    await record(inside, author, 'enforcement_rule.removed', rule);
    return { rule, isRemodeled };
  });
}

function assertRule(rule: Rule): void {
  const fault = findRuleFault(rule);
  if (fault) throw invalidField('body', fault.field, fault.message, 'invalid_body');
}

/** Starts a savings run for the changed rules; a rule that is disabled before and after needs none. */
async function remodel(inside: OrgDb, nowMicros: bigint, ...forms: readonly StoredRule[]): Promise<boolean> {
  if (forms.every(({ enabled }) => !enabled)) return false;
  await remodelSavings(inside, nowMicros);
  return true;
}

function record(inside: OrgDb, author: RequestAuthor, action: AuditAction, rule: StoredRule): Promise<void> {
  const { id, name, type, mode, enabled } = rule;
  const subject = { type: 'enforcement_rule', id: publicId('rul', id) };
  return recordAction(inside, author, action, subject, { name, type, mode, enabled });
}
