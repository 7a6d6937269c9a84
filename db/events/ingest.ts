import { type OrganizationSettings, parseSettings } from '../../domain/installation/settings.js';
import type { Policy } from '../../domain/policies/policy.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, plainItems, textArray } from '../pgArray.js';
import { isKeyTaken } from '../pgErrors.js';
import { hasClaim, type StoredCalls, storeStatement } from './storeStatement.js';

export interface StoreResult {
  stored: Set<string>;
  claimed: Set<string>;
  alerted: string[];
  /** Version mark of the rules that were applied: AssumedRules. */
  rulesMark: string | null;
}

/** A call of a batch that was assumed to be new is stored: its transaction is lost. */
export class CallsNotNew extends Error {}

/**
 * Stores a batch of one organization in the running transaction, with the alerts of its calls. A repeat changes
 * nothing. Error: CallsNotNew where the batch was assumed to be new and is not.
 */
export async function insertEvents(orgDb: OrgDb, calls: StoredCalls): Promise<StoreResult> {
  const { events, isNew } = calls;
  const { name, text, values } = storeStatement(orgDb.orgId, calls);
  const [row] = await orgDb.rows<StoredRow>(text, values, name).catch((error: unknown) => {
    throw isNew && isKeyTaken(error) ? new CallsNotNew('a call is stored already', { cause: error }) : error;
  });
  return {
    stored: new Set(isNew ? events.map(({ id }) => id) : plainItems(row?.stored ?? null)),
    // A span that is not a call has a claim without an event.
    claimed: new Set(isNew ? events.filter(hasClaim).map(({ id }) => id) : plainItems(row?.claimed ?? null)),
    alerted: plainItems(row?.alerted ?? null),
    rulesMark: row?.rules_mark ?? null,
  };
}

/** Ids as `array_agg` writes them; null: none, or they were not asked for. */
interface StoredRow {
  stored: string | null;
  claimed: string | null;
  alerted: string | null;
  rules_mark: string | null;
}

/** Refused and left out items of one source and reason. */
export interface RefusedItems {
  /** Project of the sending key's workspace; null: a key of the whole organization. */
  projectId: string | null;
  serviceName: string;
  scopeName: string;
  reason: string;
  count: number;
}

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

/** Rules for calls that are stored, with the version mark of the row that they were read from. */
export interface MarkedRules {
  settings: OrganizationSettings;
  /** JSON of the enabled policies, for `parsePolicies`: equal texts are equal policies. */
  policiesText: string;
  /** Whether an active webhook endpoint wants messages about alerts. */
  alertsWanted: boolean;
  mark: string | null;
}

/** The rules for the organization's calls in one snapshot, with the mark that proves them later. */
export async function readMarkedRules(orgDb: OrgDb): Promise<MarkedRules> {
  const [row] = await orgDb.rows<{
    settings: unknown;
    mark: string;
    policies: string | null;
    alerts_wanted: boolean;
  }>(
    `select settings, xmin::text as mark,
       (select jsonb_agg(jsonb_build_object('id', id, 'type', policy_type, 'config', config, 'enabled', enabled, 'skipped', skipped)
          order by policy_type)::text
        from policies where org_id = $1 and enabled) as policies,
       exists (select from webhook_endpoints where org_id = $1 and status = 'active' and removed_at is null
         and report_cadence is null and (event_types = '{}' or 'alert.created' = any(event_types))) as alerts_wanted
     from organizations where id = $1`,
    [orgDb.orgId],
    'rules_marked',
  );
  return {
    settings: parseSettings(row?.settings ?? {}).settings,
    policiesText: row?.policies ?? '[]',
    alertsWanted: row?.alerts_wanted ?? false,
    mark: row?.mark ?? null,
  };
}

/** Parses the policies text of `readMarkedRules`; the policies were validated when they were stored. */
export function parsePolicies(text: string): Policy[] {
  return JSON.parse(text) as Policy[];
}
