import {
  type OrganizationSettings,
  parseSettings,
  storedSettings,
} from '../../domain/installation/settings.js';
import type { Database } from '../client.js';
import { column, defineEntity } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';

export interface Organization {
  id: string;
  name: string;
  createdAtMicros: bigint;
  /** The demo's, which stands beside the one that somebody works with. */
  isDemo: boolean;
}

const ORGANIZATION = defineEntity<Organization>('organizations', {
  id: column(),
  name: column(),
  createdAtMicros: column(),
  isDemo: column('demo_end_day is not null'),
});

/** Every organization, oldest first: for the first start and the command line, which stand outside of all. */
export async function listOrganizations(database: Database): Promise<Organization[]> {
  return unscoped(database, 'the operator looks over all organizations', (system) =>
    system.rows<Organization>(
      `select ${ORGANIZATION.columns} from organizations order by created_at, id limit 1000`,
    ),
  );
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

/** Gives the organization another name. */
export async function updateOrganizationName(orgDb: OrgDb, name: string): Promise<void> {
  await orgDb.run('update organizations set name = $2 where id = $1', [orgDb.orgId, name]);
}

/** Stores settings. Equal ones leave the row as it is: whoever stores calls by it need not begin anew. */
export async function updateSettings(orgDb: OrgDb, settings: OrganizationSettings): Promise<void> {
  await orgDb.run('update organizations set settings = $2::jsonb where id = $1 and settings <> $2::jsonb', [
    orgDb.orgId,
    JSON.stringify(storedSettings(settings)),
  ]);
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
