import { recordAudit } from '../../db/access/auditLog.js';
import { insertKey, type NewKey } from '../../db/access/keys.js';
import type { Database } from '../../db/client.js';
import {
  type DemoOrganization,
  deleteDemo,
  getOrganization,
  insertDemo,
  insertOnlyOrganization,
  lockDemo,
  lockOrganization,
  type OrganizationProfile,
  updateOrganizationName,
  updateSettings,
} from '../../db/installation/organizations.js';
import { OrgDb, unscoped } from '../../db/orgDb.js';
import { type AuditDetails, keyMadeBy } from '../../domain/access/auditLog.js';
import { DomainError } from '../../domain/errors.js';
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

/** Renames the organization, if a name is present; returns it as it is then. */
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

/**
 * Makes the instance's first organization with its admin key, which is the first row of its audit log, in one
 * transaction; false when there is one already. Two processes that start at once make one.
 */
export async function insertFirstOrganization(
  database: Database,
  organization: { id: string; name: string },
  key: NewKey,
): Promise<boolean> {
  return new OrgDb(database, organization.id).transaction(async (inside) => {
    const isMade = await inside.unscoped('the first organization has no scope before it exists', (system) =>
      insertOnlyOrganization(system, organization),
    );
    if (isMade) await insertKeyOf(inside, 'start', key);
    return isMade;
  });
}

/** Makes the demo's organization with its admin key, in one transaction; false when there is a demo already. */
export async function insertDemoOrganization(
  database: Database,
  organization: DemoOrganization,
  key: NewKey,
): Promise<boolean> {
  return new OrgDb(database, organization.id).transaction(async (inside) => {
    const isMade = await inside.unscoped('an organization that does not exist yet has no scope', (system) =>
      insertDemo(system, organization),
    );
    if (isMade) await insertKeyOf(inside, 'demo', key);
    return isMade;
  });
}

/** Adds an admin key of the demo, with an entry in its audit log. */
export function insertDemoKey(orgDb: OrgDb, key: NewKey): Promise<void> {
  return orgDb.transaction((inside) => insertKeyOf(inside, 'demo', key));
}

async function insertKeyOf(inside: OrgDb, maker: 'start' | 'demo', key: NewKey): Promise<void> {
  await insertKey(inside, key);
  await recordAudit(inside, keyMadeBy(maker, key));
}

/**
 * Removes an organization that is marked as the demo with every row that it has, in one transaction; returns how many
 * rows there were. The catalogue names the tables, so a new table is not forgotten. Error not_found for any
 * organization that is not the demo: nothing of it is touched.
 */
export async function removeDemoOrganization(database: Database, orgId: string): Promise<number> {
  return unscoped(database, 'a demo is removed with all that it has', async (system) => {
    if (await lockDemo(system, orgId)) return deleteDemo(system, orgId);
    throw new DomainError('not_found', `organization ${orgId} is not marked as a demo: nothing was removed`);
  });
}
