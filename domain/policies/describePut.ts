import type { AuditDetails } from '../access/auditLog/actions.js';
import type { Policy } from './policy.js';

/** What a put did, for the audit log: of values the old and the new one, of lists what came and went. */
export function describePut(before: Policy | undefined, after: Policy): AuditDetails {
  const details: { [name: string]: AuditDetails[string] } = {
    policy_type: after.type,
    enabled: after.enabled,
    patterns_skipped: after.type === 'banned_patterns' ? after.skipped.length : undefined,
  };
  if (before && before.enabled !== after.enabled) details.old_enabled = before.enabled;
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  for (const [name, value] of Object.entries(now)) {
    const was = old[name];
    if (typeof value === 'number') {
      details[name] = value;
      if (was !== undefined && was !== value) details[`old_${name}`] = was;
      continue;
    }
    const had = Array.isArray(was) ? was : [];
    const added = value.filter((item) => !had.includes(item));
    const removed = had.filter((item) => !value.includes(item));
    if (added.length > 0) details[`${name}_added`] = added;
    if (removed.length > 0) details[`${name}_removed`] = removed;
  }
  return details;
}

function fieldsOf(policy: Policy | undefined): { [name: string]: number | readonly string[] } {
  return { ...policy?.config } as { [name: string]: number | readonly string[] };
}
