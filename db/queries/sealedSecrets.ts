import type { IdempotencyScope } from '../../domain/access/idempotencyKey.js';
import type { Database } from '../client.js';
import { INSTALLATION_LOCKS } from '../locks.js';
import { unscoped } from '../orgDb.js';

/**
 * What is sealed with the instance's secret key, over all organizations: for the start, which says when a key is
 * missing, and for the rotation.
 */

const WHY = 'the secret key belongs to the instance, not to an organization';

export interface SealedCredentials {
  orgId: string;
  connectionId: string;
  ciphertext: Buffer;
  keyId: string;
}

/** The ids of the keys that stored credentials were sealed with, and how many with each. */
export async function countSealedByKey(database: Database): Promise<Map<string, number>> {
  const rows = await unscoped(database, WHY, (system) =>
    system.rows<{ key_id: string; sealed: number }>(
      'select secret_key_id as key_id, count(*)::bigint as sealed from billing_connections where secret_key_id is not null group by 1 order by 1',
    ),
  );
  return new Map(rows.map((row) => [row.key_id, row.sealed]));
}

/** Credentials that are sealed with another key than `keyId`. */
export async function listSealedOtherwise(database: Database, keyId: string): Promise<SealedCredentials[]> {
  const rows = await unscoped(database, WHY, (system) =>
    system.rows<{ org_id: string; id: string; ciphertext: Buffer; secret_key_id: string }>(
      'select org_id, id, ciphertext, secret_key_id from billing_connections where secret_key_id is not null and secret_key_id <> $1 order by org_id, id',
      [keyId],
    ),
  );
  return rows.map((row) => ({
    orgId: row.org_id,
    connectionId: row.id,
    ciphertext: row.ciphertext,
    keyId: row.secret_key_id,
  }));
}

/** Stores credentials that were sealed anew, unless they were changed or erased meanwhile. */
export async function replaceSealed(
  database: Database,
  old: SealedCredentials,
  sealed: { ciphertext: Buffer; keyId: string },
): Promise<boolean> {
  return unscoped(
    database,
    WHY,
    async (system) =>
      (await system.run(
        'update billing_connections set ciphertext = $4, secret_key_id = $5 where org_id = $1 and id = $2 and ciphertext = $3',
        [old.orgId, old.connectionId, old.ciphertext, sealed.ciphertext, sealed.keyId],
      )) === 1,
  );
}

/** Gives up credentials that no key opens: the connection says so until somebody gives new ones. */
export async function forgetSealed(database: Database, old: SealedCredentials): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      `update billing_connections set ciphertext = null, secret_key_id = null, status = case when status = 'paused' then status else 'failing' end,
         last_error_code = 'credentials_missing', last_error_message = 'the credentials were given up with the key that sealed them; give new ones', updated_at = now()
       where org_id = $1 and id = $2 and ciphertext = $3`,
      [old.orgId, old.connectionId, old.ciphertext],
    ),
  );
}

/** An answer that is kept for repeats of its request, sealed with another key than the current one. */
export interface SealedAnswer {
  orgId: string;
  scope: IdempotencyScope;
  ciphertext: Buffer;
}

/** Kept answers that are sealed with another key than `keyId`, a batch of them. */
export async function listAnswersSealedOtherwise(
  database: Database,
  keyId: string,
  limit: number,
): Promise<SealedAnswer[]> {
  const rows = await unscoped(database, WHY, (system) =>
    system.rows<{
      org_id: string;
      api_key_id: string;
      operation: string;
      idempotency_key: string;
      ciphertext: Buffer;
    }>(
      `select org_id, api_key_id, operation, idempotency_key, ciphertext from idempotency_keys
       where secret_key_id <> $1 limit $2`,
      [keyId, limit],
    ),
  );
  return rows.map((row) => ({
    orgId: row.org_id,
    scope: { apiKeyId: row.api_key_id, operation: row.operation, key: row.idempotency_key },
    ciphertext: row.ciphertext,
  }));
}

/** Stores an answer that was sealed anew; null gives it up: that its request was carried out stays known. */
export async function replaceSealedAnswer(
  database: Database,
  { orgId, scope, ciphertext }: SealedAnswer,
  sealed: { ciphertext: Buffer; keyId: string } | null,
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      `update idempotency_keys set ciphertext = $6, secret_key_id = $7
       where org_id = $1 and api_key_id = $2 and operation = $3 and idempotency_key = $4 and ciphertext = $5`,
      [
        orgId,
        scope.apiKeyId,
        scope.operation,
        scope.key,
        ciphertext,
        sealed?.ciphertext ?? null,
        sealed?.keyId ?? null,
      ],
    ),
  );
}

/**
 * Calls `drop` while nobody seals, when nothing is sealed with another key than `keyId`; returns whether it did. What
 * drops an old key must not meet a request that has just sealed with it.
 */
export async function dropOldKeysWhenUnused(
  database: Database,
  keyId: string,
  drop: () => void,
): Promise<boolean> {
  return unscoped(database, WHY, async (system) => {
    await system.run('select pg_advisory_xact_lock($1)', [INSTALLATION_LOCKS.secrets]);
    const left = await system.rows(
      `select from billing_connections where secret_key_id is not null and secret_key_id <> $1
       union all select from idempotency_keys where secret_key_id <> $1 limit 1`,
      [keyId],
    );
    if (left.length > 0) return false;
    drop();
    return true;
  });
}
