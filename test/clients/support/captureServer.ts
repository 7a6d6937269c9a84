/** A loopback server between a client and Trueup that records the client's requests byte for byte, for replay. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as received. */
export interface CapturedRequest {
  path: string;
  /** Only the headers that state the body's format and the sender. */
  headers: Record<string, string>;
  body: Buffer;
}

const KEPT_HEADERS = ['content-type', 'content-encoding', 'authorization'] as const;

export interface CaptureServer {
  baseUrl: string;
  requests: CapturedRequest[];
  close(): Promise<void>;
}

/** Starts the server on a free loopback port; every request is forwarded to `target`, whose answer is returned. */
export async function startCaptureServer(target: string): Promise<CaptureServer> {
  const requests: CapturedRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    capture(incoming).then(
      async (request) => {
        requests.push(request);
        const answer = await sendCaptured(target, request, request.headers.authorization ?? '');
        outgoing.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
        outgoing.end(Buffer.from(await answer.arrayBuffer()));
      },
      (error: Error) => outgoing.destroy(error),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function capture(incoming: IncomingMessage): Promise<CapturedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const headers: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = incoming.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  return { path: incoming.url ?? '', headers, body: Buffer.concat(chunks) };
}

/** Sends a captured request, byte for byte, with another authorization. */
export function sendCaptured(
  target: string,
  request: CapturedRequest,
  authorization: string,
): Promise<Response> {
  return fetch(target + request.path, {
    method: 'POST',
    headers: { ...request.headers, authorization },
    body: new Uint8Array(request.body),
  });
}
