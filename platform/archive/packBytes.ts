import { constants, gzipSync } from 'node:zlib';
import { encodeTarHeader, TAR_END, tarPadding } from './tar.js';

const FILE_MODE = 0o644;

/**
 * Small files as one tar.gz in memory, in their order. The same files give the same bytes: `modifiedSeconds` is said of
 * each of them, whenever it is packed.
 */
export function packBytes(
  files: readonly { name: string; bytes: Buffer }[],
  modifiedSeconds: number,
): Buffer {
  const parts = files.flatMap(({ name, bytes }) => [
    encodeTarHeader({ path: name, type: 'file', sizeBytes: bytes.length, mode: FILE_MODE }, modifiedSeconds),
    bytes,
    tarPadding(bytes.length),
  ]);
  return gzipSync(Buffer.concat([...parts, TAR_END]), { level: constants.Z_BEST_SPEED });
}
