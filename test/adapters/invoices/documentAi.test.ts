import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';
import { PDFDocument } from 'pdf-lib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDocumentAi, type LongExtraction } from '../../../adapters/invoices/documentAi.js';
import { exactMoney } from '../../../adapters/invoices/documentAiAnswer.js';
import { createInvoiceExtractor } from '../../../adapters/invoices/extractor.js';
import type { PageWords } from '../../../domain/invoices/pageWords.js';

const PROCESSOR = 'projects/p/locations/eu/processors/abc';

interface Request {
  name: string;
  rawDocument?: { content: Buffer };
  documentOutputConfig?: { gcsOutputConfig: { gcsUri: string } };
}

/** What the server does with the next requests; the pages are those of the PDF that it was sent. */
type Answer = (pages: number, request: Request) => object | { code: number } | 'hang';

let answer: Answer;
let requests: Request[];
/** Objects of the bucket by name. */
let bucket: Map<string, Buffer>;
let polls: number;

/** An answer in Document AI's form: two words a page, and a line item on the last one. */
function documentOf(pages: number) {
  const text = Array.from({ length: pages }, (_, at) => `🧾Page${at + 1} $${at + 1}.50\n`).join('');
  const anchor = (part: string) => {
    const start = [...text.slice(0, text.indexOf(part))].length;
    return { textSegments: [{ startIndex: String(start), endIndex: String(start + [...part].length) }] };
  };
  const box = (left: number) => ({
    normalizedVertices: [
      { x: left, y: 0.1 },
      { x: left + 0.1, y: 0.1 },
      { x: left + 0.1, y: 0.12 },
      { x: left, y: 0.12 },
    ],
  });
  return {
    text,
    pages: Array.from({ length: pages }, (_, at) => ({
      pageNumber: at + 1,
      dimension: { width: 1240, height: 1754, unit: 'pixels' },
      tokens: [
        { layout: { textAnchor: anchor(`🧾Page${at + 1} `), confidence: 0.98, boundingPoly: box(0.1) } },
        { layout: { textAnchor: anchor(`$${at + 1}.50\n`), confidence: 0.875, boundingPoly: box(0.8) } },
      ],
    })),
    entities: [
      {
        type: 'line_item',
        mentionText: 'tokens -59,240.59',
        confidence: 0.5,
        pageAnchor: { pageRefs: [{ page: String(pages - 1), boundingPoly: box(0.8) }] },
        properties: [
          {
            type: 'line_item/amount',
            mentionText: '-59,240.59',
            normalizedValue: {
              text: '-59240.59 USD',
              moneyValue: { currencyCode: 'USD', units: '-59240', nanos: -590000000 },
            },
          },
        ],
      },
      {
        type: 'invoice_date',
        mentionText: 'Aug 1, 2026',
        normalizedValue: { dateValue: { year: 2026, month: 8, day: 1 } },
      },
    ],
  };
}

async function reply(request: Request): Promise<object | { code: number } | 'hang'> {
  requests.push(request);
  const pages = request.rawDocument
    ? (await PDFDocument.load(request.rawDocument.content)).getPageCount()
    : 0;
  return answer(pages, request);
}

const FAILED_HTTP: Record<number, number> = { 3: 400, 7: 403, 5: 404, 8: 429, 14: 503 };

/** Document AI as its own description of the protocol defines it, over gRPC. */
async function startGrpc(): Promise<{ server: grpc.Server; port: number }> {
  const require = createRequire(import.meta.url);
  const description = require('@google-cloud/documentai/build/protos/protos.json') as object;
  const definition = protoLoader.fromJSON(description, {
    longs: String,
    enums: String,
    defaults: true,
    oneofs: true,
  });
  const loaded = grpc.loadPackageDefinition(definition) as never as {
    google: {
      cloud: { documentai: { v1: { DocumentProcessorService: { service: grpc.ServiceDefinition } } } };
    };
  };
  const server = new grpc.Server({ 'grpc.max_receive_message_length': 64 << 20 });
  const unary =
    (wrap: (document: object) => object) =>
    async (call: { request: Request }, done: (error: object | null, value?: object) => void) => {
      const given = await reply(call.request);
      if (given === 'hang') return;
      if ('code' in given) done({ code: given.code, details: 'refused' });
      else done(null, wrap(given));
    };
  server.addService(loaded.google.cloud.documentai.v1.DocumentProcessorService.service, {
    processDocument: unary((document) => ({ document })),
    batchProcessDocuments: unary((operation) => operation),
  });
  server.addService(operationsService(definition), {
    getOperation: (_call: unknown, done: (error: null, value: object) => void) => {
      polls += 1;
      done(null, { name: 'projects/p/locations/eu/operations/1', done: polls > 2 });
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return { server, port };
}

/** google.longrunning.Operations, whose messages the package describes without the service. */
function operationsService(definition: protoLoader.PackageDefinition): grpc.ServiceDefinition {
  const type = definition['google.longrunning.Operation'] as { type: object } | undefined;
  if (!type) throw new Error('no description of operations');
  const root = protoRoot();
  const message = root.lookupType('google.longrunning.Operation');
  const request = root.lookupType('google.longrunning.GetOperationRequest');
  return {
    getOperation: {
      path: '/google.longrunning.Operations/GetOperation',
      requestStream: false,
      responseStream: false,
      requestSerialize: (value: object) => Buffer.from(request.encode(value).finish()),
      requestDeserialize: (bytes: Buffer) => request.decode(bytes),
      responseSerialize: (value: object) => Buffer.from(message.encode(message.fromObject(value)).finish()),
      responseDeserialize: (bytes: Buffer) => message.decode(bytes),
    },
  };
}

function protoRoot() {
  const require = createRequire(import.meta.url);
  const { Root } = require('protobufjs') as typeof import('protobufjs');
  return Root.fromJSON(require('@google-cloud/documentai/build/protos/protos.json') as never);
}

/** The same over REST, and the part of Cloud Storage's JSON API that is used. */
async function startHttp() {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const body = await buffer(request);
    const send = (status: number, value: object | Buffer) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(Buffer.isBuffer(value) ? value : JSON.stringify(value));
    };
    const object = /^\/storage\/v1\/b\/invoices\/o\/(.+)$/.exec(url.pathname);
    const name = decodeURIComponent(object?.[1] ?? '');
    if (url.pathname.endsWith(':process')) {
      const sent = JSON.parse(body.toString()) as { rawDocument: { content: string } };
      const content = Buffer.from(sent.rawDocument.content, 'base64');
      const given = await reply({ name: decodeURIComponent(url.pathname), rawDocument: { content } });
      if (given === 'hang') return;
      if (!('code' in given)) return send(200, { document: given });
      const status = FAILED_HTTP[given.code] ?? 500;
      return send(status, { error: { code: status, message: 'refused', status: grpc.status[given.code] } });
    }
    if (url.pathname === '/upload/storage/v1/b/invoices/o') {
      bucket.set(url.searchParams.get('name') ?? '', body);
      return send(200, {});
    }
    if (url.pathname === '/storage/v1/b/invoices/o') {
      const prefix = url.searchParams.get('prefix') ?? '';
      return send(200, {
        items: [...bucket.keys()].filter((key) => key.startsWith(prefix)).map((key) => ({ name: key })),
      });
    }
    if (object && request.method === 'DELETE') return send(bucket.delete(name) ? 204 : 404, Buffer.alloc(0));
    const found = bucket.get(name);
    return found ? send(200, found) : send(404, {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

let rpc: Awaited<ReturnType<typeof startGrpc>>;
let web: Awaited<ReturnType<typeof startHttp>>;

beforeAll(async () => {
  rpc = await startGrpc();
  web = await startHttp();
});
afterAll(() => {
  rpc.server.forceShutdown();
  web.server.closeAllConnections();
  web.server.close();
});
beforeEach(() => {
  answer = (pages) => documentOf(pages);
  requests = [];
  bucket = new Map();
  polls = 0;
});

type More = { timeoutMs?: number; bucket?: string; endpoint?: string };

const settingsOver = (transport: 'grpc' | 'rest', more: More = {}) => ({
  processor: PROCESSOR,
  endpoint: `http://127.0.0.1:${transport === 'grpc' ? rpc.port : web.port}`,
  transport,
  storageEndpoint: `http://127.0.0.1:${web.port}`,
  pollMs: 10,
  ...more,
});

const extractorOver = (transport: 'grpc' | 'rest', more?: More) =>
  createInvoiceExtractor({ engines: ['document_ai'], documentAi: settingsOver(transport, more) });

/** Sends a PDF of empty pages. */
async function read(transport: 'grpc' | 'rest', pages: number, more?: More, signal?: AbortSignal) {
  const sent = Array.from({ length: pages }, (_, at) => ({ page: at + 1, width: 595, height: 842 }));
  return createDocumentAi(settingsOver(transport, more)).read(await emptyPdf(pages), sent, signal);
}

async function emptyPdf(pages: number): Promise<Uint8Array> {
  const document = await PDFDocument.create();
  for (let at = 0; at < pages; at += 1) document.addPage([595, 842]);
  return document.save();
}

const wordsOf = (pages: readonly PageWords[]) =>
  pages.map(({ words }) => words.map(({ text }) => text).join(' '));

describe.each(['grpc', 'rest'] as const)('Document AI over %s', (transport) => {
  it('gives words in points, and entities with exact amounts', async () => {
    const { pages, entities } = await read(transport, 2);
    expect(requests.map(({ name }) => name.includes(PROCESSOR))).toEqual([true]);
    expect(wordsOf(pages)).toEqual(['🧾Page1 $1.50', '🧾Page2 $2.50']);
    expect(pages[1]).toMatchObject({ page: 2, width: 595, height: 842, engine: 'document_ai' });
    const [, amount] = pages[1]?.words ?? [];
    expect(amount).toMatchObject({ text: '$2.50', confidence: 0.875 });
    expect(amount?.x).toBeCloseTo(476);
    expect(amount?.y).toBeCloseTo(84.2);
    expect(amount?.width).toBeCloseTo(59.5);
    expect(entities).toMatchObject([
      {
        type: 'line_item',
        box: { page: 2 },
        properties: [{ type: 'line_item/amount', normalized: '-59240.59' }],
      },
      { type: 'invoice_date', normalized: '2026-08-01', box: null },
    ]);
  });

  it('is sent long documents in parts, whose pages keep their numbers', async () => {
    const { pages, entities } = await extractorOver(transport).extract(await emptyPdf(17));
    expect(requests).toHaveLength(2);
    expect(pages.map(({ page }) => page)).toEqual(Array.from({ length: 17 }, (_, at) => at + 1));
    expect(wordsOf(pages).slice(14)).toEqual(['🧾Page15 $15.50', '🧾Page1 $1.50', '🧾Page2 $2.50']);
    expect(entities.filter(({ type }) => type === 'line_item').map(({ box }) => box?.page)).toEqual([15, 17]);
  });

  it.each([
    ['429', 8],
    ['unavailable', 14],
  ])('that answers %s may be asked again', async (_name, code) => {
    answer = () => ({ code });
    await expect(read(transport, 1)).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: 30,
    });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ['an invalid argument', 3],
    ['a missing permission', 7],
    ['a missing processor', 5],
  ])('that answers %s is not asked again', async (_name, code) => {
    answer = () => ({ code });
    await expect(read(transport, 1)).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: undefined,
    });
  });

  it('that hangs is given up at its deadline, or with the signal', async () => {
    answer = () => 'hang';
    await expect(read(transport, 1, { timeoutMs: 300 })).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: 30,
    });
    const stop = new AbortController();
    answer = () => {
      stop.abort(new Error('enough'));
      return 'hang';
    };
    await expect(read(transport, 1, {}, stop.signal)).rejects.toThrow('enough');
  });

  it.each<[string, (pages: number) => object]>([
    ['lacks a page', (pages) => documentOf(pages - 1)],
    [
      'has the same page twice',
      (pages) => {
        const document = documentOf(pages);
        return { ...document, pages: document.pages.map((page) => ({ ...page, pageNumber: 1 })) };
      },
    ],
    ['has no pages', () => ({ text: 'Total' })],
    ['has words outside its text', (pages) => ({ ...documentOf(pages), text: 'short' })],
    [
      'has pages without a size',
      (pages) => {
        const document = documentOf(pages);
        return { ...document, pages: document.pages.map(({ dimension: _, ...page }) => page) };
      },
    ],
  ])('whose answer %s gives nothing', async (_name, given) => {
    answer = given;
    await expect(read(transport, 2)).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: undefined,
    });
  });
});

describe('a long operation of Document AI', () => {
  it('reads a long document through the bucket, is taken up again by its name, and leaves nothing there', async () => {
    const extractor = extractorOver('grpc', { bucket: 'invoices/drop' });
    const pdf = await emptyPdf(17);
    answer = (_pages, { documentOutputConfig }) => {
      const folder = documentOutputConfig?.gcsOutputConfig.gcsUri.replace('gs://invoices/', '') ?? '';
      bucket.set(`${folder}1/0/input-0.json`, Buffer.from(JSON.stringify(documentOf(17))));
      return { name: 'projects/p/locations/eu/operations/1', done: false };
    };
    let started: LongExtraction | undefined;
    const stop = new AbortController();
    const first = extractor.extract(pdf, {
      signal: stop.signal,
      onOperation: (operation) => {
        started = operation;
        stop.abort(new Error('the worker ends'));
      },
    });
    await expect(first).rejects.toThrow('the worker ends');
    expect([...bucket.keys()].some((name) => /^drop\/[^/]+\/input\.pdf$/.test(name))).toBe(true);
    if (!started) throw new Error('nothing started');
    const { pages } = await extractor.extract(pdf, { operation: JSON.parse(JSON.stringify(started)) });
    expect(requests).toHaveLength(1);
    expect(wordsOf(pages).at(-1)).toBe('🧾Page17 $17.50');
    expect([...bucket.keys()]).toEqual([]);
  });
});

describe('Document AI', () => {
  it('is not sent documents in plain text to another machine', async () => {
    await expect(read('rest', 1, { endpoint: 'http://10.0.0.5:80' })).rejects.toMatchObject({
      code: 'ocr_unavailable',
      message: /without encryption/,
    });
  });

  it('leaves its pages to the next engine when it is not set', async () => {
    const extractor = createInvoiceExtractor({ engines: ['document_ai', 'text'] });
    expect((await extractor.extract(await emptyPdf(1))).pages).toMatchObject([{ engine: 'text', words: [] }]);
  });

  it.each([
    ['59240', 590_000_000, '59240.59'],
    ['-5', -250_000_000, '-5.25'],
    ['0', -1, '-0.000000001'],
    ['9007199254740993', 0, '9007199254740993'],
  ])('states %s units and %s nanos as %s', (units, nanos, text) => {
    expect(exactMoney(units, nanos)).toBe(text);
  });
});
