import { listEvents } from '../../db/events/events.js';
import type { StoredEvent } from '../../db/events/storedEvents.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findAlert, recordAcknowledgement, type StoredAlert } from '../../db/policies/alerts.js';
import { listPolicies, type PolicyToPut, putPolicy, type StoredPolicy } from '../../db/policies/policies.js';
import { publicPrefix } from '../../domain/access/keyRules.js';
import { DomainError } from '../../domain/errors.js';
import type { Json } from '../../domain/events/event.js';
import { promptsOfStored } from '../../domain/events/prompts.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { MICROS_PER_DAY } from '../../domain/period.js';
import { inspectPatterns } from '../../domain/policies/inspectPatterns.js';
import {
  compilePolicies,
  PREVIEW_EVENTS_MAX,
  Preview,
  type PreviewedEvent,
} from '../../domain/policies/judge.js';
import {
  describePut,
  type Policy,
  type SkippedPattern,
  type TypedConfig,
} from '../../domain/policies/policy.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';

/** Events in memory at once, with payloads of up to 256 KB each. */
const PREVIEW_PAGE = 50;
/** The newest events are searched first in the last 35 days. */
const RECENT_DAYS = 35n;

const PACE = {
  workedMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  pause: () => new Promise<void>((resolve) => setImmediate(resolve)),
};

/** Number of skipped patterns; 0 for a type without patterns. */
async function skippedOf(
  { type, config }: TypedConfig,
  standing: readonly StoredPolicy[],
): Promise<SkippedPattern[]> {
  if (type !== 'banned_patterns') return [];
  // Patterns that were measured as fast enough stay accepted: the same list is not measured again.
  const before = standing.find((policy) => policy.type === type);
  const isSame = before && JSON.stringify(before.config) === JSON.stringify(config);
  if (isSame && before.skipped.every(({ code }) => code !== 'slow')) return [...before.skipped];
  return inspectPatterns(config.regexes, PACE);
}

/** Creates or replaces the policy of a type. */
export async function savePolicy(
  orgDb: OrgDb,
  typed: TypedConfig,
  enabled: boolean,
  author: RequestAuthor,
): Promise<StoredPolicy> {
  // Before the transaction, because measuring patterns can take a while and would hold the lock.
  const skipped = await skippedOf(typed, await listPolicies(orgDb));
  const policy = { ...typed, enabled, skipped } as PolicyToPut;
  return orgDb.transaction(async (inside) => {
    const { before, after, isChanged } = await putPolicy(inside, policy, author.caller.keyId);
    const subject = { type: 'policy', id: String(after.id) };
    if (isChanged) await recordAction(inside, author, 'policy.put', subject, describePut(before, after));
    return after;
  });
}

/** The newest events that an unsaved policy would flag. */
export interface PolicyPreview {
  type: Policy['type'];
  result: Preview['result'];
  skipped: readonly SkippedPattern[];
  known: StoredPolicy | undefined;
}

export async function previewPolicy(
  orgDb: OrgDb,
  typed: TypedConfig,
  enabled: boolean,
  nowMicros: bigint,
): Promise<PolicyPreview> {
  const standing = await listPolicies(orgDb);
  const skipped = await skippedOf(typed, standing);
  const known = standing.find(({ type }) => type === typed.type);
  const preview = new Preview(
    compilePolicies([{ ...typed, id: known?.id ?? 0, enabled, skipped } as Policy]),
  );
  const recent = nowMicros - RECENT_DAYS * MICROS_PER_DAY;
  for await (const event of newestEvents(orgDb, typed.type, recent)) await preview.add(event, PACE.pause);
  return { type: typed.type, result: preview.result, skipped, known };
}

/** Records a preview in the audit log, because it may show content of prompts. */
export async function recordPreview(
  inside: OrgDb,
  { type, result, known }: PolicyPreview,
  author: RequestAuthor,
): Promise<void> {
  const details = { policy_type: type, events: result.events, flagged: result.flagged };
  const subject = known ? { type: 'policy', id: String(known.id) } : null;
  await recordAction(inside, author, 'policy.previewed', subject, details);
}

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

function alertNotFound(): DomainError {
  return new DomainError('not_found', 'there is no alert with this id');
}

/** The uuid in an alert's public id. Error not_found. */
export function uuidOfAlert(id: string): string {
  const uuid = findUuid('alr', id);
  if (uuid === undefined) throw alertNotFound();
  return uuid;
}

/** An alert, or the one that replaces it where two events turned out to be one call. Error: not_found. */
export async function getAlert(orgDb: OrgDb, id: string): Promise<StoredAlert> {
  const alert = await findAlert(orgDb, id);
  if (!alert) throw alertNotFound();
  return alert;
}

/** Acknowledges an alert; a repeat changes nothing and keeps the first acknowledgement. Error: not_found. */
export async function acknowledgeAlert(
  orgDb: OrgDb,
  id: string,
  author: RequestAuthor,
): Promise<StoredAlert> {
  return orgDb.transaction(async (inside) => {
    for (;;) {
      const alert = await getAlert(inside, id);
      if (alert.status !== 'open') return alert;
      const acknowledged = await recordAcknowledgement(inside, alert.id, author.caller.keyId);
      // Another request was faster, or another alert has replaced this one: try again.
      if (!acknowledged) continue;
      const subject = { type: 'alert', id: publicId('alr', acknowledged.id) };
      await recordAction(inside, author, 'alert.acknowledged', subject);
      return acknowledged;
    }
  });
}
