import { ROLES, type Role } from './keyRules.js';

/** The start of a session: with a key, with a one-time link, or at the identity provider. */
export const SIGN_INS = ['key', 'link', 'oidc'] as const;
export type SignIn = (typeof SIGN_INS)[number];

/** A session ends this long after its last request, and this long after its sign-in. */
export const SESSION_IDLE_HOURS = 12;
export const SESSION_DAYS = 7;
/** Minutes for which a one-time link can be used. */
export const LINK_MINUTES = 10;
/** Seconds between two writes of a session's last request. */
export const SEEN_SECONDS = 60;
/** Days for which ended sessions and used links are kept. */
export const ENDED_SESSION_DAYS = 30;

/** Most sessions of one key, link or person: a further sign-in ends the oldest. */
export const SESSIONS_OF_ONE_MAX = 20;
/** Most sessions of an organization: a further sign-in is refused. */
export const SESSIONS_MAX = 1_000;

/** Characters of a secret: 43 of base62 hold 256 bits. */
export const SESSION_SECRET_CHARS = 43;
const SESSION_SECRET = /^tus_[0-9A-Za-z]{43}$/;
const LINK_TOKEN = /^[0-9A-Za-z]{43}$/;

/** The prefix lets secret scanners find a session that leaked. */
export const SESSION_PREFIX = 'tus_';

export function isSessionSecret(text: string): boolean {
  return SESSION_SECRET.test(text);
}

export function isLinkToken(text: string): boolean {
  return LINK_TOKEN.test(text);
}

/** A person as the identity provider describes them. */
export interface Person {
  /** Never changes at its provider. */
  sub: string;
  name: string | null;
  email: string | null;
}

/** A person's id in the audit log. */
export function nameOfPerson({ sub, email }: Pick<Person, 'sub' | 'email'>): string {
  return email === null ? sub : `${sub} ${email}`;
}

/** The strongest role of a person's groups; undefined: none has a role. */
export function roleOfGroups(groups: readonly string[], roles: ReadonlyMap<string, Role>): Role | undefined {
  const held = new Set(groups.map((group) => roles.get(group)));
  return ROLES.find((role) => held.has(role));
}
