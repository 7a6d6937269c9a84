import { isIPv4 } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { recordAudit } from '../../db/access/auditLog.js';
import { touchKeys } from '../../db/access/keys.js';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';

/** Least milliseconds between two writes of a key's last use. */
const TOUCH_INTERVAL_MS = 60_000;
/** Milliseconds for which uses are collected into one write. */
const GATHER_MS = 1_000;
/** Keys whose last write a process remembers. */
const NOTED_MAX = 10_000;

/**
 * Records when keys were last used, after the answer: a lost record is harmless, so recording neither delays nor fails
 * a request.
 */
export class KeyUses {
  readonly #database: Database;
  readonly #now: () => bigint;
  readonly #notedMs = new Map<string, number>();
  readonly #gathered = new Set<string>();

  constructor(database: Database, now: () => bigint) {
    this.#database = database;
    this.#now = now;
  }

  note(keyId: string): void {
    const nowMs = Number(this.#now() / 1_000n);
    if (nowMs - (this.#notedMs.get(keyId) ?? 0) < TOUCH_INTERVAL_MS) return;
    if (this.#notedMs.size >= NOTED_MAX) this.#notedMs.clear();
    this.#notedMs.set(keyId, nowMs);
    if (this.#gathered.size === 0) setTimeout(() => this.#write(), GATHER_MS).unref();
    this.#gathered.add(keyId);
  }

  #write(): void {
    const keyIds = [...this.#gathered];
    this.#gathered.clear();
    touchKeys(this.#database, keyIds).catch(() => undefined);
  }
}

/** Why a key that exists was refused. */
export type AuthFailureReason = 'wrong_secret' | 'revoked' | 'expired';

/** Window of one audit row for each key and reason; the row counts the failures of the window. */
const WINDOW_MS = 60_000;
/** Keys and reasons that are tracked at once; further ones are counted by log lines and the metric only. */
const FOLLOWED_MAX = 10_000;

/** The sender of a refused key. */
export interface Sender {
  /** The client address; undefined: unknown. */
  address: string | undefined;
  requestId: string | null;
}

export interface AuthFailure extends Sender {
  key: { id: string; orgId: string };
  reason: AuthFailureReason;
}

/**
 * Writes refused keys to their organization's audit log: the first refusal immediately, those of the following minute
 * as one row with their number. The presented text is not stored in any form. Writing continues after the answer, which
 * takes equally long for existing and unknown keys.
 */
export class AuthFailures {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #windowMs: number;
  /** Failures since the last row. */
  readonly #followed = new LRUCache<string, { more: number; failure: AuthFailure }>({ max: FOLLOWED_MAX });
  #writing: Promise<void> = Promise.resolve();

  constructor(database: Database, logger: Logger, windowMs = WINDOW_MS) {
    this.#database = database;
    this.#logger = logger;
    this.#windowMs = windowMs;
  }

  note(failure: AuthFailure): void {
    const name = `${failure.key.id} ${failure.reason}`;
    const followed = this.#followed.get(name);
    if (followed) {
      followed.more += 1;
      return;
    }
    this.#write(failure, 1);
    this.#follow(name, failure);
  }

  /** Resolves when everything recorded is written, without waiting for the end of a window: for an orderly shutdown. */
  settle(): Promise<void> {
    for (const followed of this.#followed.values()) {
      if (followed.more > 0) this.#write(followed.failure, followed.more);
      followed.more = 0;
    }
    return this.#writing;
  }

  #follow(name: string, failure: AuthFailure): void {
    const followed = { more: 0, failure };
    this.#followed.set(name, followed);
    setTimeout(() => {
      if (this.#followed.peek(name) === followed) this.#followed.delete(name);
      if (followed.more === 0) return;
      this.#write(failure, followed.more);
      this.#follow(name, failure);
    }, this.#windowMs).unref();
  }

  #write({ key, reason, address, requestId }: AuthFailure, count: number): void {
    const network = address === undefined ? undefined : coarseNetwork(address);
    const entry = {
      action: 'auth.failed',
      // The sender has not proved that it owns the key.
      actor: { kind: 'system', id: 'authentication' },
      subject: { type: 'key', id: key.id },
      details: { reason, count, network },
      requestId,
    } as const;
    this.#writing = this.#writing
      .then(() => recordAudit(new OrgDb(this.#database, key.orgId), entry))
      .catch((error: unknown) =>
        this.#logger.warn(
          { err: error, requestId, keyId: key.id, reason, count },
          'a refused key was not written down',
        ),
      );
  }
}

/**
 * A client address as precisely as the log stores it: the /24 of an IPv4 address, the /48 of an IPv6 one. This
 * distinguishes networks and does not identify a person's line in a log that is never erased.
 */
export function coarseNetwork(address: string): string {
  if (isIPv4(address)) return `${address.split('.').slice(0, 3).join('.')}.0/24`;
  const groups = address.split('/')[0]?.split('::')[0]?.split(':').slice(0, 3) ?? [];
  return `${groups.join(':')}::/48`;
}
