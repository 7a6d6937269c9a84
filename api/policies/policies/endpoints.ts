import { listEvents } from '../../../db/events/events.js';
import type { StoredEvent } from '../../../db/events/storedEvents.js';
import type { OrgDb } from '../../../db/orgDb.js';
import {
  listPolicies,
  type PolicyToPut,
  putPolicy,
  type StoredPolicy,
} from '../../../db/policies/policies.js';
import { publicPrefix } from '../../../domain/access/keyFormat.js';
import type { Json } from '../../../domain/events/event.js';
import { promptsOfStored } from '../../../domain/events/prompts.js';
import { MICROS_PER_DAY } from '../../../domain/period.js';
import { describePut } from '../../../domain/policies/describePut.js';
import { inspectPatterns } from '../../../domain/policies/inspectPatterns.js';
import { compilePolicies } from '../../../domain/policies/judge.js';
import type { Policy, SkippedPattern } from '../../../domain/policies/policy.js';
import { PREVIEW_EVENTS_MAX, Preview, type PreviewedEvent } from '../../../domain/policies/preview.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
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
  type TypedConfig,
} from './wire.js';

const ADMIN = { scope: 'policies:write', workspace: 'refused' } as const;
/** Events with their payloads, which may have 256 KB each, that are in memory at once. */
const PREVIEW_PAGE = 50;
/** Where the newest events are looked for first. */
const RECENT_DAYS = 35n;

const PACE = {
  workedMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  pause: () => new Promise<void>((resolve) => setImmediate(resolve)),
};

/** Patterns that are passed over; none for a type without patterns. */
async function skippedOf(
  { type, config }: TypedConfig,
  standing: readonly StoredPolicy[],
): Promise<SkippedPattern[]> {
  if (type !== 'banned_patterns') return [];
  // What was found quick enough stays so: the same list put again is not measured again.
  const before = standing.find((policy) => policy.type === type);
  const isSame = before && JSON.stringify(before.config) === JSON.stringify(config);
  if (isSame && before.skipped.every(({ code }) => code !== 'slow')) return [...before.skipped];
  return inspectPatterns(config.regexes, PACE);
}

const listPoliciesEndpoint = defineEndpoint({
  operationId: 'listPolicies',
  method: 'get',
  path: POLICIES_PATH,
  tag: 'Policies',
  summary: 'Every policy of the organization, enabled or not',
  access: { scope: 'policies:read', workspace: 'shared' },
  responses: {
    200: {
      description: 'At most one of each type, in the order in which they were first put',
      schema: listPoliciesResponse,
    },
  },
  problems: [],
  async handle({ orgDb }) {
    return { status: 200, body: { policies: (await listPolicies(orgDb)).map(presentPolicy) } };
  },
});

const putPolicyEndpoint = defineEndpoint({
  operationId: 'putPolicy',
  method: 'put',
  path: `${POLICIES_PATH}/{policy_type}`,
  tag: 'Policies',
  summary: 'Make the policy of a type, or replace it',
  description:
    'Holds on every instance for each event that is sent after the answer; what is stored already is not judged anew. Regular expressions that RE2 does not take, and those that take too long, are stored, passed over, and named in `warnings`. A policy is not deleted: put it with `enabled` false.',
  access: ADMIN,
  params: policyParams,
  body: policyBody,
  responses: { 200: { description: 'The policy as it is now', schema: putPolicyResponse } },
  problems: ['invalid_policy_type'],
  async handle(request) {
    const { params, body, orgDb, caller } = request;
    const typed = configOf(params.policy_type, body.config);
    // Before the transaction: it can take a while, and nobody is to wait for it.
    const skipped = await skippedOf(typed, await listPolicies(orgDb));
    const policy = { ...typed, enabled: body.enabled, skipped } as PolicyToPut;
    const stored = await orgDb.transaction(async (inside) => {
      const { before, after, isChanged } = await putPolicy(inside, policy, caller.keyId);
      if (isChanged) {
        const subject = { type: 'policy', id: String(after.id) };
        await recordAction(inside, request, 'policy.put', subject, describePut(before, after));
      }
      return after;
    });
    return { status: 200, body: presentPutPolicy(stored) };
  },
});

const previewPolicy = defineEndpoint({
  operationId: 'previewPolicy',
  method: 'post',
  path: `${POLICIES_PATH}/{policy_type}/preview`,
  tag: 'Policies',
  summary: 'What a policy would flag',
  description: `Holds a policy, which is not stored, against the newest ${PREVIEW_EVENTS_MAX} events as far as they are stored, and makes no alerts. For banned_patterns the key needs payloads:read besides: a pattern is a way to read prompts.`,
  access: ADMIN,
  params: policyParams,
  body: policyBody,
  // Made twice it changes nothing but the log.
  idempotency: 'afterwards',
  responses: { 200: { description: 'What it would flag', schema: previewResponse } },
  problems: ['invalid_policy_type', 'forbidden'],
  async handle(request, deps) {
    const { params, body, orgDb, caller, settle } = request;
    const typed = configOf(params.policy_type, body.config);
    assertPayloads(caller, typed.type === 'banned_patterns');
    const standing = await listPolicies(orgDb);
    const skipped = await skippedOf(typed, standing);
    const known = standing.find(({ type }) => type === typed.type);
    const policy = { ...typed, id: known?.id ?? 0, enabled: body.enabled, skipped } as Policy;
    const preview = new Preview(compilePolicies([policy]));
    const recent = deps.nowMicros() - RECENT_DAYS * MICROS_PER_DAY;
    for await (const event of newestEvents(orgDb, typed.type, recent)) await preview.add(event, PACE.pause);
    const { events, flagged } = preview.result;
    return settle(async (inside) => {
      const details = { policy_type: typed.type, events, flagged };
      const subject = known ? { type: 'policy', id: String(known.id) } : null;
      await recordAction(inside, request, 'policy.previewed', subject, details);
      return { status: 200, body: presentPreview(typed.type, preview.result, skipped) };
    });
  },
});

/** The newest events as policies see them, newest first. */
async function* newestEvents(
  orgDb: OrgDb,
  type: Policy['type'],
  recentMicros: bigint,
): AsyncGenerator<PreviewedEvent> {
  const needsPayload = type === 'banned_patterns' || type === 'key_environment_check';
  let after: { timestampMicros: bigint; id: string } | undefined;
  for (let seen = 0; seen < PREVIEW_EVENTS_MAX; ) {
    const page = { limit: PREVIEW_PAGE, offset: 0, after };
    const { events, hasMore } = await listEvents(orgDb, {}, page, needsPayload, recentMicros);
    for (const event of events) yield previewedOf(event);
    seen += events.length;
    after = events.at(-1);
    if (!hasMore) return;
  }
}

function previewedOf(event: StoredEvent): PreviewedEvent {
  const { id, timestampMicros, model, environment, apiKeyId, payload } = event;
  return {
    id,
    timestampMicros,
    model,
    environment,
    keyPrefix: prefixIn(payload?.service ?? null) ?? publicPrefix(apiKeyId),
    costPico: event.costSource === 'unpriced' ? null : event.costPico,
    prompts: promptsOfStored(event.kind, payload?.payload ?? null),
  };
}

function prefixIn(service: Json): string | undefined {
  const isMap = typeof service === 'object' && service !== null && !Array.isArray(service);
  const prefix = isMap ? service.api_key_prefix : undefined;
  return typeof prefix === 'string' && prefix !== '' ? prefix : undefined;
}

export const policyEndpoints: readonly Endpoint[] = [listPoliciesEndpoint, putPolicyEndpoint, previewPolicy];
