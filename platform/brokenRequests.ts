import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes that Node's parser refuses, or that did not come in time. */
export interface BrokenRequest {
  /** Node's own, such as HPE_HEADER_OVERFLOW. */
  code: string;
  /** What was being read when the parser stopped: the whole request so far where it came at once. */
  bytes: Buffer;
}

/** An answer as it is written to the connection; its length and the end of the connection are added. */
export interface RawAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** A client may still be sending: closed at once, the connection would be reset and the answer lost (RFC 9112 9.6). */
const LINGER_MS = 1_000;

/**
 * Bytes that are no HTTP request get one answer, and the connection ends with it. Where a request was answered before its
 * body turned out to be broken, the connection ends without a second answer, which Node would send: a proxy in front
 * could hand it to anyone who asks next on that connection (RFC 9112 11.2).
 */
export function answerBrokenRequests(server: Server, present: (broken: BrokenRequest) => RawAnswer): void {
  const latest = new WeakMap<Socket, { request: IncomingMessage; response: ServerResponse }>();
  /** The parser refuses what comes behind as well. */
  const ended = new WeakSet<Socket>();
  server.on('request', (request, response) => latest.set(request.socket, { request, response }));
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, stream) => {
    const socket = stream as Socket;
    if (ended.has(socket)) return;
    ended.add(socket);
    const last = latest.get(socket);
    const isUnderWay = last !== undefined && !(last.request.complete && last.response.writableFinished);
    if (!socket.writable || (isUnderWay && last.response.headersSent)) {
      socket.destroy();
      return;
    }
    socket.end(textOf(present({ code: error.code ?? '', bytes: error.rawPacket ?? Buffer.alloc(0) })));
    const cut = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(cut));
  });
}

function textOf({ status, headers, body }: RawAnswer): string {
  const fields = {
    ...headers,
    Date: new Date().toUTCString(),
    Connection: 'close',
    'Content-Length': String(Buffer.byteLength(body)),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n');
}

/**
 * Emits `close` on answers that wait behind another one on their connection (pipelining, RFC 9112 9.3.2). Node emits
 * it on the answer that is being sent alone: the others never end, and whatever is held until they do would be held
 * for good.
 */
export function closeQueuedAnswers(server: Server): void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  server.prependListener('request', (request, response) => {
    // The first answer has its connection already.
    if (response.socket !== null) return;
    const { socket } = request;
    const known = waiting.get(socket);
    const queue = known ?? new Set<ServerResponse>();
    queue.add(response);
    // Its turn has come: from now on Node emits its events.
    response.once('socket', () => queue.delete(response));
    if (known) return;
    waiting.set(socket, queue);
    socket.once('close', () => {
      for (const queued of queue) {
        queued.destroy();
        queued.emit('close');
      }
      queue.clear();
    });
  });
}
