import { listPolicies } from '../../../db/policies/policies.js';
import { PREVIEW_EVENTS_MAX } from '../../../domain/policies/judge.js';
import { listNotEvaluated } from '../../../usecases/policies/patternTables.js';
import { previewPolicy, recordPreview, savePolicy } from '../../../usecases/policies/policies.js';
import { endpointGroup } from '../../endpoint.js';
import { assertPayloads } from '../../pipeline/auth.js';
import {
  configOf,
  listPoliciesResponse,
  POLICIES_PATH,
  policyBody,
  policyParams,
  presentPolicy,
  presentPreview,
  presentPutPolicy,
  previewResponse,
  putPolicyResponse,
} from './wire.js';

const routes = endpointGroup({
  tag: 'Policies',
  access: {
    read: { scope: 'policies:read', workspace: 'shared' },
    write: { scope: 'policies:write', workspace: 'refused' },
  },
});

routes.get(POLICIES_PATH, {
  operationId: 'listPolicies',
  summary: 'Every policy of the organization, enabled or not',
  responses: {
    200: {
      description: 'At most one of each type, in the order in which they were first put',
      schema: listPoliciesResponse,
    },
  },
  async handle({ orgDb }) {
    const policies = await listPolicies(orgDb);
    const presented = policies.map(async (policy) => presentPolicy(policy, await listNotEvaluated(policy)));
    return { status: 200, body: { policies: await Promise.all(presented) } };
  },
});

routes.put(`${POLICIES_PATH}/{policy_type}`, {
  operationId: 'putPolicy',
  summary: 'Make the policy of a type, or replace it',
  description:
    'Applies on every instance to each event that is sent after the answer; stored events are not judged again. Regular expressions that RE2 does not take, and those that take too long, are stored, passed over, and named in `warnings`. A policy is not deleted: put it with `enabled` false.',
  params: policyParams,
  body: policyBody,
  responses: { 200: { description: 'The policy as it is now', schema: putPolicyResponse } },
  problems: ['invalid_policy_type'],
  async handle(request) {
    const { params, body, orgDb } = request;
    const typed = configOf(params.policy_type, body.config);
    return { status: 200, body: presentPutPolicy(await savePolicy(orgDb, typed, body.enabled, request)) };
  },
});

routes.post(`${POLICIES_PATH}/{policy_type}/preview`, {
  operationId: 'previewPolicy',
  summary: 'Preview a policy on the newest calls',
  description: `Holds a policy, which is not stored, against the newest ${PREVIEW_EVENTS_MAX} events as far as they are stored, and makes no alerts. For banned_patterns the key needs payloads:read besides: a pattern is a way to read prompts.`,
  params: policyParams,
  body: policyBody,
  // A repeat changes nothing but the log.
  idempotency: 'afterwards',
  responses: { 200: { description: 'The calls that it would flag', schema: previewResponse } },
  problems: ['invalid_policy_type', 'forbidden'],
  async handle(request, deps) {
    const { params, body, orgDb, caller, settle } = request;
    const typed = configOf(params.policy_type, body.config);
    assertPayloads(caller, typed.type === 'banned_patterns');
    const preview = await previewPolicy(orgDb, typed, body.enabled, deps.nowMicros());
    return settle(async (inside) => {
      await recordPreview(inside, preview, request);
      return { status: 200, body: presentPreview(preview.type, preview.result, preview.skipped) };
    });
  },
});

export const policyEndpoints = routes.endpoints;
