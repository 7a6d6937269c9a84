import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { DomainError } from '../../domain/errors.js';
import type { ExtractedEntity, PageWords } from '../../domain/invoices/pageWords.js';
import { type DocumentAiDocument, readAnswer, type SentPage, UnreadableAnswer } from './documentAiAnswer.js';

export interface DocumentAiSettings {
  /** `projects/P/locations/L/processors/ID`, perhaps with a version. */
  processor: string;
  /** Undefined: the address of the processor's location. Plain http only to this machine. */
  endpoint?: string | undefined;
  transport?: 'grpc' | 'rest';
  /** Path of a service account's key file; undefined: the machine's own identity at Google. */
  credentials?: string | undefined;
  /** Bucket for documents over the limit of one request, `name` or `name/folder`; undefined: they are sent in parts. */
  bucket?: string | undefined;
  /** Of one request. */
  timeoutMs?: number;
  pollMs?: number;
  /** Of Cloud Storage. */
  storageEndpoint?: string;
}

/** A started long operation: sufficient to resume polling in another process. */
export interface LongExtraction {
  /** Document AI's name of the operation. */
  operation: string;
  /** Folder in the bucket for input and output. */
  folder: string;
  pages: readonly SentPage[];
}

export interface DocumentAiAnswer {
  pages: PageWords[];
  entities: ExtractedEntity[];
}

export interface DocumentAi {
  /** Reads a PDF of at most `ONLINE_PAGES_MAX` pages. Error ocr_unavailable. */
  read(pdf: Uint8Array, sent: readonly SentPage[], signal?: AbortSignal): Promise<DocumentAiAnswer>;
  /** Undefined unless a bucket is set. */
  long: DocumentAiLong | undefined;
}

export interface DocumentAiLong {
  start(pdf: Uint8Array, sent: readonly SentPage[], signal?: AbortSignal): Promise<LongExtraction>;
  /** False while the operation runs, true once it has succeeded or failed. Error ocr_unavailable. */
  poll(long: LongExtraction, signal?: AbortSignal): Promise<boolean>;
  /** The answer of an operation that is done. Error ocr_unavailable, also where it failed. */
  read(long: LongExtraction, signal?: AbortSignal): Promise<DocumentAiAnswer>;
  /** Removes its files from the bucket as far as possible. */
  remove(long: LongExtraction): Promise<void>;
}

/** Google's limit for one request, without its imageless mode, which not every processor has. */
export const ONLINE_PAGES_MAX = 15;
const TIMEOUT_MS = 120_000;
const RETRY_SECONDS = 30;
const PDF_TYPE = 'application/pdf';
/** Leaves out the images of the pages, which make up most of an answer. */
const FIELD_MASK = { paths: ['text', 'entities', 'pages.pageNumber', 'pages.dimension', 'pages.tokens'] };
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** gRPC codes of transient errors: deadline, exhausted, aborted, internal, unavailable. */
const PASSING_CODES = new Set<unknown>([4, 8, 10, 13, 14]);

type Client = InstanceType<typeof import('@google-cloud/documentai').v1.DocumentProcessorServiceClient>;

/** Loads Google's client at the first request: it takes 88 MB. */
export function createDocumentAi(settings: DocumentAiSettings): DocumentAi {
  let opened: Promise<Client> | undefined;
  const client = () => {
    opened ??= openClient(settings).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  // `null` turns off retries, which hide the true code until the deadline; the declared type lacks it.
  const options = { timeout: settings.timeoutMs ?? TIMEOUT_MS, retry: null as never };
  return {
    async read(pdf, sent, signal) {
      return guarded(signal, async () => {
        const request = {
          name: settings.processor,
          rawDocument: { content: Buffer.from(pdf), mimeType: PDF_TYPE },
          skipHumanReview: true,
          fieldMask: FIELD_MASK,
        };
        const [answer] = await bounded(
          (await client()).processDocument(request, options),
          options.timeout,
          signal,
        );
        return readAnswer(answer.document as DocumentAiDocument | null, sent);
      });
    },
    long: settings.bucket === undefined ? undefined : createLong(settings, settings.bucket, client, options),
  };
}

function createLong(
  settings: DocumentAiSettings,
  place: string,
  client: () => Promise<Client>,
  options: { timeout: number; retry: never },
): DocumentAiLong {
  const [bucket = '', ...folders] = place.split('/').filter(Boolean);
  const storage = `${settings.storageEndpoint ?? 'https://storage.googleapis.com'}`;
  const objects = `${storage}/storage/v1/b/${encodeURIComponent(bucket)}/o`;
  const send = async <T>(
    request: { url: string; method?: 'GET' | 'POST' | 'DELETE'; data?: Buffer; isMedia?: boolean },
    signal?: AbortSignal,
  ): Promise<T> => {
    const { isMedia: _, ...rest } = request;
    const answer = await (await client()).auth.request<T>({
      ...rest,
      timeout: options.timeout,
      ...(request.data ? { headers: { 'content-type': PDF_TYPE } } : {}),
      ...(signal ? { signal } : {}),
    });
    return answer.data;
  };

  async function listObjects(folder: string, signal?: AbortSignal): Promise<string[]> {
    const names: string[] = [];
    let token: string | undefined;
    do {
      const query = new URLSearchParams({ prefix: `${folder}/`, ...(token ? { pageToken: token } : {}) });
      const list = await send<{ items?: { name: string }[]; nextPageToken?: string }>(
        { url: `${objects}?${query}` },
        signal,
      );
      names.push(...(list.items ?? []).map(({ name }) => name));
      token = list.nextPageToken;
    } while (token);
    return names;
  }

  async function remove(folder: string): Promise<void> {
    for (const name of await listObjects(folder))
      await send({ url: `${objects}/${encodeURIComponent(name)}`, method: 'DELETE' });
  }

  async function operationOf(long: LongExtraction, signal?: AbortSignal) {
    const operations = (await client()).operationsClient;
    const [operation] = await bounded(
      operations.getOperation({ name: long.operation } as never, options),
      options.timeout,
      signal,
    );
    return operation;
  }

  return {
    start: (pdf, pages, signal) =>
      guarded(signal, async () => {
        const folder = [...folders, randomUUID()].join('/');
        const name = encodeURIComponent(`${folder}/input.pdf`);
        const upload = `${storage}/upload/storage/v1/b/${encodeURIComponent(bucket)}/o?uploadType=media&name=${name}`;
        await send({ url: upload, method: 'POST', data: Buffer.from(pdf) }, signal);
        const [operation] = await bounded(
          (await client()).batchProcessDocuments(
            {
              name: settings.processor,
              skipHumanReview: true,
              inputDocuments: {
                gcsDocuments: {
                  documents: [{ gcsUri: `gs://${bucket}/${folder}/input.pdf`, mimeType: PDF_TYPE }],
                },
              },
              documentOutputConfig: {
                gcsOutputConfig: {
                  gcsUri: `gs://${bucket}/${folder}/output/`,
                  fieldMask: FIELD_MASK,
                  // One file: then the numbers of pages and places in the text are those of the document.
                  shardingConfig: { pagesPerShard: Math.max(1, pages.length) },
                },
              },
            },
            options,
          ),
          options.timeout,
          signal,
        );
        if (!operation.name) throw new UnreadableAnswer('the operation has no name');
        return { operation: operation.name, folder, pages };
      }),
    poll: (long, signal) => guarded(signal, async () => Boolean((await operationOf(long, signal)).done)),
    read: (long, signal) =>
      guarded(signal, async () => {
        const { error } = await operationOf(long, signal);
        if (error) throw Object.assign(new Error(error.message ?? ''), { code: error.code });
        const names = await listObjects(`${long.folder}/output`, signal);
        const files = names.filter((name) => name.endsWith('.json'));
        if (files.length !== 1)
          throw new UnreadableAnswer(`the operation has left ${files.length} files instead of one`);
        const url = `${objects}/${encodeURIComponent(files[0] ?? '')}?alt=media`;
        return readAnswer(await send<DocumentAiDocument>({ url }, signal), long.pages);
      }),
    remove: ({ folder }) => remove(folder).catch(() => undefined),
  };
}

/** Packages that Google's client depends on. */
function packagesOfClient() {
  const require = createRequire(createRequire(import.meta.url).resolve('@google-cloud/documentai'));
  const gax = require('google-gax') as typeof import('google-gax');
  const auth = createRequire(require.resolve('google-gax'))('google-auth-library') as {
    PassThroughClient: new () => unknown;
  };
  return { gax, auth };
}

async function openClient({
  processor,
  endpoint,
  transport,
  credentials,
}: DocumentAiSettings): Promise<Client> {
  const { v1 } = await import('@google-cloud/documentai');
  const location = /\/locations\/([^/]+)\//.exec(processor)?.[1] ?? 'us';
  const { protocol, hostname, port } = new URL(endpoint ?? `https://${location}-documentai.googleapis.com`);
  const isPlain = protocol === 'http:';
  if (isPlain && !LOOPBACK.test(hostname))
    throw unavailable(`its endpoint ${endpoint} would take documents without encryption`);
  const isRest = transport === 'rest';
  const { gax, auth } = packagesOfClient();
  const client = new v1.DocumentProcessorServiceClient({
    apiEndpoint: hostname,
    ...(port ? { port: Number(port) } : {}),
    fallback: isRest,
    ...(credentials ? { keyFilename: credentials } : {}),
    ...(isPlain
      ? {
          protocol: 'http',
          authClient: new auth.PassThroughClient() as never,
          ...(isRest ? {} : { sslCreds: gax.grpc.credentials.createInsecure() }),
        }
      : {}),
  });
  // Otherwise the first call looks for credentials and ends this process with an unhandled rejection.
  try {
    await client.initialize();
    if (!isPlain) await client.auth.getClient();
  } catch (error) {
    throw unavailable(`no credentials: ${(error as Error).message}`);
  }
  return client;
}

const DEADLINE_EXCEEDED = 4;

/** Ends the call with the signal, and at its deadline: over REST the client does not keep one. */
function bounded<T>(call: Promise<T>, timeoutMs: number, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (error: unknown) => {
      (call as { cancel?: () => void }).cancel?.();
      reject(error);
    };
    const onAbort = () => end(signal?.reason);
    const timer = setTimeout(
      () => end(Object.assign(new Error(`no answer in ${timeoutMs} ms`), { code: DEADLINE_EXCEEDED })),
      timeoutMs,
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    call.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    });
  });
}

/** Turns failures of Google's client into those of an invoice. */
async function guarded<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof DomainError) throw error;
    if (error instanceof UnreadableAnswer) throw unavailable(error.message, error);
    const { code, status, message } = error as { code?: unknown; status?: unknown; message?: string };
    const http = Number(status);
    const passes = PASSING_CODES.has(code) || typeof code === 'string' || http === 429 || http >= 500;
    throw unavailable(message ?? String(error), error, passes ? RETRY_SECONDS : undefined);
  }
}

function unavailable(why: string, cause?: unknown, retryAfterSeconds?: number): DomainError {
  return new DomainError('ocr_unavailable', `Document AI has not read the invoice: ${why}`, {
    cause,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}
