import type { KeyStatus, KeyTerms } from '../../domain/access/keyRules.js';
import type { Role, Scope } from '../../domain/access/scopes.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';

/** A key as its organization sees it: everything but its secret. */
export interface ApiKey extends KeyTerms {
  id: string;
  name: string;
  /** The last characters of the key, to tell it by. */
  last4: string;
  status: KeyStatus;
  createdAtMicros: bigint;
  /** A key's id, or what else made it. */
  createdBy: string | null;
  /** Written at most once a minute. */
  lastUsedAtMicros: bigint | null;
  expiresAtMicros: bigint | null;
  revokedAtMicros: bigint | null;
  revokedBy: string | null;
  /** Until when the secret before the last rotation holds too; null when it holds no more. */
  previousValidUntilMicros: bigint | null;
}

interface ApiKeyRow {
  id: string;
  name: string;
  role: Role;
  scopes: Scope[] | null;
  workspace_id: string | null;
  last4: string;
  status: KeyStatus;
  created_at: bigint;
  created_by: string | null;
  last_used_at: bigint | null;
  expires_at: bigint | null;
  revoked_at: bigint | null;
  revoked_by: string | null;
  previous_valid_until: bigint | null;
}

/** The order of domain/access/keyRules: the first that holds. */
const STATUS = `case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired'
  when previous_valid_until > now() then 'rotating' else 'active' end`;

const COLUMNS = `id, name, role, scopes, workspace_id, last4, ${STATUS} as status, created_at, created_by, last_used_at, expires_at,
  revoked_at, revoked_by, case when revoked_at is null and previous_valid_until > now() then previous_valid_until end as previous_valid_until`;

function fromApiKeyRow(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    scopes: row.scopes,
    workspaceId: row.workspace_id,
    last4: row.last4,
    status: row.status,
    createdAtMicros: row.created_at,
    createdBy: row.created_by,
    lastUsedAtMicros: row.last_used_at,
    expiresAtMicros: row.expires_at,
    revokedAtMicros: row.revoked_at,
    revokedBy: row.revoked_by,
    previousValidUntilMicros: row.previous_valid_until,
  };
}

export interface ApiKeyFilter {
  role?: string | undefined;
  status?: string | undefined;
  /** A uuid. */
  workspaceId?: string | undefined;
}

/** Keys, the newest first, revoked ones too; `after` is the time and id of the last one that was seen. */
export async function listApiKeys(
  orgDb: OrgDb,
  filter: ApiKeyFilter,
  page: { limit: number; offset: number; after?: { micros: bigint; id: string } | undefined },
): Promise<ApiKey[]> {
  const rows = await orgDb.rows<ApiKeyRow>(
    `select ${COLUMNS} from api_keys where org_id = $1 and ($2::text is null or role = $2) and ($3::text is null or ${STATUS} = $3)
       and ($4::uuid is null or workspace_id = $4) and ($5::timestamptz is null or (created_at, id) < ($5::timestamptz, $6::text))
     order by created_at desc, id desc limit $7 offset $8`,
    [
      orgDb.orgId,
      filter.role ?? null,
      filter.status ?? null,
      filter.workspaceId ?? null,
      page.after ? isoFromMicros(page.after.micros) : null,
      page.after?.id ?? null,
      page.limit,
      page.offset,
    ],
  );
  return rows.map(fromApiKeyRow);
}

export async function findApiKey(orgDb: OrgDb, id: string): Promise<ApiKey | undefined> {
  const rows = await orgDb.rows<ApiKeyRow>(`select ${COLUMNS} from api_keys where org_id = $1 and id = $2`, [
    orgDb.orgId,
    id,
  ]);
  return rows[0] && fromApiKeyRow(rows[0]);
}

/**
 * Lets one transaction at a time change the organization's keys: two that each revoke one of the last two admin keys
 * would otherwise both still see the other's. Keys are used and organizations read meanwhile.
 */
export async function lockKeyRing(inside: OrgDb): Promise<void> {
  await inside.rows('select from organizations where id = $1 for no key update', [inside.orgId]);
}

/** How many keys are not revoked, and how many besides `id` the organization can be left with: see `isLastingAdmin`. */
export async function countKeys(orgDb: OrgDb, id: string): Promise<{ unrevoked: number; lasting: number }> {
  const [row] = await orgDb.rows<{ unrevoked: number; lasting: number }>(
    `select count(*) as unrevoked,
       count(*) filter (where role = 'admin' and scopes is null and expires_at is null and id <> $2) as lasting
     from api_keys where org_id = $1 and revoked_at is null`,
    [orgDb.orgId, id],
  );
  return row ?? { unrevoked: 0, lasting: 0 };
}

/** Stores what can change of a key. */
export async function updateApiKey(
  orgDb: OrgDb,
  key: Pick<ApiKey, 'id' | 'name' | 'scopes' | 'expiresAtMicros'>,
): Promise<void> {
  await orgDb.run(
    'update api_keys set name = $3, scopes = $4, expires_at = $5 where org_id = $1 and id = $2',
    [
      orgDb.orgId,
      key.id,
      key.name,
      key.scopes,
      key.expiresAtMicros === null ? null : isoFromMicros(key.expiresAtMicros),
    ],
  );
}

/** Another secret for a key; the one at hand holds for the grace, and the one before that no more. */
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

/** Revokes keys from now on: the one with this id, or all of a workspace. Returns the ids of those that were not. */
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
