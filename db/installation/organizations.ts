import {
  type OrganizationSettings,
  parseSettings,
  storedSettings,
} from '../../domain/installation/settings.js';
import type { Database } from '../client.js';
import { column, defineEntity } from '../entity.js';
import { INSTALLATION_LOCKS } from '../locks.js';
import { type OrgDb, type SystemDb, unscoped } from '../orgDb.js';
import { MONTH_TABLE_PATTERN } from '../partitions.js';

export interface Organization {
  id: string;
  name: string;
  createdAtMicros: bigint;
  /** The demo, which exists beside the organization of the users. */
  isDemo: boolean;
}

const ORGANIZATION = defineEntity<Organization>('organizations', {
  id: column(),
  name: column(),
  createdAtMicros: column(),
  isDemo: column('demo_end_day is not null'),
});

export async function listOrganizations(database: Database): Promise<Organization[]> {
  return unscoped(database, 'the operator looks over all organizations', (system) =>
    system.rows<Organization>(
      `select ${ORGANIZATION.columns} from organizations order by created_at, id limit 1000`,
    ),
  );
}

/** Stores an organization; a repeat with the same id changes nothing. */
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
  isDemo: boolean;
  settings: OrganizationSettings;
}

export async function getOrganization(orgDb: OrgDb): Promise<OrganizationProfile> {
  const [row] = await orgDb.rows<Omit<OrganizationProfile, 'settings'> & { settings: unknown }>(
    `select name, created_at as "createdAtMicros", demo_end_day is not null as "isDemo", settings
     from organizations where id = $1`,
    [orgDb.orgId],
  );
  if (!row) throw new Error('a key belongs to an organization that is there');
  return { ...row, settings: parseSettings(row.settings).settings };
}

/** Whether the organization of the handle exists. */
export async function hasOrganization(orgDb: OrgDb): Promise<boolean> {
  return (await orgDb.rows('select from organizations where id = $1', [orgDb.orgId])).length > 0;
}

export async function updateOrganizationName(orgDb: OrgDb, name: string): Promise<void> {
  await orgDb.run('update organizations set name = $2 where id = $1', [orgDb.orgId, name]);
}

/** Stores settings. Equal settings leave the row unchanged, so that writers of calls need not start again. */
export async function updateSettings(orgDb: OrgDb, settings: OrganizationSettings): Promise<void> {
  await orgDb.run('update organizations set settings = $2::jsonb where id = $1 and settings <> $2::jsonb', [
    orgDb.orgId,
    JSON.stringify(storedSettings(settings)),
  ]);
}

/** Locks the organization's row, which serializes changes of its dependents. */
export async function lockOrganization(orgDb: OrgDb): Promise<{ name: string; settings: unknown }> {
  // Not `for update`: keys and other rows that reference the organization must stay writable.
  const [row] = await orgDb.rows<{ name: string; settings: unknown }>(
    'select name, settings from organizations where id = $1 for no key update',
    [orgDb.orgId],
  );
  if (!row) throw new Error('a key belongs to an organization that is there');
  return row;
}

/** Invalidates the rules that processes cache for storing calls; call it in the transaction of the change. */
export async function bumpRulesRevision(orgDb: OrgDb): Promise<void> {
  await orgDb.run('update organizations set rules_revision = rules_revision + 1 where id = $1', [
    orgDb.orgId,
  ]);
}

/** Stores the first organization, one process at a time; false: an organization already exists. */
export async function insertOnlyOrganization(
  system: SystemDb,
  organization: { id: string; name: string },
): Promise<boolean> {
  await system.run('select pg_advisory_xact_lock($1)', [INSTALLATION_LOCKS.firstOrganization]);
  const inserted = await system.run(
    'insert into organizations (id, name) select $1, $2 where not exists (select from organizations)',
    [organization.id, organization.name],
  );
  return inserted > 0;
}

/** The demo's organization. */
export interface DemoOrganization {
  id: string;
  name: string;
  /** Last day of its data, `YYYY-MM-DD`. */
  endDay: string;
}

/** The demo's organization; undefined when there is none. */
export async function findDemoOrganization(database: Database): Promise<DemoOrganization | undefined> {
  const [demo] = await unscoped(database, 'the demo is looked for among all organizations', (system) =>
    system.rows<DemoOrganization>(
      `select id, name, to_char(demo_end_day, 'YYYY-MM-DD') as "endDay" from organizations where demo_end_day is not null`,
    ),
  );
  return demo;
}

/** Stores the demo's organization; false: a demo already exists. */
export async function insertDemo(system: SystemDb, { id, name, endDay }: DemoOrganization): Promise<boolean> {
  const inserted = await system.run(
    `insert into organizations (id, name, demo_end_day) values ($1, $2, $3)
     on conflict ((true)) where demo_end_day is not null do nothing`,
    [id, name, endDay],
  );
  return inserted > 0;
}

/**
 * Locks the demo's organization; false: it is not the demo. Writers of rows that reference it wait, and then fail to
 * find it.
 */
export async function lockDemo(system: SystemDb, id: string): Promise<boolean> {
  const marked = await system.rows(
    'select id from organizations where id = $1 and demo_end_day is not null for update',
    [id],
  );
  return marked.length > 0;
}

/** Deletes the demo's organization with all its rows; returns their number. */
export async function deleteDemo(system: SystemDb, id: string): Promise<number> {
  let removed = 0;
  for (const table of await listTenantTables(system))
    removed += await system.run(`delete from ${table} where org_id = $1`, [id]);
  await system.run('delete from organizations where id = $1 and demo_end_day is not null', [id]);
  return removed;
}

interface TenantTable {
  name: string;
  /** Tables that reference this one. */
  referrers: string[];
}

/** Every table with a column org_id, referencing tables first, as quoted names. */
async function listTenantTables(system: SystemDb): Promise<string[]> {
  const tables = await system.rows<TenantTable>(
    `select c.oid::regclass::text as name, coalesce((
       select array_agg(distinct k.conrelid::regclass::text) from pg_constraint k
       where k.contype = 'f' and k.confrelid = c.oid and k.conrelid <> c.oid), '{}') as referrers
     from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname !~ $1
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped)
     order by 1`,
    // A month that was detached from its table belongs to no organization any more.
    [MONTH_TABLE_PATTERN],
  );
  return inOrder(tables);
}

/** Each table after all tables that reference it. */
function inOrder(tables: readonly TenantTable[]): string[] {
  const names = new Set(tables.map((table) => table.name));
  const done = new Set<string>();
  while (done.size < tables.length) {
    const next = tables.filter(
      ({ name, referrers }) => !done.has(name) && referrers.every((one) => done.has(one) || !names.has(one)),
    );
    if (next.length === 0)
      throw new Error(
        `tables refer to each other in a ring: ${[...names].filter((name) => !done.has(name))}`,
      );
    for (const { name } of next) done.add(name);
  }
  return [...done];
}
