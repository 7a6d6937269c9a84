import type { KeyStatus, KeyTerms, Role } from '../../domain/access/keyRules.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { column, defineEntity, findEntity, insertRow, listNewest, type TimePage } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';

export interface StoredKey {
  id: string;
  orgId: string;
  role: Role;
  /** null: every scope of the role. */
  scopes: string[] | null;
  /** The workspace that the key is bound to; null: none. */
  workspace: { id: string; projectId: string } | null;
  secretHash: Buffer;
  /** The secret before the last rotation, and the end of its grace period. */
  previous: { secretHash: Buffer; validUntilMicros: bigint } | null;
  expiresAtMicros: bigint | null;
  /** When the key was revoked, or its workspace archived. */
  revokedAtMicros: bigint | null;
  /** When the row was read, by the database's clock, which also wrote its times. */
  readAtMicros: bigint;
}

type FlatKey = Omit<StoredKey, 'workspace' | 'previous'> & {
  workspaceId: string | null;
  projectId: string | null;
  previousSecretHash: Buffer | null;
  previousValidUntilMicros: bigint | null;
};

/** Aliases in the authentication statement: `k` the key, `w` its workspace. */
const AUTHENTICATION = defineEntity<FlatKey>('api_keys', {
  id: column('k.id'),
  orgId: column('k.org_id'),
  role: column('k.role'),
  scopes: column('k.scopes'),
  workspaceId: column('k.workspace_id'),
  projectId: column('w.project_id'),
  secretHash: column('k.secret_hash'),
  previousSecretHash: column('k.previous_secret_hash'),
  previousValidUntilMicros: column('k.previous_valid_until'),
  expiresAtMicros: column('k.expires_at'),
  revokedAtMicros: column('least(k.revoked_at, w.archived_at)'),
  readAtMicros: column('clock_timestamp()'),
});
const SELECT_KEY = `select ${AUTHENTICATION.columns} from api_keys k left join workspaces w on w.org_id = k.org_id and w.id = k.workspace_id`;

/** Finds a key. An unknown id reads a row too and takes equally long, so that the duration reveals nothing. */
export async function findKey(database: Database, keyId: string): Promise<StoredKey | undefined> {
  const [row] = await unscoped(database, 'authenticate: the key tells the organization', (system) =>
    system.rows<FlatKey>(
      `(${SELECT_KEY} where k.id = $1) union all (${SELECT_KEY} order by k.id limit 1) limit 1`,
      [keyId],
      'find-key',
    ),
  );
  if (row?.id !== keyId) return undefined;
  const { workspaceId, projectId, previousSecretHash, previousValidUntilMicros, ...key } = row;
  return {
    ...key,
    workspace: workspaceId === null || projectId === null ? null : { id: workspaceId, projectId },
    previous:
      previousSecretHash === null || previousValidUntilMicros === null
        ? null
        : { secretHash: previousSecretHash, validUntilMicros: previousValidUntilMicros },
  };
}

/** Records that keys were used; a key that another process has recorded within a minute is skipped. */
export async function touchKeys(database: Database, keyIds: readonly string[]): Promise<void> {
  await unscoped(database, 'last-used times of keys of any organization', (system) =>
    system.run(
      `update api_keys set last_used_at = now()
       where id = any($1) and (last_used_at is null or last_used_at <= now() - interval '1 minute')`,
      [keyIds],
    ),
  );
}

/** A key as its organization sees it: all columns except its secret. */
export interface ApiKey extends KeyTerms {
  id: string;
  name: string;
  /** The last characters of the key, by which people identify it. */
  last4: string;
  status: KeyStatus;
  createdAtMicros: bigint;
  /** A key's id, or the name of another creator. */
  createdBy: string | null;
  /** Written at most once a minute. */
  lastUsedAtMicros: bigint | null;
  expiresAtMicros: bigint | null;
  revokedAtMicros: bigint | null;
  revokedBy: string | null;
  /** End of the previous secret's grace period; null: it is over. */
  previousValidUntilMicros: bigint | null;
}

/** In the order of domain/access/keyRules: the first matching status wins. */
const STATUS = `case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired'
  when previous_valid_until > now() then 'rotating' else 'active' end`;

const API_KEY = defineEntity<ApiKey>('api_keys', {
  id: column(),
  name: column(),
  role: column(),
  scopes: column(),
  workspaceId: column(),
  last4: column(),
  status: column(STATUS),
  createdAtMicros: column(),
  createdBy: column(),
  lastUsedAtMicros: column(),
  expiresAtMicros: column(),
  revokedAtMicros: column(),
  revokedBy: column(),
  previousValidUntilMicros: column(
    'case when revoked_at is null and previous_valid_until > now() then previous_valid_until end',
  ),
});

interface ApiKeyFilter {
  role?: string | undefined;
  status?: string | undefined;
  /** A uuid. */
  workspaceId?: string | undefined;
}

/** Keys, newest first, including revoked ones; `after` is the time and id of the previous page's last key. */
export async function listApiKeys(orgDb: OrgDb, filter: ApiKeyFilter, page: TimePage): Promise<ApiKey[]> {
  return listNewest(orgDb, API_KEY, {
    where: { role: filter.role, workspace_id: filter.workspaceId },
    and: (query) => {
      if (filter.status !== undefined) query.whereRaw(`${STATUS} = ?`, [filter.status]);
    },
    idType: 'text',
    page,
  });
}

export async function findApiKey(orgDb: OrgDb, id: string): Promise<ApiKey | undefined> {
  return findEntity(orgDb, API_KEY, { id });
}

/**
 * Serializes changes of the organization's keys, so that two requests cannot each revoke one of the last two admin
 * keys.
 */
export async function lockKeyRing(inside: OrgDb): Promise<void> {
  await inside.rows('select from organizations where id = $1 for no key update', [inside.orgId]);
}

/** Number of unrevoked keys, and of lasting admin keys besides `id`: see `isLastingAdmin`. */
export async function countKeys(orgDb: OrgDb, id: string): Promise<{ unrevoked: number; lasting: number }> {
  const [row] = await orgDb.rows<{ unrevoked: number; lasting: number }>(
    `select count(*) as unrevoked,
       count(*) filter (where role = 'admin' and scopes is null and expires_at is null and id <> $2) as lasting
     from api_keys where org_id = $1 and revoked_at is null`,
    [orgDb.orgId, id],
  );
  return row ?? { unrevoked: 0, lasting: 0 };
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

export async function insertKey(orgDb: OrgDb, key: NewKey): Promise<void> {
  await insertRow(orgDb, 'api_keys', { orgId: orgDb.orgId, ...key });
}

export async function updateApiKey(
  orgDb: OrgDb,
  key: Pick<ApiKey, 'id' | 'name' | 'scopes' | 'expiresAtMicros'>,
): Promise<void> {
  await orgDb.run(
    'update api_keys set name = $3, scopes = $4, expires_at = $5 where org_id = $1 and id = $2',
    [orgDb.orgId, key.id, key.name, key.scopes, isoOf(key.expiresAtMicros)],
  );
}

/** Replaces a key's secret; the present one stays valid for the grace period, earlier ones end. */
export async function replaceKeySecret(
  orgDb: OrgDb,
  id: string,
  secret: { secretHash: Buffer; last4: string; graceSeconds: number },
): Promise<void> {
  await orgDb.run(
    `update api_keys set secret_hash = $3, last4 = $4,
       previous_secret_hash = case when $5::integer > 0 then secret_hash end,
       previous_valid_until = case when $5::integer > 0 then now() + make_interval(secs => $5::integer) end
     where org_id = $1 and id = $2`,
    [orgDb.orgId, id, secret.secretHash, secret.last4, secret.graceSeconds],
  );
}

/** Revokes the key with this id, or all keys of a workspace. Returns the ids that were not revoked before. */
export async function revokeKeys(
  orgDb: OrgDb,
  which: { id: string } | { workspaceId: string },
  revokedBy: string,
): Promise<string[]> {
  const rows = await orgDb.rows<{ id: string }>(
    `update api_keys set revoked_at = now(), revoked_by = $4 where org_id = $1 and (id = $2 or workspace_id = $3)
       and revoked_at is null returning id`,
    [
      orgDb.orgId,
      'id' in which ? which.id : null,
      'workspaceId' in which ? which.workspaceId : null,
      revokedBy,
    ],
  );
  return rows.map((row) => row.id).sort();
}
