import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import type { Notice } from '../policies/alerts/alert.js';

/** A connection whose status has just turned `failing`. */
export interface BrokenConnection {
  /** uuid */
  id: string;
  name: string;
  provider: string;
  accountId: string;
  /** When the last sync that went well ended; null where none ever did. */
  lastSyncedAtMicros: bigint | null;
  error: { code: string; message: string };
}

/**
 * The notice that bills come in no more. One for each time that the status turns, at `atMicros`: the syncs that fail
 * after it while it lasts say nothing new.
 */
export function connectionBroken(connection: BrokenConnection, atMicros: bigint): Notice {
  const { provider, accountId, name, error, lastSyncedAtMicros } = connection;
  const id = publicId('con', connection.id);
  return {
    code: 'connection_broken',
    key: `connection_broken:${id}:${atMicros}`,
    subject: { type: 'connection', id },
    severity: 'high',
    message: `The bills of the ${provider} account ${accountId} ("${name}") cannot be fetched: ${error.message}`,
    details: {
      error_code: error.code,
      last_synced_at: lastSyncedAtMicros === null ? null : isoFromMicros(lastSyncedAtMicros),
    },
    provider,
  };
}
