import { clearSealed, type SealedSecret } from '../../db/access/sealedSecrets.js';
import type { Database } from '../../db/client.js';
import { noticeIfBroken } from '../billing/connectionTurns.js';
import { orgDbOf } from '../useCaseDeps.js';

/** Gives up a secret that no key opens: the connection or the endpoint fails until somebody gives it a new one. */
export async function forgetSealed(database: Database, old: SealedSecret): Promise<void> {
  await orgDbOf({ database }, old.orgId).transaction(async (inside) =>
    noticeIfBroken(inside, await clearSealed(inside, old)),
  );
}
