import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { s3BlobStore } from '../../../adapters/blobs/s3BlobStore.js';
import type { S3Settings } from '../../../platform/config.js';
import { startVersityGateway } from '../../support/versityGateway.js';
import { behavesAsBlobStore } from './contract.js';

let server: { settings: S3Settings; close(): Promise<void> };

beforeAll(async () => {
  server = await startVersityGateway();
}, 1_000_000);

afterAll(() => server?.close());

behavesAsBlobStore('s3BlobStore on an S3 server', async () => {
  const store = s3BlobStore(server.settings);
  for await (const { key } of store.stream('')) await store.delete(key);
  return store;
});

describe('s3BlobStore on an S3 server', () => {
  it.each([
    ['another secret', { secretAccessKey: 'another-secret' }, '403 SignatureDoesNotMatch'],
    ['a bucket that does not exist', { bucket: 'no-such-bucket' }, '404 NoSuchBucket'],
    ['another region', { region: 'us-west-2' }, '400 AuthorizationHeaderMalformed'],
  ])('reports %s', async (_, wrong, reason) => {
    const store = s3BlobStore({ ...server.settings, ...wrong });
    await expect(store.check()).rejects.toThrow(reason);
    await expect(store.get('invoices/org/a.pdf')).rejects.toThrow(reason);
  });

  it('reports an unknown key as no missing file', async () => {
    const store = s3BlobStore({ ...server.settings, accessKeyId: 'Nobody' });
    await expect(store.get('invoices/org/a.pdf')).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
