import { drawKey } from '../../api/access/keyMaker.js';
import { type ApiKey, listApiKeys } from '../../db/access/keyRing.js';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';
import { findKeyFault, parseKey } from '../../domain/access/keyFormat.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { isoFromMicros, microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';
import { StartError } from '../../platform/startError.js';
import { createKey, type KeyAuthor, revokeKey, rotateKey } from '../../usecases/access/keyChanges.js';
import type { KeyArguments } from './keyArguments.js';
import { chooseOrganization } from './organization.js';
import { left, textTable } from './textTable.js';
import { withToolDatabase } from './toolDatabase.js';

/** Keys that a list shows; the API shows all, page by page. */
const LIST_MAX = 1_000;

/**
 * Does what a command about keys asks for, by the rules of the API; whoever may run it may give every scope. Returns
 * what is printed.
 * @throws StartError saying what is wrong and what to do.
 */
export async function runKeyCommand(readConfig: () => Config, asked: KeyArguments): Promise<string> {
  if (asked.command === 'check') return checkKey(asked.key);
  if (asked.command === 'draw') return drawKey().text;
  try {
    return await withToolDatabase(readConfig(), (database) => runInDatabase(database, asked));
  } catch (error) {
    throw error instanceof DomainError ? new StartError(`${error.message}.`, { cause: error }) : error;
  }
}

async function runInDatabase(
  database: Database,
  asked: Exclude<KeyArguments, { command: 'check' | 'draw' }>,
): Promise<string> {
  const orgDb = new OrgDb(database, await chooseOrganization(database, asked.org));
  const by: KeyAuthor = {
    giver: { allows: () => true },
    actor: { kind: 'command', id: `key:${asked.command}` },
    requestId: null,
    nowMicros: microsFromDate(new Date()),
  };
  switch (asked.command) {
    case 'list':
      return tableOf(await listApiKeys(orgDb, { status: asked.status }, { limit: LIST_MAX, offset: 0 }));
    case 'revoke': {
      const revoked = await revokeKey(orgDb, asked.id, by);
      return revoked
        ? `${asked.id} (${revoked.name}) is revoked.`
        : `${asked.id} was revoked before; nothing changed.`;
    }
    case 'rotate': {
      const { text, id, ...secret } = drawKey(asked.id);
      await rotateKey(orgDb, id, { ...secret, graceSeconds: asked.graceSeconds }, by);
      return text;
    }
    case 'create': {
      const { text, ...digest } = drawKey();
      await createKey(orgDb, { ...digest, ...asked.key }, by);
      return text;
    }
  }
}

/** Tells offline whether a text can be a key at all. */
function checkKey(text: string): string {
  const fault = findKeyFault(text);
  if (fault !== undefined) throw new StartError(`This is no key: ${fault}.`);
  return `The form and the check sum are right. Its id is ${parseKey(text)?.keyId}; whether it holds, npm run key:list says.`;
}

function tableOf(keys: readonly ApiKey[]): string {
  const time = (micros: bigint | null) => (micros === null ? '-' : isoFromMicros(micros).slice(0, 16));
  const rows = keys.map((key) => [
    key.id,
    key.status,
    key.role,
    key.scopes?.join(',') ?? 'all',
    key.workspaceId === null ? '-' : publicId('wsp', key.workspaceId),
    time(key.lastUsedAtMicros),
    time(key.expiresAtMicros),
    key.name,
  ]);
  const headings = ['id', 'status', 'role', 'scopes', 'workspace', 'last used', 'expires', 'name'];
  return textTable(headings.map(left), rows).join('\n');
}
