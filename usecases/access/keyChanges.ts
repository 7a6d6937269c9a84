import { recordAudit } from '../../db/access/auditLog.js';
import {
  type ApiKey,
  countKeys,
  findApiKey,
  insertKey,
  lockKeyRing,
  type NewKey,
  replaceKeySecret,
  revokeKeys,
  updateApiKey,
} from '../../db/access/keys.js';
import { lockWorkspace } from '../../db/access/workspaces.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { AuditAction, AuditActor, AuditDetails } from '../../domain/access/auditLog.js';
import {
  allowsScope,
  assertGrants,
  assertPossibleTerms,
  base62FromBytes,
  composeKey,
  givenByChange,
  isLastingAdmin,
  KEY_ID_CHARS,
  KEY_SECRET_CHARS,
  type KeyGiver,
  parseKey,
  type Scope,
  scopesOf,
} from '../../domain/access/keyRules.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import { hashSecret, spareRandomBytes } from '../../platform/secretBox.js';

/** Most keys of one organization that are not revoked. */
export const KEYS_MAX = 1_000;

/** The author of a change of keys, and the request. */
export interface KeyAuthor {
  giver: KeyGiver;
  actor: AuditActor;
  requestId: string | null;
  nowMicros: bigint;
}

/** The value of `created_by` and `revoked_by`. */
export function nameOfActor(actor: AuditActor): string {
  return actor.kind === 'command' || actor.kind === 'system' ? 'command line' : actor.id;
}

/** A new key whose terms the domain's rules have checked. */
export type WantedKey = Omit<NewKey, 'createdBy' | 'scopes'> & { scopes: readonly Scope[] | null };

/**
 * Creates a key that holds no more than its creator's key. Errors: invalid_body, forbidden, workspace_archived,
 * too_many_items.
 */
export async function createKey(orgDb: OrgDb, wanted: WantedKey, by: KeyAuthor): Promise<ApiKey> {
  const { role, scopes, workspaceId = null, expiresAtMicros = null } = wanted;
  assertPossibleTerms({ role, scopes, workspaceId });
  assertFuture(expiresAtMicros, by.nowMicros);
  assertGrants(by.giver, scopesOf({ role, scopes }));
  return orgDb.transaction(async (inside) => {
    await lockKeyRing(inside);
    assertGrants(await getGiver(inside, by), scopesOf({ role, scopes }));
    if (workspaceId !== null) await lockOpenWorkspace(inside, workspaceId);
    if ((await countKeys(inside, wanted.id)).unrevoked >= KEYS_MAX)
      throw new DomainError(
        'too_many_items',
        `an organization can have ${KEYS_MAX} keys: revoke some that are no longer used`,
      );
    await insertKey(inside, { ...wanted, createdBy: nameOfActor(by.actor) });
    const key = await getKey(inside, wanted.id);
    await record(inside, by, 'key.created', key.id, { name: key.name, role, ...termsOf(key) });
    return key;
  });
}

/** A change of a key; absent fields keep their values. */
export interface KeyChange {
  name?: string | undefined;
  scopes?: readonly Scope[] | null | undefined;
  expiresAtMicros?: bigint | null | undefined;
}

/** Changes a key. Errors: not_found, key_not_active, invalid_body, forbidden, last_admin_key. */
export async function changeKey(orgDb: OrgDb, id: string, change: KeyChange, by: KeyAuthor): Promise<ApiKey> {
  return orgDb.transaction(async (inside) => {
    await lockKeyRing(inside);
    const giver = await getGiver(inside, by);
    const before = await getKey(inside, id);
    if (before.status === 'revoked') throw notActive('revoked');
    const after = {
      ...before,
      ...(change.name === undefined ? {} : { name: change.name }),
      ...(change.scopes === undefined ? {} : { scopes: change.scopes }),
      ...(change.expiresAtMicros === undefined ? {} : { expiresAtMicros: change.expiresAtMicros }),
    };
    if (isSame(before, after)) return before;
    assertPossibleTerms(after);
    if (change.expiresAtMicros !== before.expiresAtMicros)
      assertFuture(change.expiresAtMicros ?? null, by.nowMicros);
    assertGrants(giver, givenByChange(before, after));
    if (!isLastingAdmin(after)) await keepAdmin(inside, before);
    await updateApiKey(inside, after);
    await record(inside, by, 'key.changed', id, { name: after.name, ...termsOf(after) });
    return getKey(inside, id);
  });
}

/**
 * Replaces a key's secret; the old secret stays valid for `graceSeconds`. Errors: not_found, key_not_active, forbidden.
 * Error last_admin_key for an organization's last admin key without a grace period: a lost answer would lock everybody
 * out.
 */
export async function rotateKey(
  orgDb: OrgDb,
  id: string,
  secret: { secretHash: Buffer; last4: string; graceSeconds: number },
  by: KeyAuthor,
): Promise<ApiKey> {
  return orgDb.transaction(async (inside) => {
    await lockKeyRing(inside);
    const giver = await getGiver(inside, by);
    const key = await getKey(inside, id);
    if (key.status === 'revoked' || key.status === 'expired') throw notActive(key.status);
    // The author of a rotation sees the new secret.
    assertGrants(giver, scopesOf(key));
    if (secret.graceSeconds === 0) await keepAdmin(inside, key);
    await replaceKeySecret(inside, id, secret);
    await record(inside, by, 'key.rotated', id, { grace_seconds: secret.graceSeconds });
    return getKey(inside, id);
  });
}

/** Revokes a key immediately; undefined when it was already revoked. Errors: not_found, last_admin_key. */
export async function revokeKey(orgDb: OrgDb, id: string, by: KeyAuthor): Promise<ApiKey | undefined> {
  return orgDb.transaction(async (inside) => {
    await lockKeyRing(inside);
    await getGiver(inside, by);
    const key = await getKey(inside, id);
    if (key.status === 'revoked') return undefined;
    await keepAdmin(inside, key);
    await revokeKeys(inside, { id }, nameOfActor(by.actor));
    await record(inside, by, 'key.revoked', id, { name: key.name });
    return getKey(inside, id);
  });
}

/**
 * The rights that the author's key may grant. The lock of the key ring excludes further changes; the key may have been
 * revoked or narrowed while the request waited for the lock. Errors: unauthenticated, forbidden.
 */
async function getGiver(inside: OrgDb, by: KeyAuthor): Promise<KeyGiver> {
  if (by.actor.kind !== 'key') return by.giver;
  const key = await findApiKey(inside, by.actor.id);
  if (!key || key.status === 'revoked' || key.status === 'expired')
    throw new DomainError('unauthenticated', 'the key of this request was ended while it waited');
  const giver = { allows: (scope: Scope) => allowsScope(key.role, key.scopes, scope) };
  if (!giver.allows('keys:admin')) throw new DomainError('forbidden', 'admin role required');
  return giver;
}

/** Throws last_admin_key when this is the organization's last admin key. Requires the lock of the key ring. */
async function keepAdmin(inside: OrgDb, key: ApiKey): Promise<void> {
  if (!isLastingAdmin(key) || (await countKeys(inside, key.id)).lasting > 0) return;
  throw new DomainError(
    'last_admin_key',
    'it is the last key of the role admin that is neither narrowed nor expires: make another one first',
  );
}

async function getKey(inside: OrgDb, id: string): Promise<ApiKey> {
  const key = await findApiKey(inside, id);
  if (!key) throw new DomainError('not_found', 'there is no key with this id');
  return key;
}

async function lockOpenWorkspace(inside: OrgDb, id: string): Promise<void> {
  const workspace = await lockWorkspace(inside, id);
  if (!workspace)
    throw invalidField('body', 'workspace_id', 'there is no workspace with this id', 'invalid_body');
  if (workspace.archivedAtMicros !== null)
    throw new DomainError('workspace_archived', 'the workspace is archived: its keys are of no use');
}

function assertFuture(expiresAtMicros: bigint | null, nowMicros: bigint): void {
  if (expiresAtMicros === null || expiresAtMicros > nowMicros) return;
  throw invalidField(
    'body',
    'expires_at',
    'must lie in the future; to end a key at once, revoke it',
    'invalid_body',
  );
}

function notActive(status: 'revoked' | 'expired'): DomainError {
  return new DomainError(
    'key_not_active',
    status === 'revoked'
      ? 'the key is revoked for good: make another one'
      : 'the key has expired: give it a later expires_at first, or make another one',
  );
}

function isSame(before: ApiKey, after: ApiKey): boolean {
  const textOf = (key: ApiKey) => JSON.stringify([key.name, key.scopes, String(key.expiresAtMicros)]);
  return textOf(before) === textOf(after);
}

function termsOf(key: Pick<ApiKey, 'scopes' | 'workspaceId' | 'expiresAtMicros'>): AuditDetails {
  return {
    scopes: key.scopes,
    workspace_id: key.workspaceId === null ? null : publicId('wsp', key.workspaceId),
    expires_at: key.expiresAtMicros === null ? null : isoFromMicros(key.expiresAtMicros),
  };
}

async function record(
  inside: OrgDb,
  by: KeyAuthor,
  action: AuditAction,
  keyId: string,
  details: AuditDetails,
): Promise<void> {
  const { actor, requestId } = by;
  await recordAudit(inside, { action, actor, subject: { type: 'key', id: keyId }, details, requestId });
}

/** The stored part of a key; its text is shown once and not stored. */
export interface KeyDigest {
  /** `key_` and ten characters. */
  id: string;
  secretHash: Buffer;
  last4: string;
}

/** A key's text with its stored part. */
export interface DrawnKey extends KeyDigest {
  text: string;
}

/** Generates a key in the published format without storing it; with an id, a new secret for that key. */
export function drawKey(id?: string): DrawnKey {
  const idChars = id === undefined ? draw(KEY_ID_CHARS) : id.slice('key_'.length);
  const text = composeKey(idChars, draw(KEY_SECRET_CHARS));
  const digest = digestKey(text);
  if (!digest) throw new Error('a new key is not in the key format');
  return { ...digest, text };
}

/** The stored part of a key's text; undefined when the text is not in the key format. */
export function digestKey(text: string): KeyDigest | undefined {
  const parsed = parseKey(text);
  return parsed && { id: parsed.keyId, secretHash: hashSecret(parsed.secret), last4: text.slice(-4) };
}

function draw(characters: number): string {
  return base62FromBytes(spareRandomBytes(characters), characters);
}
