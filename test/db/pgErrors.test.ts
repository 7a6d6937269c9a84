import { createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { translatePgError } from '../../db/pgErrors.js';

let silent: Server | undefined;
const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => (silent ? silent.close(resolve) : resolve(undefined)));
  silent = undefined;
});

describe('a full disk', () => {
  it.each([
    ['53100', 'could not extend file "base/1/2": No space left on device'],
    ['XX000', 'could not write init file: No space left on device'],
    ['XX000', 'could not write init file: Disk quota exceeded'],
  ])('is recognized by the code or by the system’s text in an internal error: %s %s', (code, message) => {
    const error = Object.assign(new pg.DatabaseError(message, 0, 'error'), { code });
    expect(translatePgError(error)).toMatchObject({ code: 'storage_full', retryAfterSeconds: 30 });
  });

  it('is not any other internal error', () => {
    const error = Object.assign(new pg.DatabaseError('cache lookup failed', 0, 'error'), { code: 'XX000' });
    expect(translatePgError(error)).toBe(error);
  });
});

describe('a database that accepts a connection and then does not answer', () => {
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
