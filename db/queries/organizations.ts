import type { Database } from '../client.js';
import { unscoped } from '../orgDb.js';

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
