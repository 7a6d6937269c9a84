import { connect, createServer, type Socket } from 'node:net';

/** The server's message that a copy is complete, and the beginning of the result set behind it. */
const COPY_DONE = Buffer.from([0x63, 0, 0, 0, 4, 0x54, 0, 0, 0]);

/**
 * Somebody between a client and Postgres who passes on what follows the end of a copy only when `letGo` is called, as a busy
 * server or network may.
 */
export async function holdEndOfCopy(
  url: string,
): Promise<{ url: string; letGo: () => void; close: () => Promise<void> }> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const held: (() => void)[] = [];
  let isHolding = true;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true).on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    let isBehind = false;
    upstream.on('data', (chunk: Buffer) => {
      const at = !isHolding ? chunk.length : isBehind ? 0 : chunk.indexOf(COPY_DONE);
      isBehind ||= isHolding && at >= 0;
      const [now, later] =
        at < 0 ? [chunk, chunk.subarray(0, 0)] : [chunk.subarray(0, at), chunk.subarray(at)];
      if (now.length > 0) client.write(now);
      if (later.length > 0) held.push(() => client.write(later));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String((server.address() as { port: number }).port);
  return {
    url: through.toString(),
    letGo: () => {
      isHolding = false;
      for (const write of held.splice(0)) write();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
