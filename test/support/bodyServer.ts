import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** Answers a request whose body is there. */
export type BodyHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
) => void | Promise<void>;

/**
 * A server of what lies outside the product. A client may end its request before the whole body is sent, as at a timeout:
 * such a request has no answer.
 */
export function createBodyServer(handle: BodyHandler): Server {
  return createServer(async (request, response) => {
    const body = await buffer(request).catch(() => undefined);
    if (body) await handle(request, response, body);
  });
}
