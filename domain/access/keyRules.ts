import { DomainError, invalidField } from '../errors.js';

/** A key has the first of these statuses that applies. */
export const KEY_STATUSES = ['revoked', 'expired', 'rotating', 'active'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

/** Seconds for which both secrets of a rotated key are valid. */
export const GRACE_SECONDS_DEFAULT = 86_400;
export const GRACE_SECONDS_MAX = 604_800;

export interface KeyTerms {
  role: Role;
  /** null: every scope of the role. */
  scopes: readonly Scope[] | null;
  /** The uuid of the workspace to which the key is bound. */
  workspaceId: string | null;
}

export function scopesOf(terms: Pick<KeyTerms, 'role' | 'scopes'>): Scope[] {
  const ceiling = ROLE_SCOPES[terms.role];
  return [...(terms.scopes ?? ceiling)].filter((scope) => ceiling.has(scope));
}

/** Error invalid_body for a scope that the role cannot hold, and for an admin key of a workspace. */
export function assertPossibleTerms(terms: KeyTerms): void {
  const over = terms.scopes?.find((scope) => !ROLE_SCOPES[terms.role].has(scope));
  if (over !== undefined)
    throw invalidField(
      'body',
      'scopes',
      `the role ${terms.role} cannot hold ${over}: leave it out, or make a key of another role`,
      'invalid_body',
    );
  if (terms.workspaceId !== null && terms.role === 'admin')
    throw invalidField(
      'body',
      'workspace_id',
      'a key of the role admin is for the whole organization: leave workspace_id out, or make a member of it',
      'invalid_body',
    );
}

/**
 * Error forbidden if the giver lacks a granted scope. Otherwise a key with keys:admin alone could create a full
 * key.
 */
export function assertGrants(giver: KeyGiver, given: readonly Scope[]): void {
  const beyond = given.find((scope) => !giver.allows(scope));
  if (beyond === undefined) return;
  throw new DomainError(
    'forbidden',
    `a key cannot grant more than it holds, and this one lacks the scope ${beyond}: narrow the other key with scopes, or use a key that holds it`,
  );
}

/** The creator or editor of a key: another key, or an operator on the server, who holds every scope. */
export interface KeyGiver {
  allows(scope: Scope): boolean;
}

/** The scopes that a change grants: the new ones, or all scopes if the key expires later than before. */
export function givenByChange(before: KeyPower, after: KeyPower): Scope[] {
  const had = new Set(scopesOf(before));
  return isLonger(before.expiresAtMicros, after.expiresAtMicros)
    ? scopesOf(after)
    : scopesOf(after).filter((scope) => !had.has(scope));
}

export interface KeyPower extends Pick<KeyTerms, 'role' | 'scopes'> {
  /** null: the key does not expire. */
  expiresAtMicros: bigint | null;
}

function isLonger(before: bigint | null, after: bigint | null): boolean {
  if (before === null || before === after) return false;
  return after === null || after > before;
}

/** An unrestricted admin key that does not expire. One always remains, so that other keys can be created. */
export function isLastingAdmin(key: KeyPower): boolean {
  return key.role === 'admin' && key.scopes === null && key.expiresAtMicros === null;
}

/** Roles, scopes, and the scopes that each role can hold; docs/access.md has the table. */
export const ROLES = ['admin', 'member', 'auditor', 'ingest'] as const;
export type Role = (typeof ROLES)[number];

export const SCOPES = [
  'ingest',
  'events:read',
  'payloads:read',
  'usage:read',
  'billing:read',
  'billing:write',
  'pricing:read',
  'pricing:write',
  'policies:read',
  'policies:write',
  'enforcement:read',
  'enforcement:write',
  'alerts:read',
  'alerts:write',
  'reconciliation:read',
  'reconciliation:write',
  'financial:read',
  'financial:write',
  'claims:read',
  'claims:write',
  'reports:read',
  'reports:write',
  'workspaces:read',
  'workspaces:admin',
  'keys:admin',
  'org:admin',
  'audit:read',
  'webhooks:admin',
] as const;
export type Scope = (typeof SCOPES)[number];

export const ADMIN_ONLY_SCOPES: ReadonlySet<Scope> = new Set<Scope>([
  'billing:write',
  'pricing:write',
  'policies:write',
  'enforcement:write',
  'workspaces:admin',
  'keys:admin',
  'org:admin',
  'webhooks:admin',
]);

/** Scopes that permit no change. */
export const READ_SCOPES: readonly Scope[] = SCOPES.filter((scope) => scope.endsWith(':read'));

/** The maximum scopes of each role. */
export const ROLE_SCOPES: Record<Role, ReadonlySet<Scope>> = {
  admin: new Set(SCOPES),
  // A member drafts and merges claims and manages prices and bills, but makes no decisions for the organization.
  member: new Set(SCOPES.filter((scope) => !ADMIN_ONLY_SCOPES.has(scope))),
  auditor: new Set(READ_SCOPES),
  ingest: new Set<Scope>(['ingest']),
};

/** Whether a key of this role, restricted to `scopes` unless null, holds `scope`. */
export function allowsScope(role: Role, scopes: readonly string[] | null, scope: Scope): boolean {
  return ROLE_SCOPES[role].has(scope) && (scopes === null || scopes.includes(scope));
}

/** API keys: `tu_live_<id 10>_<secret 43><check 6>`, base62. The CRC-32 check finds typing errors without the database. */
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CRC_POLYNOMIAL = 0xedb88320;

export const KEY_ID_CHARS = 10;
/** 43 base62 characters hold 256 bits. */
export const KEY_SECRET_CHARS = 43;
const CHECK_CHARS = 6;
const KEY_PREFIX = 'tu_live_';
/** Characters of a whole key: prefix, id, underscore, secret, check. */
const KEY_CHARS = KEY_PREFIX.length + KEY_ID_CHARS + 1 + KEY_SECRET_CHARS + CHECK_CHARS;

/** The published pattern of a key, for secret scanners. */
export const KEY_PATTERN = /^tu_live_([0-9A-Za-z]{10})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

const KEY_ID_PREFIX = 'key_';
const KEY_ID = /^key_[0-9A-Za-z]{10}$/;

/** Whether a text has the form of a key's public id. */
export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}

export interface ParsedKey {
  keyId: string;
  secret: string;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ CRC_POLYNOMIAL : value >>> 1;
  return value >>> 0;
});

/** CRC-32 (IEEE 802.3) of an ASCII text. */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i += 1)
    crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

function checkOf(text: string): string {
  let rest = crc32(text);
  let check = '';
  for (let i = 0; i < CHECK_CHARS; i += 1) {
    check = (BASE62[rest % 62] ?? '0') + check;
    rest = Math.floor(rest / 62);
  }
  return check;
}

/**
 * Random bytes → base62 text of `length`. Bytes that would bias the digits are skipped, so pass more bytes than
 * `length`.
 */
export function base62FromBytes(bytes: Uint8Array, length: number): string {
  let text = '';
  for (const byte of bytes) {
    if (byte < 248) text += BASE62[byte % 62];
    if (text.length === length) return text;
  }
  throw new RangeError('too few random bytes');
}

/** The public beginning of a key, equal for all of its secrets: it identifies the key but does not authenticate. */
export function publicPrefix(keyId: string): string {
  return KEY_PREFIX + keyId.slice(KEY_ID_PREFIX.length);
}

/** The full key from the ten characters of its id and its secret. */
export function composeKey(idChars: string, secret: string): string {
  const body = `${KEY_PREFIX}${idChars}_${secret}`;
  return body + checkOf(body);
}

/** Parses a key; undefined if its form or its checksum is wrong. */
export function parseKey(key: string): ParsedKey | undefined {
  const match = KEY_PATTERN.exec(key);
  if (!match) return undefined;
  const [, idChars = '', secret = '', check = ''] = match;
  if (checkOf(key.slice(0, -CHECK_CHARS)) !== check) return undefined;
  return { keyId: `key_${idChars}`, secret };
}

/** The fault of a text as a key, in a message that never contains the text; undefined if it has the form of a key. */
export function findKeyFault(text: string): string | undefined {
  if (parseKey(text)) return undefined;
  if (!text.startsWith(KEY_PREFIX)) return `a key begins with ${KEY_PREFIX}`;
  if (text.length !== KEY_CHARS)
    return `a key has ${KEY_CHARS} characters, and this has ${text.length}: it was cut or something was added`;
  if (!KEY_PATTERN.test(text)) return 'it has characters in it that no key has';
  return 'the check sum does not fit, so at least one character is wrong';
}
