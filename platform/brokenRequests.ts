import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes that Node's parser refuses, or an incomplete request after its timeout. */
export interface BrokenRequest {
  /** Node's error code, such as HPE_HEADER_OVERFLOW. */
  code: string;
  /** The bytes that the parser was reading: the whole request if it came in one piece. */
  bytes: Buffer;
}

/** An answer as it is written to the connection; its length and `Connection: close` are added. */
export interface RawAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/**
 * Milliseconds before the connection is closed: a client may still be sending, and an immediate close would reset the
 * connection and lose the answer (RFC 9112 9.6).
 */
const LINGER_MS = 1_000;

/**
 * Answers bytes that are not an HTTP request once, and closes the connection. If a request was answered before its body
 * turned out to be broken, the connection closes without a second answer, which Node would send: a proxy could return
 * it to the next request on that connection (RFC 9112 11.2).
 */
export function answerBrokenRequests(server: Server, present: (broken: BrokenRequest) => RawAnswer): void {
  const latest = new WeakMap<Socket, { request: IncomingMessage; response: ServerResponse }>();
  /** Connections that have been answered; the parser refuses their further bytes too. */
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
 * Emits `close` on answers that are queued behind another one on their connection (pipelining, RFC 9112 9.3.2). Node
 * emits it only on the answer that is being sent: the others would never end, and their resources would never be
 * released.
 */
export function closeQueuedAnswers(server: Server): void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  server.prependListener('request', (request, response) => {
    // The first answer already has its connection.
    if (response.socket !== null) return;
    const { socket } = request;
    const known = waiting.get(socket);
    const queue = known ?? new Set<ServerResponse>();
    queue.add(response);
    // It is no longer queued: from now on Node emits its events.
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
