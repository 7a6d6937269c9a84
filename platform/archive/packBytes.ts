import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { encodeTarHeader, TAR_END, tarPadding } from './tar.js';

const compress = promisify(gzip);
const FILE_MODE = 0o644;

/**
 * Files as one tar.gz in memory, in their order. The same files give the same bytes: `modifiedSeconds` is said of each of
 * them, whenever it is packed.
 */
export function packBytes(
  files: readonly { name: string; bytes: Buffer }[],
  modifiedSeconds: number,
): Promise<Buffer> {
  const parts = files.flatMap(({ name, bytes }) => [
    encodeTarHeader({ path: name, type: 'file', sizeBytes: bytes.length, mode: FILE_MODE }, modifiedSeconds),
    bytes,
    tarPadding(bytes.length),
  ]);
  return compress(Buffer.concat([...parts, TAR_END]), { level: constants.Z_BEST_SPEED });
}
