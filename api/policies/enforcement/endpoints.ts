import { findRule, listRules } from '../../../db/policies/enforcementRules.js';
import type { RuleType } from '../../../domain/policies/enforcement/rule.js';
import {
  changeRule,
  createRule,
  ruleNotFound,
  uuidOfRule,
  withdrawRule,
} from '../../../usecases/policies/enforcementRules.js';
import { getWrapperPatterns } from '../../../usecases/policies/patternTables.js';
import { endpointGroup } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { matchesEntityTag } from '../../pipeline/answer.js';
import {
  configOfType,
  createRuleBody,
  ENFORCEMENT_CONFIG_PATH,
  ENFORCEMENT_PATTERNS_PATH,
  enforcementConfigResponse,
  enforcementPatternsResponse,
  listRulesQuery,
  listRulesResponse,
  presentEnforcementConfig,
  presentEnforcementPatterns,
  presentRule,
  RULES_PATH,
  ruleParams,
  ruleSchema,
  updateRuleBody,
} from './wire.js';

const routes = endpointGroup({
  tag: 'Enforcement',
  access: {
    read: { scope: 'enforcement:read', workspace: 'shared' },
    write: { scope: 'enforcement:write', workspace: 'refused' },
  },
});

routes.post(RULES_PATH, {
  operationId: 'createEnforcementRule',
  summary: 'Make an enforcement rule',
  description:
    'Wrappers hear of it when they next ask for their configuration. It stands behind the rules that are there: of several that a call breaks the first one counts (docs/enforcement.md).',
  body: createRuleBody,
  responses: {
    201: { description: 'The rule', schema: ruleSchema, headers: { Location: 'The rule' } },
  },
  problems: ['invalid_body', 'too_many_items'],
  async handle(request, deps) {
    const { body, orgDb, afterCommit } = request;
    const { name, scope, enabled, mode, type } = body;
    const wanted = { name, type, config: configOfType(type, body.config), scope, enabled, mode };
    const { rule, isRemodeled } = await createRule(orgDb, wanted, request, deps.nowMicros());
    if (isRemodeled) afterCommit(() => deps.kickDispatcher());
    const shown = presentRule(rule);
    return { status: 201, headers: { Location: `${RULES_PATH}/${shown.id}` }, body: shown };
  },
});

routes.get(RULES_PATH, {
  operationId: 'listEnforcementRules',
  csv: 'enforcement-rules',
  summary: 'Enforcement rules, in the order in which they are asked',
  description: 'Oldest first, switched off ones too; removed ones are not among them.',
  query: listRulesQuery,
  responses: { 200: { description: 'A page of rules', schema: listRulesResponse } },
  async handle({ query, orgDb }) {
    const { limit, offset, ...filter } = query;
    const found = await listRules(orgDb, filter, { limit: limit + 1, offset });
    const { shown, page } = pageOf(found, query);
    return { status: 200, body: { enforcement_rules: shown.map(presentRule), ...page } };
  },
});

routes.get(`${RULES_PATH}/{id}`, {
  operationId: 'getEnforcementRule',
  summary: 'One enforcement rule',
  description: 'Also one that was removed, so that the calls that it blocked can be understood.',
  params: ruleParams,
  responses: { 200: { description: 'The rule', schema: ruleSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const rule = await findRule(orgDb, uuidOfRule(params.id));
    if (!rule) throw ruleNotFound();
    return { status: 200, body: presentRule(rule) };
  },
});

routes.patch(`${RULES_PATH}/{id}`, {
  operationId: 'updateEnforcementRule',
  summary: 'Change an enforcement rule, or switch it off or on',
  description:
    'Absent fields keep their values. The type and the place in the order never change, because calls name the rule by its id.',
  params: ruleParams,
  body: updateRuleBody,
  responses: { 200: { description: 'The rule as it is now', schema: ruleSchema } },
  problems: ['not_found', 'invalid_body', 'rule_removed'],
  async handle(request, deps) {
    const { params, body, orgDb, afterCommit } = request;
    const { name, config, scope, enabled, mode } = body;
    const configFor = config && ((type: RuleType) => configOfType(type, config));
    const change = { name, configFor, scope, enabled, mode };
    const id = uuidOfRule(params.id);
    const { rule, isRemodeled } = await changeRule(orgDb, id, change, request, deps.nowMicros());
    if (isRemodeled) afterCommit(() => deps.kickDispatcher());
    return { status: 200, body: presentRule(rule) };
  },
});

routes.delete(`${RULES_PATH}/{id}`, {
  operationId: 'removeEnforcementRule',
  summary: 'Remove an enforcement rule',
  description:
    'Wrappers no longer receive it. Calls that it blocked still name it, and it stays readable by its id.',
  params: ruleParams,
  responses: { 204: { description: 'Removed' } },
  problems: ['not_found'],
  async handle(request, deps) {
    const { params, orgDb, afterCommit } = request;
    const { isRemodeled } = await withdrawRule(orgDb, uuidOfRule(params.id), request, deps.nowMicros());
    if (isRemodeled) afterCommit(() => deps.kickDispatcher());
    return { status: 204 };
  },
});

/** The client may keep a copy and must revalidate it on each use. */
const CONFIG_CACHE_CONTROL = 'private, no-cache';

routes.get(ENFORCEMENT_CONFIG_PATH, {
  operationId: 'getEnforcementConfig',
  summary: 'The rules that wrappers judge calls by',
  description:
    'The enabled ones, in their order. Send the ETag back as If-None-Match to hear whether they changed; ask again after poll_seconds (docs/enforcement.md).',
  access: { scope: 'ingest', workspace: 'shared' },
  responses: {
    200: {
      description: 'The rules',
      schema: enforcementConfigResponse,
      headers: { ETag: 'The version, quoted', 'Cache-Control': 'The copy must be revalidated' },
    },
    304: { description: 'The copy named by If-None-Match is the current one' },
  },
  async handle({ header, orgDb }) {
    const config = presentEnforcementConfig(await listRules(orgDb, { enabled: true }));
    const etag = `"${config.version}"`;
    const headers = { ETag: etag, 'Cache-Control': CONFIG_CACHE_CONTROL };
    if (matchesEntityTag(header('if-none-match'), etag)) return { status: 304, headers };
    return { status: 200, headers, body: config };
  },
});

routes.get(ENFORCEMENT_PATTERNS_PATH, {
  operationId: 'getEnforcementPatterns',
  summary: 'The banned patterns as tables for wrappers',
  description:
    'For wrappers whose prompts stay in the application: they search them and send the verdict alone (docs/policies.md). The text of the patterns is not included. Send the ETag back as If-None-Match.',
  access: { scope: 'ingest', workspace: 'shared' },
  responses: {
    200: {
      description: 'The patterns of the enabled policy',
      schema: enforcementPatternsResponse,
      headers: { ETag: 'The version, quoted', 'Cache-Control': 'The copy must be revalidated' },
    },
    304: { description: 'The copy named by If-None-Match is the current one' },
  },
  async handle({ header, orgDb }) {
    const body = presentEnforcementPatterns(await getWrapperPatterns(orgDb));
    const etag = `"${body.version}"`;
    const headers = { ETag: etag, 'Cache-Control': CONFIG_CACHE_CONTROL };
    if (matchesEntityTag(header('if-none-match'), etag)) return { status: 304, headers };
    return { status: 200, headers, body };
  },
});

export const enforcementEndpoints = routes.endpoints;
