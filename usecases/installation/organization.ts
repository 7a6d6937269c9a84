import {
  getOrganization,
  lockOrganization,
  type OrganizationProfile,
  updateOrganizationName,
  updateSettings,
} from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { AuditDetails } from '../../domain/access/auditLog/actions.js';
import { publicId } from '../../domain/ids.js';
import {
  changedFields,
  changeSettings,
  describeChange,
  type OrganizationSettings,
  parseSettings,
  SETTING_FIELDS,
  type SettingsChange,
} from '../../domain/installation/settings.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { recountDeadlines } from '../claims/reminders.js';

/** Business days follow from these. */
const CALENDAR_FIELDS: readonly string[] = [SETTING_FIELDS.holidays, SETTING_FIELDS.timeZone];

/** Gives the organization another name, if one is named; returns it as it is then. */
export async function renameOrganization(
  orgDb: OrgDb,
  name: string | undefined,
  author: RequestAuthor,
): Promise<OrganizationProfile> {
  return orgDb.transaction(async (inside) => {
    if (name === undefined) return getOrganization(inside);
    const before = (await lockOrganization(inside)).name;
    if (before !== name) await updateOrganizationName(inside, name);
    const renamed = await getOrganization(inside);
    if (before !== renamed.name)
      await record(inside, author, { fields: ['name'], old_name: before, new_name: renamed.name });
    return renamed;
  });
}

/**
 * Changes some of the settings and leaves the others, also when somebody else changes those at the same time. Deadlines of
 * claims are recounted where the calendar changes: then the dispatcher has work.
 */
export async function changeOrganizationSettings(
  orgDb: OrgDb,
  change: SettingsChange,
  author: RequestAuthor,
): Promise<{ settings: OrganizationSettings; needsDispatch: boolean }> {
  return orgDb.transaction(async (inside) => {
    const before = parseSettings((await lockOrganization(inside)).settings).settings;
    const after = changeSettings(before, change);
    await updateSettings(inside, after);
    const changed = changedFields(before, after);
    const isOtherCalendar = changed.some((field) => CALENDAR_FIELDS.includes(field));
    const needsDispatch = isOtherCalendar && (await recountDeadlines(inside)) > 0;
    if (changed.length > 0) await record(inside, author, describeChange(before, after));
    return { settings: after, needsDispatch };
  });
}

/** In the transaction of the change, as its last statement. */
function record(inside: OrgDb, author: RequestAuthor, details: AuditDetails): Promise<void> {
  const subject = { type: 'organization', id: publicId('org', inside.orgId) };
  return recordAction(inside, author, 'settings.changed', subject, details);
}
