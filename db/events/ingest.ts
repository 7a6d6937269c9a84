import type { SpanLink } from '../../domain/events/event.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, plainItems, textArray } from '../pgArray.js';
import type { NewAlert } from '../policies/policyAlerts.js';
import type { StorableEvent } from './eventColumns.js';
import { storeStatement } from './storeStatement.js';

export interface StoreResult {
  /** Ids of the events that were new. */
  stored: Set<string>;
  /** Ids of the events whose claim was won. */
  claimed: Set<string>;
  /** Ids of the alerts of events that were new. */
  alerted: string[];
  /** Of the rules that held: AssumedRules. */
  rulesMark: string | null;
}

/** Stores a batch of one organization inside the running transaction, with the alerts of its calls. Repeats change nothing. */
export async function insertEvents(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  links: readonly SpanLink[],
  alerts: readonly NewAlert[] = [],
): Promise<StoreResult> {
  const { name, text, values } = storeStatement(orgDb.orgId, events, links, alerts);
  const [row] = await orgDb.rows<{
    stored: string | null;
    claimed: string | null;
    alerted: string | null;
    rules_mark: string | null;
  }>(text, values, name);
  return {
    stored: new Set(plainItems(row?.stored ?? null)),
    // A span that is no call has a claim without an event.
    claimed: new Set(plainItems(row?.claimed ?? null)),
    alerted: plainItems(row?.alerted ?? null),
    rulesMark: row?.rules_mark ?? null,
  };
}

/** Refused and left out items of one source and reason. */
export interface RefusedItems {
  /** Of the workspace whose key sent them; null: a key of the whole organization. */
  projectId: string | null;
  serviceName: string;
  scopeName: string;
  reason: string;
  count: number;
}

/** Counts refused and left out items by hour and reason. */
export async function recordRejections(orgDb: OrgDb, rejections: readonly RefusedItems[]): Promise<void> {
  if (rejections.length === 0) return;
  await orgDb.run(
    `insert into ingest_rejections (org_id, hour, project_id, service_name, scope_name, reason, count)
     select $1::uuid, date_trunc('hour', now()), r.* from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::int8[]) as r
     on conflict (org_id, hour, project_id, service_name, scope_name, reason) do update set count = ingest_rejections.count + excluded.count`,
    [
      orgDb.orgId,
      textArray(rejections.map((r) => r.projectId ?? '')),
      textArray(rejections.map((r) => r.serviceName)),
      textArray(rejections.map((r) => r.scopeName)),
      textArray(rejections.map((r) => r.reason)),
      plainArray(rejections.map((r) => r.count)),
    ],
  );
}
