import type { OrgDb } from '../../../db/orgDb.js';
import {
  findRule,
  insertRule,
  listRules,
  lockRule,
  removeRule,
  type StoredRule,
  updateRule,
} from '../../../db/policies/enforcementRules.js';
import type { AuditDetails } from '../../../domain/access/auditLog/actions.js';
import { DomainError, invalidField } from '../../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../../domain/ids.js';
import { findRuleFault, RULES_MAX, type Rule } from '../../../domain/policies/enforcement/rule.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { remodelSavings } from '../../../usecases/policies/openSavingsRun.js';
import type { ApiDeps } from '../../deps.js';
import { defineEndpoint, type Endpoint, type EndpointRequest } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { matchesEntityTag } from '../../pipeline/entityTag.js';
import {
  configOfType,
  createRuleBody,
  ENFORCEMENT_CONFIG_PATH,
  enforcementConfigResponse,
  listRulesQuery,
  listRulesResponse,
  presentEnforcementConfig,
  presentRule,
  RULES_PATH,
  ruleParams,
  ruleSchema,
  updateRuleBody,
} from './wire.js';

const READ = { scope: 'enforcement:read', workspace: 'shared' } as const;
const WRITE = { scope: 'enforcement:write', workspace: 'refused' } as const;

function notFound(): DomainError {
  return new DomainError('not_found', 'there is no enforcement rule with this id');
}

function uuidOfRule(id: string): string {
  const uuid = findUuid('rul', id);
  if (uuid === undefined) throw notFound();
  return uuid;
}

/** A rule that is about to be changed, locked. Errors: not_found, rule_removed. */
async function getOpenRule(inside: OrgDb, id: string): Promise<StoredRule> {
  const rule = await lockRule(inside, id);
  if (!rule) throw notFound();
  if (rule.removedAtMicros !== null) {
    throw new DomainError('rule_removed', 'the rule was removed: make another one');
  }
  return rule;
}

function assertRule(rule: Rule): void {
  const fault = findRuleFault(rule);
  if (fault) throw invalidField('body', fault.field, fault.message, 'invalid_body');
}

/** Has what the rules would have saved modeled anew; a rule that is off before and after changes nothing of it. */
async function remodel(
  inside: OrgDb,
  { afterCommit }: Pick<EndpointRequest<unknown, unknown, unknown>, 'afterCommit'>,
  deps: ApiDeps,
  ...forms: readonly StoredRule[]
): Promise<void> {
  if (forms.every(({ enabled }) => !enabled)) return;
  await remodelSavings(inside, deps.nowMicros());
  afterCommit(() => deps.kickDispatcher());
}

const subjectOf = ({ id }: Rule) => ({ type: 'enforcement_rule', id: publicId('rul', id) });

function detailsOf({ name, type, mode, enabled }: Rule): AuditDetails {
  return { name, type, mode, enabled };
}

const createRule = defineEndpoint({
  operationId: 'createEnforcementRule',
  method: 'post',
  path: RULES_PATH,
  tag: 'Enforcement',
  summary: 'Make an enforcement rule',
  description:
    'Wrappers hear of it when they next ask for their configuration. It stands behind the rules that are there: of several that a call breaks the first one counts (docs/enforcement.md).',
  access: WRITE,
  body: createRuleBody,
  responses: {
    201: { description: 'The rule', schema: ruleSchema, headers: { Location: 'The rule' } },
  },
  problems: ['invalid_body', 'too_many_items'],
  async handle(request, deps) {
    const { body, orgDb, caller } = request;
    const { name, scope, enabled, mode, type } = body;
    const rule = {
      id: newUuid(deps.nowMicros()),
      name,
      type,
      config: configOfType(type, body.config),
      scope,
      enabled,
      mode,
    } as Rule;
    assertRule(rule);
    const stored = await orgDb.transaction(async (inside) => {
      const made = await insertRule(inside, { ...rule, createdBy: caller.keyId });
      if (!made) {
        throw new DomainError(
          'too_many_items',
          `an organization can have ${RULES_MAX} enforcement rules: remove some that are no longer used`,
        );
      }
      await remodel(inside, request, deps, made);
      await recordAction(inside, request, 'enforcement_rule.created', subjectOf(made), detailsOf(made));
      return made;
    });
    const shown = presentRule(stored);
    return { status: 201, headers: { Location: `${RULES_PATH}/${shown.id}` }, body: shown };
  },
});

const listRulesEndpoint = defineEndpoint({
  operationId: 'listEnforcementRules',
  method: 'get',
  path: RULES_PATH,
  tag: 'Enforcement',
  summary: 'Enforcement rules, in the order in which they are asked',
  description: 'Oldest first, switched off ones too; removed ones are not among them.',
  access: READ,
  query: listRulesQuery,
  responses: { 200: { description: 'A page of rules', schema: listRulesResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const { limit, offset, ...filter } = query;
    const found = await listRules(orgDb, filter, { limit: limit + 1, offset });
    const { shown, page } = pageOf(found, query);
    return { status: 200, body: { enforcement_rules: shown.map(presentRule), ...page } };
  },
});

const getRule = defineEndpoint({
  operationId: 'getEnforcementRule',
  method: 'get',
  path: `${RULES_PATH}/{id}`,
  tag: 'Enforcement',
  summary: 'One enforcement rule',
  description: 'Also one that was removed, so that the calls that it blocked can be understood.',
  access: READ,
  params: ruleParams,
  responses: { 200: { description: 'The rule', schema: ruleSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const rule = await findRule(orgDb, uuidOfRule(params.id));
    if (!rule) throw notFound();
    return { status: 200, body: presentRule(rule) };
  },
});

const updateRuleEndpoint = defineEndpoint({
  operationId: 'updateEnforcementRule',
  method: 'patch',
  path: `${RULES_PATH}/{id}`,
  tag: 'Enforcement',
  summary: 'Change an enforcement rule, or switch it off or on',
  description:
    'What is not named stays. The type stays for good, since calls name the rule by its id; so does its place in the order.',
  access: WRITE,
  params: ruleParams,
  body: updateRuleBody,
  responses: { 200: { description: 'The rule as it is now', schema: ruleSchema } },
  problems: ['not_found', 'invalid_body', 'rule_removed'],
  async handle(request, deps) {
    const { params, body, orgDb } = request;
    const id = uuidOfRule(params.id);
    const rule = await orgDb.transaction(async (inside) => {
      const before = await getOpenRule(inside, id);
      const wanted = {
        ...before,
        name: body.name === undefined ? before.name : body.name,
        config: body.config === undefined ? before.config : configOfType(before.type, body.config),
        scope: body.scope ?? before.scope,
        enabled: body.enabled ?? before.enabled,
        mode: body.mode ?? before.mode,
      } as StoredRule;
      assertRule(wanted);
      if (isSameRule(before, wanted)) return before;
      const after = await updateRule(inside, wanted);
      if (!after) throw notFound();
      await remodel(inside, request, deps, before, after);
      await recordAction(inside, request, 'enforcement_rule.changed', subjectOf(after), detailsOf(after));
      return after;
    });
    return { status: 200, body: presentRule(rule) };
  },
});

/** Whether nothing of what may change differs. */
function isSameRule(one: StoredRule, other: StoredRule): boolean {
  const [a, b] = [presentRule(one), presentRule(other)];
  return JSON.stringify(a) === JSON.stringify(b);
}

const removeRuleEndpoint = defineEndpoint({
  operationId: 'removeEnforcementRule',
  method: 'delete',
  path: `${RULES_PATH}/{id}`,
  tag: 'Enforcement',
  summary: 'Remove an enforcement rule',
  description:
    'Wrappers no longer hear of it. The calls that it blocked go on naming it, and under its id it stays readable.',
  access: WRITE,
  params: ruleParams,
  responses: { 204: { description: 'Removed' } },
  problems: ['not_found'],
  async handle(request, deps) {
    const { params, orgDb } = request;
    const id = uuidOfRule(params.id);
    await orgDb.transaction(async (inside) => {
      const removed = await removeRule(inside, id);
      if (!removed) throw notFound();
      await remodel(inside, request, deps, removed);
      await recordAction(inside, request, 'enforcement_rule.removed', subjectOf(removed), detailsOf(removed));
    });
    return { status: 204 };
  },
});

/** A copy may be kept by whoever asked, who asks each time whether it still holds. */
const CONFIG_CACHE_CONTROL = 'private, no-cache';

const getConfig = defineEndpoint({
  operationId: 'getEnforcementConfig',
  method: 'get',
  path: ENFORCEMENT_CONFIG_PATH,
  tag: 'Enforcement',
  summary: 'The rules that wrappers judge calls by',
  description:
    'The enabled ones, in their order. Send the ETag back as If-None-Match to hear whether they changed; ask again after poll_seconds (docs/enforcement.md).',
  access: { scope: 'ingest', workspace: 'shared' },
  responses: {
    200: {
      description: 'The rules',
      schema: enforcementConfigResponse,
      headers: { ETag: 'The version, quoted', 'Cache-Control': 'That a copy is to be asked after' },
    },
    304: { description: 'The copy named by If-None-Match is the current one' },
  },
  problems: [],
  async handle({ header, orgDb }) {
    const config = presentEnforcementConfig(await listRules(orgDb, { enabled: true }));
    const etag = `"${config.version}"`;
    const headers = { ETag: etag, 'Cache-Control': CONFIG_CACHE_CONTROL };
    if (matchesEntityTag(header('if-none-match'), etag)) return { status: 304, headers };
    return { status: 200, headers, body: config };
  },
});

export const enforcementEndpoints: readonly Endpoint[] = [
  createRule,
  listRulesEndpoint,
  getRule,
  updateRuleEndpoint,
  removeRuleEndpoint,
  getConfig,
];
