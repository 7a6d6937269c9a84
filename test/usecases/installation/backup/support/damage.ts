import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { makeHeader } from '../../../../../bin/backup/archive.js';
import { ArchiveWriter } from '../../../../../platform/archive/archiveWriter.js';
import { PROJECT_ROOT } from '../../../../../platform/projectRoot.js';

/** A process that may write no file larger than a megabyte: the next best thing to a full disk. */
export async function runLimited(args: readonly string[], environment: Record<string, string>) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('sh', ['-c', 'ulimit -f 2000; exec "$@"', 'sh', process.execPath, ...args], {
    cwd: PROJECT_ROOT,
    env: { PATH, HOME, ...environment },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text));
  const [exit] = await once(child, 'close');
  return { exit, output };
}

/**
 * Another byte near the middle of the compressed file, after which it does not unpack to the same content: where zeros
 * repeat, a changed distance makes no difference.
 */
export function flip(bytes: Buffer): Buffer {
  const content = gunzipSync(bytes);
  for (let at = bytes.length >> 1; ; at += 1) {
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(bytes.readUInt8(at) ^ 0x55, at);
    try {
      if (gunzipSync(flipped).equals(content)) continue;
    } catch {
      // Gzip itself finds the damage.
    }
    return flipped;
  }
}

/** Another model in a stored event: every check sum of the formats is right, only the manifest's is not. */
export function flipEvent(tar: Buffer): Buffer {
  const at = tar.indexOf('gpt-4o', tar.length >> 2);
  tar.write('gpt-5o', at);
  return tar;
}

/** An archive with another header and nothing in it. */
export async function anArchive(folder: string, header: object): Promise<string> {
  const path = join(folder, 'a.tar.gz');
  const writer = new ArchiveWriter(path, 0);
  const usual = {
    ...makeHeader('backup', { postgresVersion: '18.4', migrations: ['0001_roles_and_tenancy'] }, new Date()),
    trueup_version: '9.9.9',
  };
  await writer.addBytes('header.json', Buffer.from(JSON.stringify({ ...usual, ...header })));
  await writer.finish({});
  writer.discard();
  return path;
}
