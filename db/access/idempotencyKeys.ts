import { IDEMPOTENCY_HOURS, type IdempotencyScope } from '../../domain/access/idempotencyKey.js';
import type { Database } from '../client.js';
import { lockNumber, type Sealed, sealUnderLock } from '../locks.js';
import { type OrgDb, type SqlValue, unscoped } from '../orgDb.js';

/** State of a key: its answer, or that its first attempt is in progress (`status` null). */
export interface KnownRequest {
  status: number | null;
  /** null: a streamed body is still arriving. */
  fingerprint: Buffer | null;
  /** The encrypted answer; null: it was given up with the key that encrypted it. */
  ciphertext: Buffer | null;
  /** Whether the first attempt may still be running. */
  isLeased: boolean;
}

/** Older rows count as absent, whether or not they have been deleted. */
const EXPIRY = `interval '${IDEMPOTENCY_HOURS} hours'`;
const SCOPE = 'org_id = $1 and api_key_id = $2 and operation = $3 and idempotency_key = $4';

const scopeValues = (orgDb: OrgDb, scope: IdempotencyScope): SqlValue[] => [
  orgDb.orgId,
  scope.apiKeyId,
  scope.operation,
  scope.key,
];

export async function findKnownRequest(
  orgDb: OrgDb,
  scope: IdempotencyScope,
): Promise<KnownRequest | undefined> {
  const [known] = await orgDb.rows<KnownRequest>(
    `select status, fingerprint, ciphertext, lease_until > clock_timestamp() as "isLeased" from idempotency_keys
     where ${SCOPE} and created_at > now() - ${EXPIRY}`,
    scopeValues(orgDb, scope),
    'idempotency-find',
  );
  return known;
}

/**
 * Takes a key without waiting; `isMine` is false while another transaction holds it. `known` is read after the lock.
 */
export async function takeIdempotencyKey(
  inside: OrgDb,
  scope: IdempotencyScope,
): Promise<{ isMine: boolean; known: KnownRequest | undefined }> {
  const text = [inside.orgId, scope.apiKeyId, scope.operation, scope.key].join(' ');
  // Two statements, sent together: a single one would read in the snapshot before the lock.
  const [lock, known] = await Promise.all([
    inside.rows<{ taken: boolean }>(
      `select pg_try_advisory_xact_lock(${lockNumber('idempotencyKey')}) as taken`,
      [text],
      'idempotency-lock',
    ),
    findKnownRequest(inside, scope),
  ]);
  return { isMine: lock[0]?.taken === true, known };
}

/** Begins an attempt under a lease. false: an answer exists, or another attempt's lease is still valid. */
export async function beginAttempt(
  orgDb: OrgDb,
  scope: IdempotencyScope,
  attempt: { id: string; fingerprint: Buffer | null; leaseSeconds: number },
): Promise<boolean> {
  const begun = await orgDb.run(
    `insert into idempotency_keys as k (org_id, api_key_id, operation, idempotency_key, attempt, lease_until, fingerprint)
     values ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6), $7)
     on conflict (org_id, api_key_id, operation, idempotency_key) do update set attempt = excluded.attempt,
       lease_until = excluded.lease_until, fingerprint = excluded.fingerprint, status = null, ciphertext = null,
       secret_key_id = null, created_at = excluded.created_at
     where k.created_at <= now() - ${EXPIRY} or (k.status is null and k.lease_until <= clock_timestamp())`,
    [...scopeValues(orgDb, scope), attempt.id, attempt.leaseSeconds, attempt.fingerprint],
  );
  return begun === 1;
}

/** Extends the lease of a long attempt; does nothing when the attempt has lost it. */
export async function extendLease(
  orgDb: OrgDb,
  scope: IdempotencyScope,
  attempt: { id: string; leaseSeconds: number },
): Promise<void> {
  await orgDb.run(
    `update idempotency_keys set lease_until = clock_timestamp() + make_interval(secs => $6)
     where ${SCOPE} and attempt = $5 and status is null`,
    [...scopeValues(orgDb, scope), attempt.id, attempt.leaseSeconds],
  );
}

/** Releases the key after an attempt without a result, so that the next attempt need not wait. */
export async function releaseAttempt(
  orgDb: OrgDb,
  scope: IdempotencyScope,
  attemptId: string,
): Promise<void> {
  await orgDb.run(`delete from idempotency_keys where ${SCOPE} and attempt = $5 and status is null`, [
    ...scopeValues(orgDb, scope),
    attemptId,
  ]);
}

interface AnswerToKeep {
  attemptId: string;
  fingerprint: Buffer;
  status: number;
  /** Encrypts with the current key; called under the lock that a rotation takes. */
  seal(): Sealed;
}

/** Stores the answer of an attempt, in a transaction; false: another attempt has taken over meanwhile. */
export async function storeAnswer(
  inside: OrgDb,
  scope: IdempotencyScope,
  answer: AnswerToKeep,
): Promise<boolean> {
  const { ciphertext, keyId } = await sealUnderLock(inside, () => answer.seal());
  const stored = await inside.run(
    `insert into idempotency_keys as k (org_id, api_key_id, operation, idempotency_key, attempt, lease_until, fingerprint, status, ciphertext, secret_key_id)
       values ($1, $2, $3, $4, $5, now(), $6, $7, $8, $9)
       on conflict (org_id, api_key_id, operation, idempotency_key) do update set attempt = excluded.attempt,
         lease_until = excluded.lease_until, fingerprint = excluded.fingerprint, status = excluded.status,
         ciphertext = excluded.ciphertext, secret_key_id = excluded.secret_key_id,
         created_at = case when k.attempt = excluded.attempt then k.created_at else excluded.created_at end
       where k.created_at <= now() - ${EXPIRY}
         or (k.status is null and (k.attempt = excluded.attempt or k.lease_until <= clock_timestamp()))`,
    [...scopeValues(inside, scope), answer.attemptId, answer.fingerprint, answer.status, ciphertext, keyId],
  );
  return stored === 1;
}

const PRUNE_ROWS = 1_000;

/** Deletes expired rows in batches, each a transaction, at most `rowsMax`; returns their number. */
export async function pruneIdempotencyKeys(database: Database, rowsMax = 1_000_000): Promise<number> {
  let removed = 0;
  while (removed < rowsMax) {
    const batch = Math.min(PRUNE_ROWS, rowsMax - removed);
    const rows = await unscoped(database, 'answers kept for repeats go after a day', (system) =>
      system.run(
        `delete from idempotency_keys where ctid = any (array(
           select ctid from idempotency_keys where created_at <= now() - ${EXPIRY} order by created_at limit $1))`,
        [batch],
      ),
    );
    removed += rows;
    if (rows < batch) break;
  }
  return removed;
}
