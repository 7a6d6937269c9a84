import type { Role } from '../../domain/access/scopes.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';

/** What authentication needs of a key. */
export interface StoredKey {
  id: string;
  orgId: string;
  role: Role;
  /** null: every scope of the role. */
  scopes: string[] | null;
  /** The part of the organization that the key is bound to; null: none. */
  workspace: { id: string; projectId: string } | null;
  secretHash: Buffer;
  /** The secret before the last rotation, and when it stops. */
  previous: { secretHash: Buffer; validUntilMicros: bigint } | null;
  expiresAtMicros: bigint | null;
  /** When the key was revoked, or its workspace archived. */
  revokedAtMicros: bigint | null;
  /** When the row was read, by the clock by which its times were written. */
  readAtMicros: bigint;
}

interface KeyRow {
  id: string;
  org_id: string;
  role: Role;
  scopes: string[] | null;
  workspace_id: string | null;
  project_id: string | null;
  secret_hash: Buffer;
  previous_secret_hash: Buffer | null;
  previous_valid_until: bigint | null;
  expires_at: bigint | null;
  ended_at: bigint | null;
  read_at: bigint;
}

const AUTHENTICATION_COLUMNS = `k.id, k.org_id, k.role, k.scopes, k.workspace_id, w.project_id, k.secret_hash,
  k.previous_secret_hash, k.previous_valid_until, k.expires_at, least(k.revoked_at, w.archived_at) as ended_at,
  clock_timestamp() as read_at
  from api_keys k left join workspaces w on w.org_id = k.org_id and w.id = k.workspace_id`;

function fromKeyRow(row: KeyRow): StoredKey {
  return {
    id: row.id,
    orgId: row.org_id,
    role: row.role,
    scopes: row.scopes,
    workspace:
      row.workspace_id === null || row.project_id === null
        ? null
        : { id: row.workspace_id, projectId: row.project_id },
    secretHash: row.secret_hash,
    previous:
      row.previous_secret_hash === null || row.previous_valid_until === null
        ? null
        : { secretHash: row.previous_secret_hash, validUntilMicros: row.previous_valid_until },
    expiresAtMicros: row.expires_at,
    revokedAtMicros: row.ended_at,
    readAtMicros: row.read_at,
  };
}

/**
 * The key behind an id, whatever its organization: it is the key that tells the organization. There is a row to read
 * for an id that no key has, too: that takes as long, so its time tells nothing.
 */
export async function findKey(database: Database, keyId: string): Promise<StoredKey | undefined> {
  const rows = await unscoped(database, 'authenticate: the key tells the organization', (system) =>
    system.rows<KeyRow>(
      `(select ${AUTHENTICATION_COLUMNS} where k.id = $1) union all (select ${AUTHENTICATION_COLUMNS} order by k.id limit 1) limit 1`,
      [keyId],
      'find-key',
    ),
  );
  const row = rows[0] && fromKeyRow(rows[0]);
  return row?.id === keyId ? row : undefined;
}

/** Notes that keys were used; a key that another process has noted within a minute stays as it is. */
export async function touchKeys(database: Database, keyIds: readonly string[]): Promise<void> {
  await unscoped(database, 'last-used times of keys of any organization', (system) =>
    system.run(
      `update api_keys set last_used_at = now()
       where id = any($1) and (last_used_at is null or last_used_at <= now() - interval '1 minute')`,
      [keyIds],
    ),
  );
}

export interface NewKey {
  id: string;
  name: string;
  role: Role;
  /** Absent: every scope of the role. */
  scopes?: readonly string[] | null;
  /** The uuid of a workspace that is not archived. */
  workspaceId?: string | null;
  expiresAtMicros?: bigint | null;
  secretHash: Buffer;
  last4: string;
  createdBy: string;
}

const isoOf = (micros: bigint | null | undefined) =>
  micros === null || micros === undefined ? null : isoFromMicros(micros);

/** Stores a key of the organization. */
export async function insertKey(orgDb: OrgDb, key: NewKey): Promise<void> {
  await orgDb.run(
    `insert into api_keys (id, org_id, name, role, scopes, workspace_id, expires_at, secret_hash, last4, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      key.id,
      orgDb.orgId,
      key.name,
      key.role,
      key.scopes ?? null,
      key.workspaceId ?? null,
      isoOf(key.expiresAtMicros),
      key.secretHash,
      key.last4,
      key.createdBy,
    ],
  );
}
