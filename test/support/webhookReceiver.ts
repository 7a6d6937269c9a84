import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createBodyServer } from './bodyServer.js';

/** A message as a receiver sees it. */
export interface ReceivedMessage {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A receiver of webhooks on loopback. */
export interface WebhookReceiver {
  /** `127.0.0.1:port`, as OUTBOUND_ALLOWED_HOSTS names it. */
  host: string;
  /** An address of it. */
  url(path?: string): string;
  /** The received messages in order. */
  received: ReceivedMessage[];
  /** The answers from now on, once the body is read; 204 by default. */
  answerWith(answer: RequestListener): void;
  close(): Promise<void>;
}

const NO_CONTENT: RequestListener = (_request, response) => response.writeHead(204).end();

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedMessage[] = [];
  const sockets = new Set<Socket>();
  let answer = NO_CONTENT;
  const server = createBodyServer((request, response, body) => {
    received.push({
      path: request.url ?? '',
      headers: request.headers,
      body: body.toString('utf8'),
    });
    answer(request, response);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: (path = '/hook') => `http://${host}${path}`,
    received,
    answerWith: (next) => {
      answer = next;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
