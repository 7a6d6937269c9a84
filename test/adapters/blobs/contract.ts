import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Blob, BlobStore } from '../../../adapters/blobs/blobStore.js';
import { DomainError } from '../../../domain/errors.js';

/** Each text as one piece. */
export async function* pieces(...texts: (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

export function putText(store: BlobStore, key: string, text: string) {
  return store.put(key, pieces(text), { bytesMax: 1_000 });
}

const KEY = 'invoices/3f2c/0192-a.pdf';

async function readText(store: BlobStore, key: string): Promise<string> {
  return (await buffer((await store.get(key)).stream)).toString();
}

async function listAll(store: BlobStore, folder: string): Promise<Blob[]> {
  const found: Blob[] = [];
  for await (const blob of store.stream(folder)) found.push(blob);
  return found;
}

/** The tests that every store passes; `open` returns an empty one. */
export function behavesAsBlobStore(name: string, open: () => BlobStore | Promise<BlobStore>): void {
  describe(`${name} as a blob store`, () => {
    it('returns the bytes that were stored, and their size and SHA-256', async () => {
      const store = await open();
      const bytes = randomBytes(300_000);
      const halves = [bytes.subarray(0, 100_001), bytes.subarray(100_001)];
      expect(await store.put(KEY, pieces(...halves), { bytesMax: bytes.length })).toEqual({
        sizeBytes: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
      });
      const { sizeBytes, stream } = await store.get(KEY);
      expect(sizeBytes).toBe(bytes.length);
      expect((await buffer(stream)).equals(bytes)).toBe(true);
      expect(await store.exists(KEY)).toBe(true);
    });

    it('stores an empty file', async () => {
      const store = await open();
      expect(await store.put(KEY, pieces(), { bytesMax: 0 })).toMatchObject({ sizeBytes: 0 });
      expect(await readText(store, KEY)).toBe('');
      expect(await listAll(store, '')).toEqual([{ key: KEY, sizeBytes: 0 }]);
    });

    it('refuses a file beyond its limit as soon as it is passed, and keeps nothing of it', async () => {
      const store = await open();
      let taken = 0;
      const endless = async function* () {
        for (; taken < 100; taken += 1) yield Buffer.alloc(1_000);
      };
      await expect(store.put(KEY, endless(), { bytesMax: 10_000 })).rejects.toMatchObject({
        code: 'payload_too_large',
      });
      expect(taken).toBeLessThan(15);
      expect(await store.exists(KEY)).toBe(false);
      expect(await listAll(store, '')).toEqual([]);
    });

    it('keeps nothing of a source that breaks off, and passes its error on', async () => {
      const store = await open();
      const broken = async function* () {
        yield Buffer.from('half');
        throw new DomainError('body_too_slow', 'The body came too slowly.');
      };
      await expect(store.put(KEY, broken(), { bytesMax: 100 })).rejects.toMatchObject({
        code: 'body_too_slow',
      });
      expect(await store.exists(KEY)).toBe(false);
    });

    it('shows a file only when it is whole', async () => {
      const store = await open();
      const slow = async function* () {
        yield Buffer.from('first ');
        expect(await store.exists(KEY)).toBe(false);
        await sleep(20);
        yield Buffer.from('second');
      };
      await store.put(KEY, slow(), { bytesMax: 100 });
      expect(await readText(store, KEY)).toBe('first second');
    });

    it('has one whole file after the same key was stored repeatedly and at once', async () => {
      const store = await open();
      await putText(store, KEY, 'the same');
      await Promise.all(Array.from({ length: 8 }, () => putText(store, KEY, 'the same')));
      expect(await readText(store, KEY)).toBe('the same');
      expect(await listAll(store, '')).toEqual([{ key: KEY, sizeBytes: 8 }]);
      await putText(store, KEY, 'another');
      expect(await readText(store, KEY)).toBe('another');
    });

    it('reports a missing file as not_found, and deletes it without an error', async () => {
      const store = await open();
      await expect(store.get(KEY)).rejects.toMatchObject({ code: 'not_found' });
      expect(await store.exists(KEY)).toBe(false);
      await store.delete(KEY);
      await putText(store, KEY, 'text');
      await store.delete(KEY);
      await store.delete(KEY);
      expect(await store.exists(KEY)).toBe(false);
    });

    it('lists the files below a folder by key, however many there are', async () => {
      const store = await open();
      const keys = [
        'invoices/a/1.pdf',
        'invoices/a/1/page-1.png',
        'invoices/a/1/page-2.png',
        'invoices/a/1-x.pdf',
        'invoices/a/2.pdf',
        'invoices/ab/1.pdf',
        'reports/a/1.pdf',
      ];
      for (const key of keys.toReversed()) await putText(store, key, key);
      const listed = async (folder: string) => (await listAll(store, folder)).map(({ key }) => key);
      const below = (folder: string) => keys.filter((key) => key.startsWith(folder)).sort();
      for (const folder of ['', 'invoices/', 'invoices/a/', 'invoices/a/1/', 'invoices/b/'])
        expect(await listed(folder), folder).toEqual(below(folder));
    });

    it.each([
      '',
      'a.pdf',
      '/invoices/a.pdf',
      'invoices//a.pdf',
      'invoices/../a.pdf',
      'invoices/..',
      'invoices/a',
      'invoices/a.pdf/b.pdf',
      'invoices/.a.pdf',
      'Invoices/A.pdf',
      'invoices/a b.pdf',
      'invoices/a\0.pdf',
      'invoices\\a.pdf',
      'invoices/ä.pdf',
      `invoices/${'a'.repeat(81)}.pdf`,
      `${'invoices/'.repeat(22)}a.pdf`,
    ])('refuses %j as a key', async (key) => {
      const store = await open();
      await expect(store.put(key, pieces('x'), { bytesMax: 1 })).rejects.toThrow(RangeError);
      await expect(store.get(key)).rejects.toThrow(RangeError);
      await expect(store.exists(key)).rejects.toThrow(RangeError);
      await expect(store.delete(key)).rejects.toThrow(RangeError);
    });

    it.each(['..', '../', 'invoices', '/invoices/', 'invoices/../', 'invoices/.drafts/'])(
      'refuses %j as a folder',
      async (folder) => {
        await expect(listAll(await open(), folder)).rejects.toThrow(RangeError);
      },
    );

    it('finds itself able to store and read files, and leaves nothing of the attempt', async () => {
      const store = await open();
      await store.check();
      expect(await listAll(store, '')).toEqual([]);
    });
  });
}
