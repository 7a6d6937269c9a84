import type { AuditDetails } from '../access/auditLog/actions.js';
import { changedFields, type OrganizationSettings, SETTING_FIELDS } from './settings.js';

/** What a change of settings did, for the audit log: of values the old and the new one, of lists what came and went. */
export function describeChange(before: OrganizationSettings, after: OrganizationSettings): AuditDetails {
  const details: { [name: string]: AuditDetails[string] } = { fields: changedFields(before, after) };
  for (const name of ['dropPayloads', 'timeZone'] as const) {
    if (before[name] === after[name]) continue;
    details[`old_${SETTING_FIELDS[name]}`] = before[name];
    details[`new_${SETTING_FIELDS[name]}`] = after[name];
  }
  compareLists(details, SETTING_FIELDS.holidays, before.holidays, after.holidays);
  const scopes = (settings: OrganizationSettings) =>
    settings.countedScopes.map(({ service, scope }) => `${service ?? '(no service)'}: ${scope}`);
  compareLists(details, SETTING_FIELDS.countedScopes, scopes(before), scopes(after));
  return details;
}

function compareLists(
  details: { [name: string]: AuditDetails[string] },
  field: string,
  before: readonly string[],
  after: readonly string[],
): void {
  const added = after.filter((item) => !before.includes(item));
  const removed = before.filter((item) => !after.includes(item));
  if (added.length > 0) details[`${field}_added`] = added;
  if (removed.length > 0) details[`${field}_removed`] = removed;
}
