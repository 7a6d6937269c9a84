import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Status lines for what is no HTTP request, as Node's own server has them; anything else is a plain 400. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/**
 * Bytes that are no HTTP request get one answer, and the connection ends with it. Where a request was answered before its
 * body turned out to be broken, the connection ends without a second answer, which Node would send: a proxy in front
 * could hand it to whoever asks next on that connection (RFC 9112 11.2).
 */
export function answerBrokenRequests(server: Server): void {
  const latest = new WeakMap<Socket, { request: IncomingMessage; response: ServerResponse }>();
  server.on('request', (request, response) => latest.set(request.socket, { request, response }));
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket;
    const last = latest.get(socket);
    const isUnderWay = last !== undefined && !(last.request.complete && last.response.writableFinished);
    if (socket.writable && !(isUnderWay && last.response.headersSent)) {
      const status = STATUS_LINES[error.code ?? ''] ?? '400 Bad Request';
      socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    }
    socket.destroy();
  });
}
