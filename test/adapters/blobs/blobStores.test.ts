import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlobStore } from '../../../adapters/blobs/blobStore.js';
import { fileBlobStore } from '../../../adapters/blobs/fileBlobStore.js';
import { s3BlobStore } from '../../../adapters/blobs/s3BlobStore.js';
import { type S3Fake, startS3Fake } from '../../fakes/s3Fake.js';
import { makeTestFolder } from '../../support/testFolder.js';
import { behavesAsBlobStore, pieces, putText } from './contract.js';

const folder = makeTestFolder('blobs');
let s3: S3Fake;

beforeAll(async () => {
  s3 = await startS3Fake();
});

afterAll(async () => {
  await s3?.close();
  rmSync(folder, { recursive: true, force: true });
});

const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  );

behavesAsBlobStore('fileBlobStore', () => fileBlobStore(join(folder, randomUUID())));
behavesAsBlobStore('s3BlobStore', () => {
  s3.objects.clear();
  return s3BlobStore(s3.settings);
});

describe('fileBlobStore', () => {
  const newStore = (): { root: string; store: BlobStore } => {
    const root = join(folder, randomUUID());
    return { root, store: fileBlobStore(root) };
  };

  it('lets its own user alone read files and folders', async () => {
    const { root, store } = newStore();
    await putText(store, 'invoices/org/a.pdf', 'text');
    const modeOf = (path: string) => (statSync(join(root, path)).mode & 0o777).toString(8);
    expect(['', 'invoices', 'invoices/org', 'invoices/org/a.pdf'].map(modeOf)).toEqual([
      '700',
      '700',
      '700',
      '600',
    ]);
  });

  it('leaves no draft behind, neither of a stored nor of a refused file', async () => {
    const { root, store } = newStore();
    await putText(store, 'invoices/org/a.pdf', 'text');
    await refusalOf(store.put('invoices/org/b.pdf', pieces('too long'), { bytesMax: 3 }));
    expect(readdirSync(join(root, '.drafts'))).toEqual([]);
  });

  it('removes drafts of killed processes after a day, and neither lists nor reads them', async () => {
    const { root, store } = newStore();
    mkdirSync(join(root, '.drafts'), { recursive: true });
    for (const name of ['old', 'new']) writeFileSync(join(root, '.drafts', name), 'half');
    const yesterday = new Date(Date.now() - 2 * 86_400_000);
    utimesSync(join(root, '.drafts/old'), yesterday, yesterday);
    await putText(store, 'invoices/org/a.pdf', 'text');
    expect(readdirSync(join(root, '.drafts'))).toEqual(['new']);
    const keys = [];
    for await (const { key } of store.stream('')) keys.push(key);
    expect(keys).toEqual(['invoices/org/a.pdf']);
  });

  it('reports a folder that others can read, and none that is not there yet', async () => {
    const { root, store } = newStore();
    expect(await refusalOf(store.check())).toBe('done');
    mkdirSync(root, { mode: 0o755 });
    expect(await refusalOf(store.check())).toContain(`chmod 700 ${root}`);
  });
});

describe('s3BlobStore', () => {
  it('signs the bytes of a file and declares their SHA-256, so that a damaged upload is refused', async () => {
    const store = s3BlobStore(s3.settings);
    const stored = await putText(store, 'invoices/org/a.pdf', 'text');
    expect(stored.sha256).toBe(createHash('sha256').update('text').digest('hex'));
    expect(s3.objects.get('invoices/org/a.pdf')?.toString()).toBe('text');
  });

  it.each([
    ['an error of the server', { status: 500, code: 'InternalError' }],
    ['too many requests', { status: 503, code: 'SlowDown' }],
    ['a cut connection', 'cut'],
  ] as const)('repeats requests after %s, uploads included', async (_, failure) => {
    const store = s3BlobStore(s3.settings);
    s3.failNext('PUT', failure, 2);
    await putText(store, 'invoices/org/b.pdf', 'text again');
    expect(s3.objects.get('invoices/org/b.pdf')?.toString()).toBe('text again');
    s3.failNext('GET', failure);
    expect((await buffer((await store.get('invoices/org/b.pdf')).stream)).toString()).toBe('text again');
    s3.failNext('HEAD', failure);
    expect(await store.exists('invoices/org/b.pdf')).toBe(true);
  });

  it('gives up after four attempts, and names the store and the reason', async () => {
    const store = s3BlobStore(s3.settings);
    s3.failNext('PUT', { status: 500, code: 'InternalError' }, 4);
    const before = s3.requests.length;
    expect(await refusalOf(putText(store, 'invoices/org/c.pdf', 'text'))).toMatch(
      /^service_unavailable: The store of files s3:\/\/trueup-files at http:.* refuses \(500 InternalError\)\.$/,
    );
    expect(s3.requests.length - before).toBe(4);
    const nobody = s3BlobStore({ ...s3.settings, endpoint: 'http://127.0.0.1:9' });
    expect(await refusalOf(nobody.exists('invoices/org/c.pdf'))).toMatch(/does not answer \(ECONNREFUSED\)/);
  });

  it.each([
    ['another secret', { secretAccessKey: 'another-secret' }, '403 SignatureDoesNotMatch'],
    ['an unknown key', { accessKeyId: 'Nobody' }, '403 InvalidAccessKeyId'],
    ['a bucket that does not exist', { bucket: 'no-such-bucket' }, '404 NoSuchBucket'],
    ['another region', { region: 'us-west-2' }, '400 AuthorizationHeaderMalformed'],
  ])('reports %s', async (_, wrong, reason) => {
    const store = s3BlobStore({ ...s3.settings, ...wrong });
    expect(await refusalOf(store.check())).toContain(reason);
    expect(await refusalOf(store.get('invoices/org/a.pdf'))).toContain(reason);
  });

  it('passes over objects of the bucket that it did not store', async () => {
    s3.objects.clear();
    const store = s3BlobStore(s3.settings);
    s3.objects.set('Other Program/..x', Buffer.from('x'));
    await putText(store, 'invoices/org/a.pdf', 'text');
    const keys = [];
    for await (const { key } of store.stream('')) keys.push(key);
    expect(keys).toEqual(['invoices/org/a.pdf']);
  });
});
