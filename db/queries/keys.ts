import type { Role } from '../../domain/access/scopes.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';

/** What authentication needs of a key. */
export interface StoredKey {
  id: string;
  orgId: string;
  role: Role;
  /** null: every scope of the role. */
  scopes: string[] | null;
  workspaceId: string | null;
  secretHash: Buffer;
  expiresAtMicros: bigint | null;
  revokedAtMicros: bigint | null;
}

interface KeyRow {
  id: string;
  org_id: string;
  role: Role;
  scopes: string[] | null;
  workspace_id: string | null;
  secret_hash: Buffer;
  expires_at: bigint | null;
  revoked_at: bigint | null;
}

function fromKeyRow(row: KeyRow): StoredKey {
  return {
    id: row.id,
    orgId: row.org_id,
    role: row.role,
    scopes: row.scopes,
    workspaceId: row.workspace_id,
    secretHash: row.secret_hash,
    expiresAtMicros: row.expires_at,
    revokedAtMicros: row.revoked_at,
  };
}

/** The key behind an id, whatever its organization: it is the key that tells the organization. */
export async function findKey(database: Database, keyId: string): Promise<StoredKey | undefined> {
  const rows = await unscoped(database, 'authenticate: the key tells the organization', (system) =>
    system.rows<KeyRow>(
      'select id, org_id, role, scopes, workspace_id, secret_hash, expires_at, revoked_at from api_keys where id = $1',
      [keyId],
    ),
  );
  return rows[0] && fromKeyRow(rows[0]);
}

/** Notes that keys were used; the caller gathers them so that a key is written at most once a minute. */
export async function touchKeys(database: Database, keyIds: readonly string[]): Promise<void> {
  await unscoped(database, 'last-used times of keys of any organization', (system) =>
    system.run('update api_keys set last_used_at = now() where id = any($1)', [keyIds]),
  );
}

export interface NewKey {
  id: string;
  name: string;
  role: Role;
  secretHash: Buffer;
  last4: string;
  createdBy: string;
}

/** Stores a key of the organization. */
export async function insertKey(orgDb: OrgDb, key: NewKey): Promise<void> {
  await orgDb.run(
    'insert into api_keys (id, org_id, name, role, secret_hash, last4, created_by) values ($1, $2, $3, $4, $5, $6, $7)',
    [key.id, orgDb.orgId, key.name, key.role, key.secretHash, key.last4, key.createdBy],
  );
}
