import { createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { translatePgError } from '../../db/pgErrors.js';

let silent: Server | undefined;
const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent?.close(resolve));
});

describe('a database that takes a connection and then says nothing', () => {
  it('is one that cannot take the request now, not a fault of ours', async () => {
    const server = createServer((socket) => sockets.add(socket));
    silent = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const client = new pg.Client({ host: '127.0.0.1', port, connectionTimeoutMillis: 100 });
    const failure = await client.connect().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(translatePgError(failure)).toMatchObject({ code: 'service_unavailable', retryAfterSeconds: 2 });
  });
});
