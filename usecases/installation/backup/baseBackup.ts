import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { CopyOut } from './copyStream.js';

/** Where the write-ahead log stood, as Postgres writes it: `0/2000028`. */
export type Lsn = string;

/** A position of the write-ahead log as a number that can be compared. */
export function lsnNumber(lsn: Lsn): bigint {
  const [high = '0', low = '0'] = lsn.split('/');
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}

/** A base backup under way. */
export interface BaseBackup {
  /** What Postgres expects to send without the log, bytes. */
  estimatedBytes: number;
  /** Recovery begins here. */
  startLsn: Lsn;
  /** The cluster's files as one tar, backup_label first, the log from start to stop last. */
  tar: AsyncIterable<Buffer>;
  /** From here on a restored cluster is consistent; to be asked when the tar was read to its end, behind which it comes. */
  stopLsn(): Promise<Lsn>;
  /** Ends it, finished or not: the server leaves backup mode and drops the slot with the connection. */
  close(): Promise<void>;
}

/** The cluster cannot be copied as it is; the message says why. */
export class BaseBackupError extends Error {}

/** Kinds of the messages of a base backup: a new archive, and its bytes ("Streaming Replication Protocol", BASE_BACKUP). */
const NEW_ARCHIVE = 0x6e;
const DATA = 0x64;

/**
 * Takes a base backup over a replication connection: the server itself reads its files, tests the check sum of every
 * page and leaves out what does not belong into a backup. A temporary slot, made before it begins, keeps the log from
 * being recycled while the files are sent; the server drops it when the connection goes, however that happens.
 * @throws BaseBackupError; the driver's error when the server does not allow it.
 */
export async function openBaseBackup(url: string): Promise<BaseBackup> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'trueup-backup',
    // Known to the driver, not to its types.
    ...({ replication: 'true' } as object),
  });
  // A connection that breaks is reported by the statement that waits for it.
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
    // The first message follows the two result sets: where it starts, and the tablespaces with their sizes.
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
        // Readers of the tar stop at its last entry; the server may not have said all then.
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
