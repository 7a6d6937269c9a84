import type { IdempotencyScope } from '../../domain/access/idempotencyKey.js';
import { type ConnectionTurn, TURN_COLUMNS } from '../billing/billingConnections.js';
import type { Database } from '../client.js';
import { column, defineEntity } from '../entity.js';
import { INSTALLATION_LOCKS } from '../locks.js';
import { type OrgDb, unscoped } from '../orgDb.js';

/**
 * Everything that is encrypted with the instance's secret key, in all organizations: for the start and the rotation.
 */

const WHY = 'the secret key belongs to the instance, not to an organization';

/** The tables of encrypted secrets, by kind. */
const TABLES = { connection: 'billing_connections', webhook: 'webhook_endpoints' } as const;
/** `connection`: a provider's credentials. `webhook`: the secrets that sign an endpoint's messages. */
export type SealedKind = keyof typeof TABLES;

export interface SealedSecret {
  kind: SealedKind;
  orgId: string;
  subjectId: string;
  ciphertext: Buffer;
  keyId: string;
}

const SEALED = defineEntity<SealedSecret>('sealed', {
  kind: column(),
  orgId: column(),
  subjectId: column('id'),
  ciphertext: column(),
  keyId: column('secret_key_id'),
});

const ALL_SEALED = Object.entries(TABLES)
  .map(
    ([kind, table]) =>
      `select '${kind}' as kind, org_id, id, ciphertext, secret_key_id from ${table} where secret_key_id is not null`,
  )
  .join(' union all ');

/** Number of secrets by kind and by the key that encrypted them. */
export async function countSealedByKey(
  database: Database,
): Promise<Map<string, Partial<Record<SealedKind, number>>>> {
  const rows = await unscoped(database, WHY, (system) =>
    system.rows<{ keyId: string; kind: SealedKind; sealed: number }>(
      `select secret_key_id as "keyId", kind, count(*)::bigint as sealed from (${ALL_SEALED}) s group by 1, 2 order by 1, 2`,
    ),
  );
  const counts = new Map<string, Partial<Record<SealedKind, number>>>();
  for (const { keyId, kind, sealed } of rows) counts.set(keyId, { ...counts.get(keyId), [kind]: sealed });
  return counts;
}

export async function listSealedOtherwise(database: Database, keyId: string): Promise<SealedSecret[]> {
  return unscoped(database, WHY, (system) =>
    system.rows<SealedSecret>(
      `select ${SEALED.columns} from (${ALL_SEALED}) s where secret_key_id <> $1 order by kind, org_id, id`,
      [keyId],
    ),
  );
}

/** Stores secrets that were encrypted again, unless they were changed or erased meanwhile. */
export async function replaceSealed(
  database: Database,
  old: SealedSecret,
  sealed: { ciphertext: Buffer; keyId: string },
): Promise<boolean> {
  return unscoped(
    database,
    WHY,
    async (system) =>
      (await system.run(
        `update ${TABLES[old.kind]} set ciphertext = $4, secret_key_id = $5 where org_id = $1 and id = $2 and ciphertext = $3`,
        [old.orgId, old.subjectId, old.ciphertext, sealed.ciphertext, sealed.keyId],
      )) === 1,
  );
}

const FORGET: Record<SealedKind, string> = {
  connection: `update billing_connections c set ciphertext = null, secret_key_id = null, status = case when c.status = 'paused' then c.status else 'failing' end,
     last_error_code = 'credentials_missing', last_error_message = 'the credentials were given up with the key that sealed them; give new ones', updated_at = now()
   from (select status from billing_connections where org_id = $1 and id = $2 for update) before
   where c.org_id = $1 and c.id = $2 and c.ciphertext = $3 returning ${TURN_COLUMNS}`,
  webhook: `update webhook_endpoints set ciphertext = null, secret_key_id = null, updated_at = now()
   where org_id = $1 and id = $2 and ciphertext = $3`,
};

/** Erases a secret that no key decrypts; for a connection, returns its status before and after. */
export async function clearSealed(inside: OrgDb, old: SealedSecret): Promise<ConnectionTurn | undefined> {
  const [turn] = await inside.unscoped(WHY, (system) =>
    system.rows<ConnectionTurn>(FORGET[old.kind], [old.orgId, old.subjectId, old.ciphertext]),
  );
  return turn;
}

/** A stored answer for repeats of its request, encrypted with another key than the current one. */
export interface SealedAnswer {
  orgId: string;
  scope: IdempotencyScope;
  ciphertext: Buffer;
}

export async function listAnswersSealedOtherwise(
  database: Database,
  keyId: string,
  limit: number,
): Promise<SealedAnswer[]> {
  const rows = await unscoped(database, WHY, (system) =>
    system.rows<IdempotencyScope & Omit<SealedAnswer, 'scope'>>(
      `select org_id as "orgId", api_key_id as "apiKeyId", operation, idempotency_key as key, ciphertext from idempotency_keys
       where secret_key_id <> $1 limit $2`,
      [keyId, limit],
    ),
  );
  return rows.map(({ orgId, ciphertext, ...scope }) => ({ orgId, ciphertext, scope }));
}

/** Stores an answer that was encrypted again; null gives the answer up, but keeps the record that its request ran. */
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
 * Calls `drop` while no transaction encrypts and nothing is encrypted with another key than `keyId`; returns whether it
 * was called.
 */
export async function dropOldKeysWhenUnused(
  database: Database,
  keyId: string,
  drop: () => void,
): Promise<boolean> {
  return unscoped(database, WHY, async (system) => {
    await system.run('select pg_advisory_xact_lock($1)', [INSTALLATION_LOCKS.secrets]);
    const left = await system.rows(
      `select from (${ALL_SEALED}) s where secret_key_id <> $1
       union all select from idempotency_keys where secret_key_id <> $1 limit 1`,
      [keyId],
    );
    if (left.length > 0) return false;
    drop();
    return true;
  });
}
