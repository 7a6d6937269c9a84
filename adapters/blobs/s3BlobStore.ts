import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { S3Client } from '@aws-sdk/client-s3';
import { DomainError } from '../../domain/errors.js';
import type { S3Settings } from '../../platform/config.js';
import { type BlobStore, isBlobKey, refuseUnsafeFolder, refuseUnsafeKey } from './blobStore.js';
import { writeDraft } from './draft.js';

const ATTEMPTS_MAX = 4;
const RETRY_DELAY_MS = 200;
const CONNECTION_TIMEOUT_MS = 5_000;
/** Longest silence of a connection, milliseconds. */
const SOCKET_TIMEOUT_MS = 30_000;
const UNAVAILABLE_RETRY_SECONDS = 10;
const CHECK_TEXT = 'Trueup can store files.\n';
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** An error of the library: `name` is S3's code. */
interface S3Failure extends Error {
  code?: string;
  $metadata?: { httpStatusCode?: number };
}

/**
 * Stores each file as an object of a bucket, at its key. The library is loaded at the first call, because loading takes
 * 0.2 s.
 */
export function s3BlobStore(settings: S3Settings): BlobStore {
  const { bucket, endpoint } = settings;
  const place = endpoint === undefined ? `s3://${bucket}` : `s3://${bucket} at ${endpoint}`;
  let opened: Promise<{ s3: typeof import('@aws-sdk/client-s3'); client: S3Client }> | undefined;
  const open = () => {
    opened ??= openClient(settings);
    return opened;
  };
  const refuse = (error: S3Failure) => rethrowAsUnavailable(error, place);

  const store: BlobStore = {
    kind: 's3',
    place,

    // S3 needs the size before the bytes, so they are collected in an unnamed temporary file.
    async put(key, bytes, { bytesMax }) {
      refuseUnsafeKey(key);
      const path = join(tmpdir(), `trueup-upload-${randomUUID()}`);
      const { file, sha256, sizeBytes } = await writeDraft(path, bytes, bytesMax);
      try {
        await rm(path);
        const { s3, client } = await open();
        await repeatUnavailable(() => {
          const command = new s3.PutObjectCommand({
            Bucket: bucket,
            Key: key,
            Body: file.createReadStream({ start: 0, autoClose: false }),
            ContentLength: sizeBytes,
            // The server compares it with the received bytes.
            ChecksumSHA256: Buffer.from(sha256, 'hex').toString('base64'),
          });
          signBytes(command, sha256);
          return client.send(command);
        }).catch(refuse);
      } finally {
        await file.close();
      }
      return { sha256, sizeBytes };
    },

    async get(key) {
      refuseUnsafeKey(key);
      const { s3, client } = await open();
      const { Body, ContentLength } = await client
        .send(new s3.GetObjectCommand({ Bucket: bucket, Key: key }))
        .catch((error) => {
          if (isMissing(error)) throw new DomainError('not_found', `There is no file ${key}.`);
          return refuse(error);
        });
      return { sizeBytes: ContentLength ?? 0, stream: Body as Readable };
    },

    async exists(key) {
      refuseUnsafeKey(key);
      const { s3, client } = await open();
      const found = await client
        .send(new s3.HeadObjectCommand({ Bucket: bucket, Key: key }))
        .catch((error) => (isMissing(error) ? undefined : refuse(error)));
      return found !== undefined;
    },

    async delete(key) {
      refuseUnsafeKey(key);
      const { s3, client } = await open();
      await client.send(new s3.DeleteObjectCommand({ Bucket: bucket, Key: key })).catch((error) => {
        if (!isMissing(error)) refuse(error);
      });
    },

    async *stream(folder) {
      refuseUnsafeFolder(folder);
      const { s3, client } = await open();
      let next: string | undefined;
      do {
        const page = await client
          .send(new s3.ListObjectsV2Command({ Bucket: bucket, Prefix: folder, ContinuationToken: next }))
          .catch(refuse);
        for (const { Key = '', Size = 0 } of page.Contents ?? [])
          if (isBlobKey(Key)) yield { key: Key, sizeBytes: Size };
        next = page.NextContinuationToken;
      } while (next !== undefined);
    },

    async check() {
      const key = `health/${randomUUID()}.txt`;
      await store.put(key, piecesOf(CHECK_TEXT), { bytesMax: CHECK_TEXT.length });
      try {
        const read = await buffer((await store.get(key)).stream);
        if (read.toString() !== CHECK_TEXT) throw new Error(`${place} returns other bytes than were stored`);
      } finally {
        await store.delete(key);
      }
    },
  };
  return store;
}

async function openClient({ endpoint, region, accessKeyId, secretAccessKey }: S3Settings) {
  const s3 = await import('@aws-sdk/client-s3');
  const client = new s3.S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    // Servers other than AWS's rarely have a host name for each bucket.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    // Many servers do not support newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: ATTEMPTS_MAX,
    requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS, socketTimeout: SOCKET_TIMEOUT_MS },
    logger: SILENT,
  });
  return { s3, client };
}

/** Makes the signature cover the bytes: for a stream the library would sign only the head. */
function signBytes(
  command: InstanceType<typeof import('@aws-sdk/client-s3').PutObjectCommand>,
  sha256: string,
) {
  command.middlewareStack.add(
    (next) => (args) => {
      (args.request as { headers: Record<string, string> }).headers['x-amz-content-sha256'] = sha256;
      return next(args);
    },
    { step: 'build', name: 'signBytes' },
  );
}

/** Retries requests with a stream, which the library does not retry. */
async function repeatUnavailable<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isTransient(error as S3Failure)) throw error;
      await sleep(RETRY_DELAY_MS * 2 ** attempt * Math.random());
    }
  }
}

function isTransient({ $metadata: { httpStatusCode: status } = {} }: S3Failure): boolean {
  return status === undefined || status === 429 || status >= 500;
}

/**
 * Whether the object is missing. Any other 404, such as of a missing bucket, is a wrong setting. HEAD has no code:
 * NotFound.
 */
function isMissing({ name }: S3Failure): boolean {
  return name === 'NoSuchKey' || name === 'NotFound';
}

function rethrowAsUnavailable(error: S3Failure, place: string): never {
  const { name, code, $metadata } = error;
  const what =
    $metadata?.httpStatusCode === undefined
      ? `does not answer (${code ?? name})`
      : `refuses (${$metadata.httpStatusCode} ${name})`;
  throw new DomainError('service_unavailable', `The store of files ${place} ${what}.`, {
    retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS,
    cause: error,
  });
}

async function* piecesOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}
