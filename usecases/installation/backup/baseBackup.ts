import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { CopyOut } from './copyStream.js';

/** A position of the write-ahead log, as Postgres writes it: `0/2000028`. */
export type Lsn = string;

/** A position of the write-ahead log as a number, for comparing. */
export function lsnNumber(lsn: Lsn): bigint {
  const [high = '0', low = '0'] = lsn.split('/');
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}

/** A base backup in progress. */
export interface BaseBackup {
  /** Bytes that Postgres expects to send, without the write-ahead log. */
  estimatedBytes: number;
  /** Recovery begins at this position. */
  startLsn: Lsn;
  /** The cluster's files as one tar: backup_label first, the write-ahead log from start to stop last. */
  tar: AsyncIterable<Buffer>;
  /**
   * The position from which a restored cluster is consistent. Call it after reading the tar to its end, because it
   * follows the tar.
   */
  stopLsn(): Promise<Lsn>;
  /** Ends the backup, finished or not: with the connection the server leaves backup mode and drops the slot. */
  close(): Promise<void>;
}

/** The cluster cannot be copied as it is; the message says why. */
export class BaseBackupError extends Error {}

/** Message kinds of a base backup: a new archive, and its bytes ("Streaming Replication Protocol", BASE_BACKUP). */
const NEW_ARCHIVE = 0x6e;
const DATA = 0x64;

/**
 * Takes a base backup over a replication connection: the server reads its files, verifies the checksum of every page
 * and leaves out files that do not belong in a backup. A temporary slot, created first, keeps the write-ahead log from
 * being recycled meanwhile; the server drops it when the connection ends in any way.
 * @throws BaseBackupError; the driver's error when the server does not permit it.
 */
export async function openBaseBackup(url: string): Promise<BaseBackup> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'trueup-backup',
    // The driver supports this option; its types omit it.
    ...({ replication: 'true' } as object),
  });
  // A broken connection is reported by the statement that waits for it.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const slot = `trueup_backup_${randomBytes(6).toString('hex')}`;
    await client.query(`CREATE_REPLICATION_SLOT ${slot} TEMPORARY PHYSICAL (RESERVE_WAL)`);
    const copy = new CopyOut(
      client,
      `BASE_BACKUP (LABEL 'trueup', PROGRESS true, CHECKPOINT 'fast', WAL true, WAIT false, MANIFEST 'no')`,
    );
    const messages = copy[Symbol.asyncIterator]();
    // The first message follows two result sets: the start position, and the tablespaces with their sizes.
    const first = await messages.next();
    const [start, tablespaces] = copy.results;
    const [only, ...others] = tablespaces ?? [];
    if (first.done || !start?.[0]?.[0] || !only) throw new BaseBackupError('Postgres sent no backup');
    if (others.length > 0)
      throw new BaseBackupError(
        'the cluster has tablespaces of its own, which lie outside of its folder: back it up with pg_basebackup',
      );
    return {
      estimatedBytes: Number(only[2] ?? 0) * 1_024,
      startLsn: start[0][0],
      tar: tarOf(first.value, messages),
      stopLsn: async () => {
        // Readers of the tar stop at its last entry; the server may still have messages to send.
        while (!(await messages.next()).done);
        const stop = copy.results[2]?.[0]?.[0];
        if (!stop) throw new BaseBackupError('Postgres did not finish its backup');
        return stop;
      },
      close: () => client.end(),
    };
  } catch (error) {
    await client.end();
    throw error;
  }
}

async function* tarOf(
  first: Buffer[],
  rest: AsyncGenerator<Buffer[], void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  let archives = 0;
  for (let messages: Buffer[] | undefined = first; messages !== undefined; ) {
    for (const message of messages) {
      if (message[0] === NEW_ARCHIVE) archives += 1;
      if (archives > 1) throw new BaseBackupError('Postgres sent more than one archive');
      if (message[0] === DATA) yield message.subarray(1);
    }
    const next = await rest.next();
    messages = next.done ? undefined : next.value;
  }
}
