/**
 * A loopback fake of Amazon S3: objects of one bucket, with path-style addresses, as the API reference describes
 * PutObject, GetObject, HeadObject, DeleteObject and ListObjectsV2. It refuses every request with an invalid signature
 * (IAM User Guide, "Create a signed AWS API request"), and every object whose bytes lack the signed or declared
 * SHA-256.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { S3Settings } from '../../platform/config.js';
import { createBodyServer } from '../support/bodyServer.js';

const SKEW_MS_MAX = 15 * 60_000;
const PAGE_KEYS = 3;

interface Answer {
  status: number;
  code?: string;
  body?: Buffer | string;
}

export interface S3Fake {
  settings: S3Settings;
  objects: Map<string, Buffer>;
  /** Requests so far, as `PUT invoices/a.pdf`. */
  requests: string[];
  /** The next requests of this method are answered so, or their connection is cut. */
  failNext(method: string, failure: { status: number; code: string } | 'cut', times?: number): void;
  close(): Promise<void>;
}

/** Starts the fake with an empty bucket. */
export async function startS3Fake(): Promise<S3Fake> {
  const objects = new Map<string, Buffer>();
  const requests: string[] = [];
  const failures: { method: string; failure: Answer | 'cut' }[] = [];
  const settings = {
    store: 's3',
    bucket: 'trueup-files',
    region: 'eu-central-1',
    accessKeyId: 'TrueupFakeKey',
    secretAccessKey: 'S3cret/of+the+fake',
  } as const;

  const serve = (request: IncomingMessage, response: ServerResponse, body: Buffer): void => {
    const url = new URL(request.url ?? '/', 'http://fake');
    const [, bucket, key = ''] = /^\/([^/]+)\/?(.*)$/.exec(url.pathname) ?? [];
    requests.push(`${request.method} ${key}`);
    const failing = failures.findIndex(({ method }) => method === request.method);
    const { failure } = failures.splice(failing, failing < 0 ? 0 : 1)[0] ?? {};
    if (failure === 'cut') return void request.socket.destroy();
    const refusal = failure ?? findRefusal(request, url, body, settings);
    const answer = refusal ?? (bucket === settings.bucket ? act(request, key, url, body) : noSuch('Bucket'));
    const text = answer.code ? `<Error><Code>${answer.code}</Code><Message>As told.</Message></Error>` : '';
    const content = answer.body ?? (request.method === 'HEAD' ? '' : text);
    const size = request.method === 'HEAD' ? objects.get(key)?.length : Buffer.byteLength(content);
    response.writeHead(answer.status, { 'content-length': size ?? 0 }).end(content);
  };

  const act = (request: IncomingMessage, key: string, url: URL, body: Buffer): Answer => {
    const found = objects.get(key);
    if (key === '' && url.searchParams.get('list-type') === '2')
      return { status: 200, body: list(objects, url.searchParams) };
    switch (request.method) {
      case 'PUT': {
        const declared = request.headers['x-amz-checksum-sha256'];
        if (declared !== undefined && declared !== sha256(body).toString('base64'))
          return { status: 400, code: 'BadDigest' };
        objects.set(key, body);
        return { status: 200 };
      }
      case 'DELETE':
        objects.delete(key);
        return { status: 204 };
      case 'GET':
      case 'HEAD':
        return found === undefined
          ? noSuch('Key')
          : { status: 200, body: request.method === 'GET' ? found : '' };
      default:
        return { status: 405, code: 'MethodNotAllowed' };
    }
  };

  const server = createBodyServer(serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    settings: { ...settings, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    objects,
    requests,
    failNext(method, failure, times = 1) {
      for (let at = 0; at < times; at += 1) failures.push({ method, failure });
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function noSuch(what: 'Bucket' | 'Key'): Answer {
  return { status: 404, code: `NoSuch${what}` };
}

/** A page of few keys, so that there are several. */
function list(objects: ReadonlyMap<string, Buffer>, parameters: URLSearchParams): string {
  const prefix = parameters.get('prefix') ?? '';
  const after = parameters.get('continuation-token') ?? '';
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
  const page = keys.slice(0, PAGE_KEYS);
  const contents = page.map(
    (key) => `<Contents><Key>${key}</Key><Size>${objects.get(key)?.length}</Size></Contents>`,
  );
  const isMore = keys.length > page.length;
  const next = isMore ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
  return `<ListBucketResult><IsTruncated>${isMore}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`;
}

/** Why S3 would refuse the request; undefined when it is signed by the key. */
function findRefusal(
  request: IncomingMessage,
  url: URL,
  body: Buffer,
  { accessKeyId, secretAccessKey, region }: Pick<S3Settings, 'accessKeyId' | 'secretAccessKey' | 'region'>,
): Answer | undefined {
  const { headers, method = '' } = request;
  const [, id, date, scope, signedHeaders = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? [];
  if (id === undefined) return { status: 403, code: 'AccessDenied' };
  if (id !== accessKeyId) return { status: 403, code: 'InvalidAccessKeyId' };
  const time = String(headers['x-amz-date']);
  const micros = Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
  if (!(Math.abs(micros - Date.now()) <= SKEW_MS_MAX)) return { status: 403, code: 'RequestTimeTooSkewed' };
  if (scope !== `${region}/s3/aws4_request` || !time.startsWith(date ?? '-'))
    return { status: 400, code: 'AuthorizationHeaderMalformed' };

  const names = signedHeaders.split(';');
  const unsigned = Object.keys(headers).filter((name) => name.startsWith('x-amz-') && !names.includes(name));
  if (unsigned.length > 0 || !names.includes('host')) return { status: 403, code: 'AccessDenied' };
  const payload = String(headers['x-amz-content-sha256']);
  const query = [...url.searchParams].map((pair) => pair.map(encode).join('=')).sort();
  const canonical = [
    method,
    url.pathname.split('/').map(decodeURIComponent).map(encode).join('/'),
    query.join('&'),
    ...names.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    signedHeaders,
    payload,
  ].join('\n');
  const text = ['AWS4-HMAC-SHA256', time, `${date}/${scope}`, sha256(canonical).toString('hex')].join('\n');
  const parts = [date ?? '', region, 's3', 'aws4_request'];
  const key = parts.reduce<Buffer | string>((secret, part) => hmac(secret, part), `AWS4${secretAccessKey}`);
  if (!timingSafeEqual(hmac(key, text), Buffer.from(signature, 'hex')))
    return { status: 403, code: 'SignatureDoesNotMatch' };
  if (payload !== sha256(body).toString('hex')) return { status: 400, code: 'XAmzContentSHA256Mismatch' };
  return undefined;
}

function sha256(bytes: Buffer | string): Buffer {
  return createHash('sha256').update(bytes).digest();
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** Encodes as the signature requires: everything but the unreserved characters of RFC 3986. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
