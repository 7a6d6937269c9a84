/**
 * A loopback server that keeps what clients send, byte for byte, and answers as Trueup does: to see what a
 * client really sends, and to record payloads for replay.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as it came in. */
export interface CapturedRequest {
  method: string;
  path: string;
  /** Lower-case names; hop-by-hop and secret headers included as sent. */
  headers: Record<string, string>;
  body: Buffer;
}

export interface CaptureServer {
  baseUrl: string;
  requests: CapturedRequest[];
  close(): Promise<void>;
}

/** Starts the server on a free loopback port. */
export async function startCaptureServer(): Promise<CaptureServer> {
  const requests: CapturedRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    requests.push({
      method: request.method ?? '',
      path: request.url ?? '',
      headers,
      body: Buffer.concat(chunks),
    });
    const isProtobuf = headers['content-type']?.startsWith('application/x-protobuf') === true;
    response.writeHead(202, { 'content-type': isProtobuf ? 'application/x-protobuf' : 'application/json' });
    // An empty protobuf message is a full success in OTLP.
    response.end(isProtobuf ? '' : '{"accepted":0,"organization_id":"org_capture"}');
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
