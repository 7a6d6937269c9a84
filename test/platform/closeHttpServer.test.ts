import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { closeHttpServer, rememberConnections } from '../../platform/shutdown.js';

const REQUEST = 'POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}';

/** Later than any test lasts. */
const NEVER_MS = 600_000;

let server: Server;
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
});

async function listening(): Promise<void> {
  server = createServer((request, response) => {
    request.resume().on('end', () => response.end('done'));
  });
  rememberConnections(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
}

/** A connection in progress, and its answer or error once it has ended. */
function connection(): { socket: Socket; end: Promise<string> } {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  let text = '';
  socket.on('data', (data) => {
    text += data;
  });
  const end = new Promise<string>((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    socket.on('close', () => resolve(text));
  });
  return { socket, end };
}

/** Blocks the event loop. */
function holdUp(millis: number): void {
  const until = performance.now() + millis;
  while (performance.now() < until);
}

describe('a server that closes', () => {
  it('answers a client that connected before, also where it has not accepted the connection yet', async () => {
    await listening();
    const clients = Array.from({ length: 12 }, connection);
    for (const { socket } of clients) socket.write(REQUEST);
    // Now the system connects them; the process has not accepted any of them yet.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    holdUp(50);
    await closeHttpServer(server, NEVER_MS, { idleGraceMs: 500, acceptLimitMs: NEVER_MS });
    for (const { end } of clients) {
      const answer = await end;
      expect(answer).toContain('200 OK');
      expect(answer).toContain('Connection: close');
    }
  });

  it('answers a request on a connection that was kept alive, also where it was held up when that came', async () => {
    await listening();
    const { socket, end } = connection();
    socket.write(REQUEST);
    await once(socket, 'data');
    const idleGraceMs = 3_000;
    const closed = closeHttpServer(server, NEVER_MS, { idleGraceMs, acceptLimitMs: NEVER_MS });
    // By then the port and idle connections are checked; the following runs after reading, and before timers.
    await new Promise((resolve) => setTimeout(resolve, 60));
    await new Promise((resolve) => setImmediate(resolve));
    socket.write(REQUEST);
    holdUp(idleGraceMs + 500);
    await closed;
    expect((await end).match(/200 OK/g)).toHaveLength(2);
  });

  it('closes connections on which nothing comes, or never has', async () => {
    await listening();
    const [{ socket, end }, silent] = [connection(), connection()];
    socket.write(REQUEST);
    await once(socket, 'data');
    await closeHttpServer(server, NEVER_MS);
    expect((await end).match(/200 OK/g)).toHaveLength(1);
    expect(await silent.end).toBe('');
  });
});
