import { recordAudit } from '../../db/access/auditLog.js';
import type { NewKey } from '../../db/access/keys.js';
import type { Database } from '../../db/client.js';
import { INSTALLATION_LOCKS } from '../../db/locks.js';
import { OrgDb, type SystemDb } from '../../db/orgDb.js';
import { keyMadeBy } from '../../domain/access/auditLog/actions.js';

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
      insertWithKey(system, organization, key),
    );
    if (isMade) await recordAudit(inside, keyMadeBy('start', key));
    return isMade;
  });
}

async function insertWithKey(
  system: SystemDb,
  organization: { id: string; name: string },
  key: NewKey,
): Promise<boolean> {
  await system.run('select pg_advisory_xact_lock($1)', [INSTALLATION_LOCKS.firstOrganization]);
  const inserted = await system.run(
    'insert into organizations (id, name) select $1, $2 where not exists (select from organizations)',
    [organization.id, organization.name],
  );
  if (inserted === 0) return false;
  await system.run(
    'insert into api_keys (id, org_id, name, role, secret_hash, last4, created_by) values ($1, $2, $3, $4, $5, $6, $7)',
    [key.id, organization.id, key.name, key.role, key.secretHash, key.last4, key.createdBy],
  );
  return true;
}
