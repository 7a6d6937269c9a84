import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';
import { PDFDocument } from 'pdf-lib';
import type { DocumentAiSettings } from '../../adapters/invoices/documentAi.js';
import { createBodyServer } from '../support/bodyServer.js';

export const PROCESSOR = 'projects/p/locations/eu/processors/abc';

export interface DocumentAiRequest {
  name: string;
  rawDocument?: { content: Buffer };
  documentOutputConfig?: { gcsOutputConfig: { gcsUri: string } };
}

/** The server's behaviour for the next requests; the pages are those of the PDF that it was sent. */
export type DocumentAiAnswering = (
  pages: number,
  request: DocumentAiRequest,
) => object | { code: number } | 'hang';

/** The server's answers and the requests that it had; a test changes the first and reads the second. */
export interface DocumentAiState {
  answer: DocumentAiAnswering;
  requests: DocumentAiRequest[];
  /** Objects of the bucket `invoices` by name. */
  readonly bucket: Map<string, Buffer>;
  /** Looks at the long operation, which is done after `pollsUntilDone`. */
  polls: number;
  pollsUntilDone: number;
  /** Outcome of the operation; undefined: it succeeds. */
  operationError: { code: number; message: string } | undefined;
}

export interface DocumentAiFake extends DocumentAiState {
  /** Forgets all of it. */
  reset(): void;
  settingsOver(transport: 'grpc' | 'rest', more?: Partial<DocumentAiSettings>): DocumentAiSettings;
  close(): void;
}

export const OPERATION = 'projects/p/locations/eu/operations/1';

/** Document AI on this machine over gRPC and REST, and the part of Cloud Storage that it needs. */
export async function startDocumentAiFake(): Promise<DocumentAiFake> {
  const state: DocumentAiState = {
    answer: documentOf,
    requests: [],
    bucket: new Map(),
    polls: 0,
    pollsUntilDone: 2,
    operationError: undefined,
  };
  const [rpc, web] = await Promise.all([startGrpc(state), startHttp(state)]);
  return Object.assign(state, {
    reset() {
      Object.assign(state, {
        answer: documentOf,
        requests: [],
        polls: 0,
        pollsUntilDone: 2,
        operationError: undefined,
      });
      state.bucket.clear();
    },
    settingsOver: (transport: 'grpc' | 'rest', more: Partial<DocumentAiSettings> = {}) => ({
      processor: PROCESSOR,
      endpoint: `http://127.0.0.1:${transport === 'grpc' ? rpc.port : web.port}`,
      transport,
      storageEndpoint: `http://127.0.0.1:${web.port}`,
      pollMs: 10,
      ...more,
    }),
    close() {
      rpc.server.forceShutdown();
      web.server.closeAllConnections();
      web.server.close();
    },
  });
}

async function reply(
  state: DocumentAiState,
  request: DocumentAiRequest,
): Promise<object | { code: number } | 'hang'> {
  state.requests.push(request);
  const pages = request.rawDocument
    ? (await PDFDocument.load(request.rawDocument.content)).getPageCount()
    : 0;
  return state.answer(pages, request);
}

/** An answer in Document AI's form: two words a page, and a line item on the last one. */
export function documentOf(pages: number) {
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

const FAILED_HTTP: Record<number, number> = { 3: 400, 7: 403, 5: 404, 8: 429, 14: 503 };

/** Document AI as its own description of the protocol defines it, over gRPC. */
async function startGrpc(state: DocumentAiState): Promise<{ server: grpc.Server; port: number }> {
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
    async (call: { request: DocumentAiRequest }, done: (error: object | null, value?: object) => void) => {
      const given = await reply(state, call.request);
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
      state.polls += 1;
      const isDone = state.polls > state.pollsUntilDone;
      const error = isDone && state.operationError ? { error: state.operationError } : {};
      done(null, { name: OPERATION, done: isDone, ...error });
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
async function startHttp(state: DocumentAiState): Promise<{ server: Server; port: number }> {
  const { bucket } = state;
  const server = createBodyServer(async (request, response, body) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const send = (status: number, value: object | Buffer) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(Buffer.isBuffer(value) ? value : JSON.stringify(value));
    };
    const object = /^\/storage\/v1\/b\/invoices\/o\/(.+)$/.exec(url.pathname);
    const name = decodeURIComponent(object?.[1] ?? '');
    if (url.pathname.endsWith(':process')) {
      const sent = JSON.parse(body.toString()) as { rawDocument: { content: string } };
      const content = Buffer.from(sent.rawDocument.content, 'base64');
      const given = await reply(state, { name: decodeURIComponent(url.pathname), rawDocument: { content } });
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
  // A connection that Node's server ends after its usual five seconds can take the next request with it.
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}
