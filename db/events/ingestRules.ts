import { type OrganizationSettings, parseSettings } from '../../domain/installation/settings.js';
import type { Policy } from '../../domain/policies/policy.js';
import type { OrgDb } from '../orgDb.js';

/** What holds for calls that are stored, with the mark of the row's version that it was read with. */
export interface MarkedRules {
  settings: OrganizationSettings;
  /** JSON of the enabled policies, for `parsePolicies`: equal texts are equal policies. */
  policiesText: string;
  /** Whether an active webhook endpoint is to be told of alerts. */
  alertsWanted: boolean;
  mark: string | null;
}

/**
 * SQL of the mark of organization $1's row: the transaction that wrote it last. Whatever holds for calls stands in that
 * row or moves its `rules_revision`, so a statement that asks for the mark says whether what was read before still holds
 * in its own snapshot.
 */
export const RULES_MARK = '(select xmin::text from organizations where id = $1)';

/** What holds for calls of the organization, in one snapshot, to act on and to be proved by its mark. */
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
         and (event_types = '{}' or 'alert.created' = any(event_types))) as alerts_wanted
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

/** The policies of a text that `readMarkedRules` gave. They were checked when they were put. */
export function parsePolicies(text: string): Policy[] {
  return JSON.parse(text) as Policy[];
}
