import { LRUCache } from 'lru-cache';
import { findKey, type StoredKey } from '../../db/access/keys.js';
import type { Changes } from '../../db/changeFeed.js';
import type { Database } from '../../db/client.js';
import { ADMIN_ONLY_SCOPES, allowsScope, parseKey, type Scope } from '../../domain/access/keyRules.js';
import { DomainError } from '../../domain/errors.js';
import { hashSecret, sameDigest } from '../../platform/secretBox.js';
import {
  type AuthFailureReason,
  type AuthFailures,
  KeyUses,
  type Sender,
} from '../../usecases/access/keyUses.js';
import { actorOfSession, findSessionOf, noteSeen } from '../../usecases/access/sessions.js';
import type { Caller, CallerAccess } from '../endpoint.js';

/** Longest time for which a key's row is cached: the latest time at which a revocation takes effect. */
const KEY_CACHE_MS = 5_000;
const KEY_CACHE_ENTRIES = 10_000;
/** The digest that is compared when the key is unknown; no known text has it. */
const NO_DIGEST = Buffer.alloc(32);

const SESSION_REFUSAL = 'the session has ended: sign in again';
const REFUSAL = 'a valid API key is needed: send the header Authorization: Bearer <key>';

interface RememberedKey extends StoredKey {
  /** The lead of the database's clock, which wrote the row's times, over this process's clock. */
  aheadMicros: bigint;
}

interface FoundKey {
  key: RememberedKey | undefined;
  /** Whether the secret matches. */
  isKnown: boolean;
}

interface ParsedToken {
  keyId: string;
  digest: Buffer;
}

const unknownSender = (): Sender => ({ address: undefined, requestId: null });

/** Authenticates the Authorization header, with a short-lived cache in front of the keys table. */
export class Authenticator {
  readonly #database: Database;
  readonly #now: () => bigint;
  readonly #cache: LRUCache<string, RememberedKey>;
  /** Increases with every reported change of a key. */
  #generation = 0;
  readonly #parsed = new LRUCache<string, ParsedToken>({ max: KEY_CACHE_ENTRIES });
  readonly #uses: KeyUses;
  readonly #failures: AuthFailures;

  /** `cacheMs`: replaces KEY_CACHE_MS. */
  constructor(
    database: Database,
    now: () => bigint,
    changes: Changes,
    failures: AuthFailures,
    cacheMs = KEY_CACHE_MS,
  ) {
    this.#database = database;
    this.#now = now;
    this.#cache = new LRUCache({ max: KEY_CACHE_ENTRIES, ttl: cacheMs });
    this.#uses = new KeyUses(database, now);
    this.#failures = failures;
    changes.subscribe('key_changed', {
      changed: (keyId) => this.#forget(keyId),
      missed: () => this.#forget(),
    });
  }

  /**
   * The caller of an Authorization header; `basic` also accepts HTTP Basic with the key as the password. `senderOf`
   * returns the sender, which the audit log records with a refused key. Error: unauthenticated, identical for every
   * cause.
   */
  async authenticate(header: string | undefined, basic: boolean, senderOf = unknownSender): Promise<Caller> {
    const token = readToken(header, basic);
    const parsed = token === undefined ? undefined : this.#parse(token);
    if (!parsed) throw new DomainError('unauthenticated', REFUSAL);
    const { key, isKnown } = this.#cachedKeyOf(parsed) ?? (await this.#storedKeyOf(parsed));
    const failure = key && this.#failureOf(key, isKnown);
    if (key && failure) this.#failures.note({ key, reason: failure, ...senderOf() });
    if (!key || failure) throw new DomainError('unauthenticated', REFUSAL);
    this.#uses.note(key.id);
    return {
      keyId: key.id,
      orgId: key.orgId,
      role: key.role,
      workspace: key.workspace ?? undefined,
      allows: (scope) => allowsScope(key.role, key.scopes, scope),
    };
  }

  /** The caller of a session's cookie. Error: unauthenticated, identical for every cause. */
  async authenticateSession(secret: string): Promise<Caller> {
    const session = await findSessionOf(this.#database, secret);
    if (!session) throw new DomainError('unauthenticated', SESSION_REFUSAL);
    noteSeen(this.#database, session);
    const { signIn, principal, orgId, role, scopes, workspace } = session;
    if (signIn === 'key') this.#uses.note(principal);
    return {
      keyId: principal,
      ...(signIn === 'key' ? {} : { actor: actorOfSession(session) }),
      session,
      orgId,
      role,
      workspace: workspace ?? undefined,
      allows: (scope) => allowsScope(role, scopes, scope),
    };
  }

  /** The key's id and the digest of its secret; cached, since most requests repeat a key. */
  #parse(token: string): ParsedToken | undefined {
    const known = this.#parsed.get(token);
    if (known !== undefined) return known;
    const key = parseKey(token);
    if (!key) return undefined;
    const parsed = { keyId: key.keyId, digest: hashSecret(key.secret) };
    this.#parsed.set(token, parsed);
    return parsed;
  }

  /** The cached key with this id if the secret matches. */
  #cachedKeyOf(parsed: ParsedToken): FoundKey | undefined {
    const key = this.#cache.get(parsed.keyId);
    const isKnown = this.#knows(key, parsed.digest);
    return key && isKnown ? { key, isKnown } : undefined;
  }

  /**
   * The stored key with this id, and whether the secret matches. A secret that does not match the cached row is checked
   * against a fresh one, because the key may just have been rotated. Every refusal therefore costs the same queries and
   * comparisons, whether or not the key exists.
   */
  async #storedKeyOf(parsed: ParsedToken): Promise<FoundKey> {
    const generation = this.#generation;
    const askedMicros = this.#now();
    const found = await findKey(this.#database, parsed.keyId);
    const stored = found && { ...found, aheadMicros: aheadBy(found.readAtMicros, askedMicros, this.#now()) };
    // A row that was read before a reported change must not enter the cache.
    if (stored && generation === this.#generation) this.#cache.set(stored.id, stored);
    return { key: stored, isKnown: this.#knows(stored, parsed.digest) };
  }

  /**
   * Whether the secret is the key's present one, or its previous one within the grace period. An unknown key costs the
   * same comparisons.
   */
  #knows(key: RememberedKey | undefined, digest: Buffer): boolean {
    const isCurrent = sameDigest(key?.secretHash ?? NO_DIGEST, digest);
    const isPrevious = sameDigest(key?.previous?.secretHash ?? NO_DIGEST, digest);
    const isWithinGrace = (key?.previous?.validUntilMicros ?? 0n) > this.#now() + (key?.aheadMicros ?? 0n);
    return isCurrent || (isPrevious && isWithinGrace);
  }

  /** Drops one key, or all keys, from the cache; a lookup in progress is not cached either. */
  #forget(keyId?: string): void {
    this.#generation += 1;
    if (keyId === undefined) this.#cache.clear();
    else this.#cache.delete(keyId);
  }

  /** Why an existing key is refused; undefined: it is valid. */
  #failureOf(key: RememberedKey, isKnown: boolean): AuthFailureReason | undefined {
    if (!isKnown) return 'wrong_secret';
    // A revocation holds immediately, without comparing clocks.
    if (key.revokedAtMicros !== null) return 'revoked';
    if (key.expiresAtMicros === null) return undefined;
    return key.expiresAtMicros <= this.#now() + key.aheadMicros ? 'expired' : undefined;
  }
}

/**
 * Least lead of one clock over another, from one reading between two readings of the other; negative: it is behind, 0:
 * they may agree.
 */
function aheadBy(readMicros: bigint, fromMicros: bigint, toMicros: bigint): bigint {
  if (readMicros < fromMicros) return readMicros - fromMicros;
  return readMicros > toMicros ? readMicros - toMicros : 0n;
}

function readToken(header: string | undefined, basic: boolean): string | undefined {
  if (header === undefined) return undefined;
  const bearer = /^Bearer +(\S+) *$/i.exec(header)?.[1];
  if (bearer !== undefined || !basic) return bearer;
  const encoded = /^Basic +([A-Za-z0-9+/=_-]+) *$/i.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64').toString('latin1');
  return decoded.slice(decoded.indexOf(':') + 1);
}

/** Throws forbidden for a caller without the scope; for admin the message is the sentence of the specification. */
export function assertScope(caller: Caller, scope: Scope): void {
  if (caller.allows(scope)) return;
  throw new DomainError(
    'forbidden',
    ADMIN_ONLY_SCOPES.has(scope) ? 'admin role required' : `the key lacks the scope ${scope}`,
  );
}

/** Throws forbidden for a caller that requests payloads and may not read them. */
export function assertPayloads(caller: Caller, includePayload: boolean | undefined): void {
  if (includePayload) assertScope(caller, 'payloads:read');
}

/**
 * Throws forbidden for a caller that lacks the endpoint's role or scope, or whose workspace key calls an endpoint of
 * the whole organization.
 */
export function assertAllowed(caller: Caller, access: CallerAccess): void {
  if (access.role !== undefined && caller.role !== access.role)
    throw new DomainError('forbidden', 'admin role required');
  if (access.scope !== 'any') assertScope(caller, access.scope);
  if (caller.workspace && access.workspace === 'refused') {
    throw new DomainError(
      'forbidden',
      'the key is bound to a workspace: use a key of the whole organization',
    );
  }
}
