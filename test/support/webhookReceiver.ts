import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createBodyServer } from './bodyServer.js';

/** A message as a receiver got it. */
export interface ReceivedMessage {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** Milliseconds on this machine's monotonic clock. */
  atMs: number;
}

/** Answers a message once its body is read. `count`: messages so far, this one included. */
export type ReceiverAnswer = (
  message: ReceivedMessage,
  response: ServerResponse,
  count: number,
) => void | Promise<void>;

/** A receiver of webhooks on loopback. */
export interface WebhookReceiver {
  /** `127.0.0.1:port`, as OUTBOUND_ALLOWED_HOSTS names it. */
  host: string;
  url: string;
  /** The received messages in order. */
  received: ReceivedMessage[];
  /** Ids of the received messages in order, repeats included. */
  ids(): string[];
  /** Replaces the answer to messages from now on. */
  answerWith(answer: ReceiverAnswer): void;
  close(): Promise<void>;
}

/** The answer with this status and no body. */
export const answering =
  (status: number, headers: OutgoingHttpHeaders = {}): ReceiverAnswer =>
  (_message, response) =>
    void response.writeHead(status, headers).end();

export async function startWebhookReceiver(
  firstAnswer: ReceiverAnswer = answering(204),
): Promise<WebhookReceiver> {
  const received: ReceivedMessage[] = [];
  let answer = firstAnswer;
  const server = createBodyServer(async (request, response, body) => {
    const message = {
      path: request.url ?? '',
      headers: request.headers,
      body: body.toString('utf8'),
      atMs: performance.now(),
    };
    received.push(message);
    await answer(message, response, received.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: `http://${host}/hook`,
    received,
    ids: () => received.map(({ headers }) => String(headers['webhook-id'])),
    answerWith: (next) => {
      answer = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
