import { DomainError, invalidField } from '../errors.js';
import { ROLE_SCOPES, type Role, type Scope } from './scopes.js';

/** How a key stands: of several that hold the first is told. */
export const KEY_STATUSES = ['revoked', 'expired', 'rotating', 'active'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

/** How long both secrets of a rotated key hold, seconds. */
export const GRACE_SECONDS_DEFAULT = 86_400;
export const GRACE_SECONDS_MAX = 604_800;

/** What a key may do, as far as it is written down. */
export interface KeyTerms {
  role: Role;
  /** null: every scope of the role. */
  scopes: readonly Scope[] | null;
  /** The uuid of the workspace that it is bound to. */
  workspaceId: string | null;
}

/** What a key may do, scope by scope. */
export function scopesOf(terms: Pick<KeyTerms, 'role' | 'scopes'>): Scope[] {
  const ceiling = ROLE_SCOPES[terms.role];
  return [...(terms.scopes ?? ceiling)].filter((scope) => ceiling.has(scope));
}

/** Error invalid_body for terms that no key can have. */
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
 * Nobody gives what it does not hold itself: otherwise a key narrowed to keys:admin could make itself one that is not.
 * Error forbidden, naming the scope.
 */
export function assertGrants(giver: KeyGiver, given: readonly Scope[]): void {
  const beyond = given.find((scope) => !giver.allows(scope));
  if (beyond === undefined) return;
  throw new DomainError(
    'forbidden',
    `a key cannot grant more than it holds, and this one lacks the scope ${beyond}: narrow the other key with scopes, or use a key that holds it`,
  );
}

/** Who makes or changes a key: another key, or somebody at the server, who may do everything. */
export interface KeyGiver {
  allows(scope: Scope): boolean;
}

/** What a change gives to a key: scopes that it did not have; all that it then has, where it holds for longer. */
export function givenByChange(before: KeyPower, after: KeyPower): Scope[] {
  const had = new Set(scopesOf(before));
  return isLonger(before.expiresAtMicros, after.expiresAtMicros)
    ? scopesOf(after)
    : scopesOf(after).filter((scope) => !had.has(scope));
}

export interface KeyPower extends Pick<KeyTerms, 'role' | 'scopes'> {
  /** null: it has no end. */
  expiresAtMicros: bigint | null;
}

function isLonger(before: bigint | null, after: bigint | null): boolean {
  if (before === null || before === after) return false;
  return after === null || after > before;
}

/**
 * Whether it is a key that an organization can be left with: an admin's, not narrowed, without an end. One of them is
 * always kept, so that somebody can make all other keys.
 */
export function isLastingAdmin(key: KeyPower): boolean {
  return key.role === 'admin' && key.scopes === null && key.expiresAtMicros === null;
}
