/**
 * The tar format of POSIX 1003.1 ("ustar interchange format"), as far as Postgres uses it in a base backup and we write
 * it: plain files and folders, names of at most 256 bytes, sizes below 8 GiB.
 */

const BLOCK_BYTES = 512;
/** Eleven octal digits. */
const FILE_BYTES_MAX = 0o77777777777;
const NAME_BYTES_MAX = 100;
const PREFIX_BYTES_MAX = 155;

/** The header of an entry. */
export interface TarEntry {
  path: string;
  type: 'file' | 'directory';
  sizeBytes: number;
  mode: number;
}

/** An entry that is being read: its body must be read to its end before the next one. */
export interface OpenTarEntry extends TarEntry {
  body: AsyncIterable<Buffer>;
}

/** The input is not a tar, or is truncated. */
export class TarError extends Error {}

/** The header block of an entry. Throws RangeError for values that the format cannot represent. */
export function encodeTarHeader(entry: TarEntry, modifiedSeconds: number): Buffer {
  if (entry.sizeBytes > FILE_BYTES_MAX)
    throw new RangeError(`${entry.path} is larger than 8 GiB: tar cannot hold it`);
  const block = Buffer.alloc(BLOCK_BYTES);
  const { name, prefix } = splitName(entry.path);
  block.write(name, 0);
  block.write(octal(entry.mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(entry.sizeBytes, 11), 124);
  block.write(octal(modifiedSeconds, 11), 136);
  block.write(entry.type === 'directory' ? '5' : '0', 156);
  block.write('ustar\0' + '00', 257, 'latin1');
  block.write(prefix, 345);
  block.write(`${checksumOf(block).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Zeros that fill a body up to whole blocks. */
export function tarPadding(sizeBytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES);

function splitName(path: string): { name: string; prefix: string } {
  if (Buffer.byteLength(path) <= NAME_BYTES_MAX) return { name: path, prefix: '' };
  for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
    const [prefix, name] = [path.slice(0, slash), path.slice(slash + 1)];
    if (Buffer.byteLength(prefix) > PREFIX_BYTES_MAX) break;
    if (name !== '' && Buffer.byteLength(name) <= NAME_BYTES_MAX) return { name, prefix };
  }
  throw new RangeError(`the name ${path} is too long for tar`);
}

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, '0')}\0`;
}

/** Sum of the block's bytes, with spaces in place of the sum. */
function checksumOf(block: Buffer): number {
  let sum = 0;
  for (let at = 0; at < BLOCK_BYTES; at += 1) sum += at >= 148 && at < 156 ? 32 : (block[at] as number);
  return sum;
}

function parseTarHeader(block: Buffer): TarEntry {
  const text = (start: number, length: number) => {
    const field = block.subarray(start, start + length);
    const end = field.indexOf(0);
    return field.subarray(0, end < 0 ? length : end).toString('utf8');
  };
  const number = (start: number, length: number) => {
    const digits = text(start, length).trim();
    if (!/^[0-7]*$/.test(digits)) throw new TarError('a number in it is not octal');
    return Number.parseInt(digits || '0', 8);
  };
  if (number(148, 8) !== checksumOf(block)) throw new TarError('a header in it has a wrong check sum');
  const flag = text(156, 1);
  const name = text(0, 100);
  const prefix = text(257, 5) === 'ustar' ? text(345, 155) : '';
  const path = prefix === '' ? name : `${prefix}/${name}`;
  if (flag !== '' && flag !== '0' && flag !== '5')
    throw new TarError(`${path} is neither a file nor a folder (kind ${flag})`);
  const type = flag === '5' ? 'directory' : 'file';
  return { path, type, sizeBytes: type === 'file' ? number(124, 12) : 0, mode: number(100, 8) & 0o7777 };
}

/**
 * The entries of a tar that arrives in chunks. Throws TarError when it is damaged or truncated.
 * `toEnd`: also read what follows the last entry, so that the check sum of the compression is compared.
 */
export async function* readTar(
  chunks: AsyncIterable<Buffer>,
  { toEnd = false } = {},
): AsyncGenerator<OpenTarEntry, void, undefined> {
  const source = new ByteSource(chunks);
  try {
    for (;;) {
      const block = await source.take(BLOCK_BYTES);
      // Two blocks of zeros end it; one suffices for reading.
      if (block.every((byte) => byte === 0)) {
        if (toEnd) await source.readZeros();
        return;
      }
      const entry = parseTarHeader(block);
      let isRead = false;
      const body = async function* () {
        yield* source.pieces(entry.sizeBytes);
        await source.take(tarPadding(entry.sizeBytes).length);
        isRead = true;
      };
      yield { ...entry, body: body() };
      if (!isRead && entry.sizeBytes > 0) throw new Error(`${entry.path} was not read to its end`);
    }
  } finally {
    await source.close();
  }
}

/** Reads exact lengths from chunks of any length. */
class ByteSource {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async take(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const piece of this.pieces(length)) parts.push(piece);
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  async *pieces(length: number): AsyncGenerator<Buffer, void, undefined> {
    let missing = length;
    while (missing > 0) {
      if (this.#rest.length === 0) {
        const next = await this.#chunks.next();
        if (next.done) throw new TarError('it breaks off');
        this.#rest = next.value;
        continue;
      }
      const piece = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(piece.length);
      missing -= piece.length;
      yield piece;
    }
  }

  /** Reads the rest, which must be zeros. */
  async readZeros(): Promise<void> {
    for (let next = this.#rest; ; ) {
      if (next.some((byte) => byte !== 0)) throw new TarError('something follows its end');
      const read = await this.#chunks.next();
      if (read.done) return;
      next = read.value;
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
