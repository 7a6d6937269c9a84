import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { readArchive } from '../../../platform/archive/archiveReader.js';
import { ArchiveWriter } from '../../../platform/archive/archiveWriter.js';
import { encodeTarHeader, readTar, TAR_END, TarError, tarPadding } from '../../../platform/archive/tar.js';
import { makeTestFolder } from '../../support/testFolder.js';

const folder = makeTestFolder('tar');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const GZIP_HEADER_BYTES = 10;

interface Written {
  path: string;
  mode: number;
  body: Buffer;
}

function tarOf(entries: readonly Written[]): Buffer {
  const parts = entries.flatMap(({ path, mode, body }) => [
    encodeTarHeader({ path, type: 'file', sizeBytes: body.length, mode }, 1_700_000_000),
    body,
    tarPadding(body.length),
  ]);
  return Buffer.concat([...parts, TAR_END]);
}

/** The bytes in pieces of the lengths, again and again. */
async function* inPieces(bytes: Buffer, lengths: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const length = lengths[turn % lengths.length] ?? 1;
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

async function readAll(pieces: AsyncIterable<Buffer>): Promise<Written[]> {
  const found: Written[] = [];
  for await (const { path, mode, body } of readTar(pieces)) {
    const parts: Buffer[] = [];
    for await (const piece of body) parts.push(piece);
    found.push({ path, mode, body: Buffer.concat(parts) });
  }
  return found;
}

/** Undefined: gzip itself finds the damage. */
function unpacked(bytes: Buffer): Buffer | undefined {
  try {
    return gunzipSync(bytes);
  } catch {
    return undefined;
  }
}

const name = fc.stringMatching(/^[a-zA-Z0-9_.ä-]{1,40}$/).filter((text) => !/^\.+$/.test(text));
const entry = fc.record({
  path: fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/')),
  mode: fc.constantFrom(0o600, 0o644, 0o700),
  body: fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
});

describe('a tar', () => {
  it('is read as it was written, in whatever pieces it comes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(entry, { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 1_500 }), { minLength: 1, maxLength: 4 }),
        async (entries, lengths) => {
          expect(await readAll(inPieces(tarOf(entries), lengths))).toEqual(entries);
        },
      ),
    );
  });

  it('that breaks off or whose header was changed is distinguished from a whole one', async () => {
    const whole = tarOf([{ path: 'a', mode: 0o600, body: Buffer.alloc(700, 1) }]);
    for (const length of [100, 512, 900, 1_300])
      await expect(readAll(inPieces(whole.subarray(0, length), [512]))).rejects.toThrow(TarError);
    whole.write('b', 0);
    await expect(readAll(inPieces(whole, [512]))).rejects.toThrow('wrong check sum');
  });
});

describe('an archive', () => {
  it.each(['../outside', '/etc/outside', 'a/../../outside', 'a//b'])(
    'with the path %s is refused',
    async (path) => {
      const file = join(folder, 'evil.tar.gz');
      writeFileSync(file, gzipSync(tarOf([{ path, mode: 0o600, body: Buffer.from('x') }])));
      await expect(readArchive(file, async () => undefined)).rejects.toThrow(/is damaged .* holds the path/);
    },
  );

  it('has its name only when it is whole, and is its owner’s alone', async () => {
    const path = join(folder, 'good.tar.gz');
    const writer = new ArchiveWriter(path, 0);
    await writer.addBytes('a', Buffer.from('text'));
    expect(readdirSync(folder)).toContain(`good.tar.gz.partial-${process.pid}`);
    const { sizeBytes } = await writer.finish({ said: 1 });
    expect(readFileSync(path)).toHaveLength(sizeBytes);
    const seen: string[] = [];
    const manifest = await readArchive<{ files: []; said: number }>(path, async ({ path: name, body }) => {
      for await (const piece of body) seen.push(`${name}=${piece}`);
    });
    expect(seen).toEqual(['a=text']);
    expect(manifest.said).toBe(1);
    expect(() => new ArchiveWriter(path, 0)).toThrow(/is there already/);
  });

  it('is refused when a changed byte changes what it holds, in the padding between files too', async () => {
    const path = join(folder, 'whole.tar.gz');
    const writer = new ArchiveWriter(path, 0);
    await writer.addDirectory('pg', 0o700);
    for (const name of ['pg/a', 'pg/b', 'pg/c']) await writer.addBytes(name, Buffer.from(`rows of ${name}`));
    await writer.finish({});
    const whole = readFileSync(path);
    const content = gunzipSync(whole);
    const changed = join(folder, 'changed.tar.gz');
    const accepted: number[] = [];
    // The gzip header ahead states the time and the system, which no check sum covers.
    for (let at = GZIP_HEADER_BYTES; at < whole.length; at += 1) {
      const bytes = Buffer.from(whole);
      bytes.writeUInt8(bytes.readUInt8(at) ^ 0x55, at);
      // Where zeros repeat, another distance unpacks to the same bytes.
      if (unpacked(bytes)?.equals(content)) continue;
      writeFileSync(changed, bytes);
      await readArchive(changed, async ({ body }) => {
        for await (const _ of body);
      }).then(
        () => accepted.push(at),
        (error: Error) => expect(error.message).toMatch(/^changed\.tar\.gz is damaged/),
      );
    }
    expect(accepted).toEqual([]);
  });

  it('is not finished when an entry has other bytes than it announced', async () => {
    const writer = new ArchiveWriter(join(folder, 'short.tar.gz'), 0);
    const short = writer.addStream({ path: 'a', sizeBytes: 5, mode: 0o600 }, [Buffer.from('four')]);
    await expect(short).rejects.toThrow(/changed while it was read/);
    writer.discard();
    expect(readdirSync(folder).filter((found) => found.startsWith('short'))).toEqual([]);
  });
});
