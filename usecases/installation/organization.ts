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

/** Settings that determine business days. */
const CALENDAR_FIELDS: readonly string[] = [SETTING_FIELDS.holidays, SETTING_FIELDS.timeZone];

/** Renames the organization if a name is present; returns the organization. */
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
 * Changes some settings and leaves the others, even when others change those at the same time. A changed calendar sets
 * the deadlines of claims again; the dispatcher must then be woken.
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

/** Records the change in its transaction, as the last statement. */
function record(inside: OrgDb, author: RequestAuthor, details: AuditDetails): Promise<void> {
  const subject = { type: 'organization', id: publicId('org', inside.orgId) };
  return recordAction(inside, author, 'settings.changed', subject, details);
}

/**
 * Creates the instance's first organization with its admin key, which is the first row of its audit log, in one
 * transaction; false: an organization already exists. Two simultaneous starts create one.
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

/** Creates the demo's organization with its admin key, in one transaction; false: a demo already exists. */
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
 * Removes an organization that is marked as the demo with all its rows, in one transaction; returns the number of rows.
 * The database's catalogue lists the tables, so that new tables are included. Error: not_found for any other
 * organization, which stays untouched.
 */
export async function removeDemoOrganization(database: Database, orgId: string): Promise<number> {
  return unscoped(database, 'a demo is removed with all that it has', async (system) => {
    if (await lockDemo(system, orgId)) return deleteDemo(system, orgId);
    throw new DomainError('not_found', `organization ${orgId} is not marked as a demo: nothing was removed`);
  });
}
