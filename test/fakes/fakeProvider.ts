/**
 * The common part of the loopback fakes of provider APIs: finds the planned call of a request, applies its fate, and
 * records the answers in a journal, which tests compare with.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PlannedCall, TrueUsage } from './plannedCall.js';

/** One HTTP request that a fake has answered. */
export interface JournalEntry {
  callId: string;
  /** 1 for the first attempt of a call. */
  attempt: number;
  path: string;
  httpStatus: number;
  model: string;
  /** Null when the attempt failed. */
  responseModel: string | null;
  responseId: string | null;
  /** The usage in the answer, also where the client left before it; null when it failed. */
  usage: TrueUsage | null;
  /** The client closed the stream before its end. */
  wasAborted: boolean;
}

export interface FakeProvider {
  /** `http://127.0.0.1:port`, without a path. */
  origin: string;
  port: number;
  journal: JournalEntry[];
  close(): Promise<void>;
}

/** An answer of a provider: one JSON body, or the server-sent events of a stream. */
export interface ProviderAnswer {
  responseId: string | null;
  json(): unknown;
  /** Events as [event name or null, data]; data is written as given. */
  events(): [string | null, string][];
  /** Number of events that an aborted stream sends before it waits for the client to disconnect. */
  eventsBeforeAbort: number;
}

/** The specific parts of one provider. */
export interface ProviderProtocol {
  answer(call: PlannedCall, path: string, body: Record<string, unknown>): ProviderAnswer | undefined;
  error(httpStatus: number, message: string): { headers: Record<string, string>; body: unknown };
}

const CALL_WORD = /\bcall-\d+\b/;
const REQUEST_BYTES_MAX = 4_194_304;
/**
 * A stream whose client should disconnect ends after this time, so that a test fails and does not hang, milliseconds.
 */
const ABORT_WAIT_MS = 5_000;

/** Starts a fake on a free loopback port. It answers only the calls of the plan, and 404 to all others. */
export async function startFakeProvider(
  plan: readonly PlannedCall[],
  protocol: ProviderProtocol,
): Promise<FakeProvider> {
  const byId = new Map(plan.map((call) => [call.id, call]));
  const attempts = new Map<string, number>();
  const journal: JournalEntry[] = [];
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : new Error(String(error)));
    });
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const body = JSON.parse(text) as Record<string, unknown>;
    const path = new URL(request.url ?? '/', 'http://fake').pathname;
    const call = byId.get(CALL_WORD.exec(text)?.[0] ?? '');
    const answer = call === undefined ? undefined : protocol.answer(call, path, body);
    if (call === undefined || answer === undefined) {
      sendError(response, protocol, 404, `no planned call for ${request.method} ${path}`);
      return;
    }
    const attempt = (attempts.get(call.id) ?? 0) + 1;
    attempts.set(call.id, attempt);
    const failure = failureOf(call, attempt);
    const entry: JournalEntry = {
      callId: call.id,
      attempt,
      path,
      httpStatus: failure ?? 200,
      model: String(body.model),
      responseModel: failure === undefined ? call.responseModel : null,
      responseId: failure === undefined ? answer.responseId : null,
      usage: failure === undefined ? call.usage : null,
      wasAborted: false,
    };
    journal.push(entry);
    if (failure !== undefined) sendError(response, protocol, failure, `planned failure of ${call.id}`);
    else if (body.stream === true) await sendStream(response, answer, call.fate === 'abort', entry);
    else sendJson(response, 200, answer.json(), {});
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    journal,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

function failureOf(call: PlannedCall, attempt: number): number | undefined {
  if (call.fate === 'fail400') return 400;
  if (call.fate === 'fail429') return 429;
  if (attempt > 1) return undefined;
  if (call.fate === 'retry429') return 429;
  return call.fate === 'retry500' ? 500 : undefined;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > REQUEST_BYTES_MAX) throw new Error('request too large for the fake');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function sendError(
  response: ServerResponse,
  protocol: ProviderProtocol,
  httpStatus: number,
  message: string,
): void {
  const { headers, body } = protocol.error(httpStatus, message);
  sendJson(response, httpStatus, body, headers);
}

function sendJson(
  response: ServerResponse,
  httpStatus: number,
  body: unknown,
  headers: Record<string, string>,
): void {
  response.writeHead(httpStatus, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

async function sendStream(
  response: ServerResponse,
  answer: ProviderAnswer,
  isToBeAborted: boolean,
  entry: JournalEntry,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const events = answer.events();
  const sent = isToBeAborted ? events.slice(0, answer.eventsBeforeAbort) : events;
  for (const [name, data] of sent) {
    response.write(`${name === null ? '' : `event: ${name}\n`}data: ${data}\n\n`);
  }
  if (isToBeAborted) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ABORT_WAIT_MS);
      response.once('close', () => {
        clearTimeout(timer);
        entry.wasAborted = true;
        resolve();
      });
    });
  }
  response.end();
}
