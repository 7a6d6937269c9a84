import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy in front of a loopback provider that can make its callers wait. */
export interface ProviderGate {
  origin: string;
  /** Lets no request through from now on. */
  shut(): void;
  open(): void;
  /** Resolves when this many callers wait. */
  waiting(callers: number): Promise<void>;
  close(): Promise<void>;
}

/** `target` is called for each request, so that the gate can exist before the provider. */
export async function startProviderGate(target: () => string): Promise<ProviderGate> {
  let isShut = false;
  const held: (() => void)[] = [];
  const watchers: { callers: number; tell: () => void }[] = [];
  const server = createServer((request, response) => {
    const pass = () => {
      const { method = 'GET', url = '/', headers } = request;
      const onward = httpRequest(target() + url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      request.pipe(onward);
    };
    if (!isShut) {
      pass();
      return;
    }
    held.push(pass);
    for (const { callers, tell } of watchers) if (held.length >= callers) tell();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    shut: () => {
      isShut = true;
    },
    open: () => {
      isShut = false;
      for (const pass of held.splice(0)) pass();
    },
    waiting: (callers) =>
      new Promise((resolve) => {
        if (held.length >= callers) resolve();
        else watchers.push({ callers, tell: resolve });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
