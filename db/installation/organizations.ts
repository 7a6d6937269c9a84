import {
  changeSettings,
  type OrganizationSettings,
  parseSettings,
  type SettingsChange,
  storedSettings,
} from '../../domain/installation/settings.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';

export interface Organization {
  id: string;
  name: string;
  createdAtMicros: bigint;
  /** The demo's, which stands beside the one that somebody works with. */
  isDemo: boolean;
}

interface OrganizationRow {
  id: string;
  name: string;
  created_at: bigint;
  is_demo: boolean;
}

function fromOrganizationRow(row: OrganizationRow): Organization {
  return { id: row.id, name: row.name, createdAtMicros: row.created_at, isDemo: row.is_demo };
}

/** Every organization, oldest first: for the first start and the command line, which stand outside of all. */
export async function listOrganizations(database: Database): Promise<Organization[]> {
  const rows = await unscoped(database, 'the operator looks over all organizations', (system) =>
    system.rows<OrganizationRow>(
      'select id, name, created_at, demo_end_day is not null as is_demo from organizations order by created_at, id limit 1000',
    ),
  );
  return rows.map(fromOrganizationRow);
}

/** Makes an organization; the same id again changes nothing. */
export async function insertOrganization(
  database: Database,
  organization: { id: string; name: string },
): Promise<void> {
  await unscoped(database, 'an organization that does not exist yet has no scope', (system) =>
    system.run('insert into organizations (id, name) values ($1, $2) on conflict (id) do nothing', [
      organization.id,
      organization.name,
    ]),
  );
}

export interface OrganizationProfile {
  name: string;
  createdAtMicros: bigint;
  settings: OrganizationSettings;
}

/** The organization of the handle. */
export async function getOrganization(orgDb: OrgDb): Promise<OrganizationProfile> {
  const [row] = await orgDb.rows<{ name: string; created_at: bigint; settings: unknown }>(
    'select name, created_at, settings from organizations where id = $1',
    [orgDb.orgId],
  );
  if (!row) throw new Error('a key belongs to an organization that is there');
  return { name: row.name, createdAtMicros: row.created_at, settings: parseSettings(row.settings).settings };
}

/** Gives the organization another name; returns the one that it had. */
export async function renameOrganization(orgDb: OrgDb, name: string): Promise<string> {
  return orgDb.transaction(async (inside) => {
    const { name: before } = await lockOrganization(inside);
    if (before !== name)
      await inside.run('update organizations set name = $2 where id = $1', [inside.orgId, name]);
    return before;
  });
}

/**
 * Changes some of the settings and leaves the others, also when somebody else changes those at the same time: the row
 * is locked before it is read.
 */
export async function updateSettings(
  orgDb: OrgDb,
  change: SettingsChange,
): Promise<{ before: OrganizationSettings; after: OrganizationSettings }> {
  return orgDb.transaction(async (inside) => {
    const before = parseSettings((await lockOrganization(inside)).settings).settings;
    const after = changeSettings(before, change);
    // Where nothing changes the row stays as it is: whoever stores calls by it need not begin anew.
    await inside.run(
      'update organizations set settings = $2::jsonb where id = $1 and settings <> $2::jsonb',
      [inside.orgId, JSON.stringify(storedSettings(after))],
    );
    return { before, after };
  });
}

/** The organization's own row, locked: whoever changes what hangs on it comes one after the other. */
export async function lockOrganization(orgDb: OrgDb): Promise<{ name: string; settings: unknown }> {
  // Not `for update`: keys and everything else that refers to the organization are to go on.
  const [row] = await orgDb.rows<{ name: string; settings: unknown }>(
    'select name, settings from organizations where id = $1 for no key update',
    [orgDb.orgId],
  );
  if (!row) throw new Error('a key belongs to an organization that is there');
  return row;
}

/**
 * Notes that what calls are judged by when they are stored has changed: policies, or who is told of alerts. Call it in
 * the transaction of the change; whoever has assumed the former rules finds another mark and begins anew.
 */
export async function bumpRulesRevision(orgDb: OrgDb): Promise<void> {
  await orgDb.run('update organizations set rules_revision = rules_revision + 1 where id = $1', [
    orgDb.orgId,
  ]);
}
