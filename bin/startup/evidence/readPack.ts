/** A pack: a tar (POSIX ustar) under gzip, read into memory as a whole. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { Difference } from './difference.js';

const BLOCK = 512;
const UNPACKED_BYTES_MAX = 2_147_483_647;

/** The files of a pack by their names. Throws Difference for what is no whole pack. */
export function readPack(path: string): Map<string, Buffer> {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new Difference(
      path,
      undefined,
      code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`,
    );
  }
  return unpack(path, bytes);
}

/** As `readPack`, of bytes; `path` is what a difference calls them. */
export function unpack(path: string, bytes: Buffer): Map<string, Buffer> {
  let tar: Buffer;
  try {
    tar = gunzipSync(bytes, { maxOutputLength: UNPACKED_BYTES_MAX });
  } catch {
    throw new Difference(path, undefined, 'cannot be unpacked: it is cut or damaged');
  }
  const files = new Map<string, Buffer>();
  let at = 0;
  for (; at + BLOCK <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const { name, size } = readHeader(path, header);
    const body = tar.subarray(at + BLOCK, at + BLOCK + size);
    if (body.length !== size) throw new Difference(path, undefined, `${name} breaks off`);
    if (files.has(name)) throw new Difference(path, undefined, `holds ${name} twice`);
    files.set(name, body);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  if (!tar.subarray(at).every((byte) => byte === 0))
    throw new Difference(path, undefined, 'holds something behind its end');
  return files;
}

function readHeader(path: string, header: Buffer): { name: string; size: number } {
  const text = (from: number, to: number) =>
    (header.subarray(from, to).toString('utf8').split('\u0000')[0] ?? '').trim();
  let sum = 0;
  header.forEach((byte, place) => {
    sum += place >= 148 && place < 156 ? 32 : byte;
  });
  const size = text(124, 136);
  const prefix = text(345, 500);
  if (Number.parseInt(text(148, 156), 8) !== sum || !/^[0-7]+$/.test(size) || text(156, 157) !== '0')
    throw new Difference(path, undefined, 'is no tar of plain files');
  return { name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`, size: Number.parseInt(size, 8) };
}
