import { connect, createServer, type Socket } from 'node:net';

/** A proxy between clients and a server, on a free port of loopback. */
export interface Relay {
  port: number;
  /** Both ends of every connection that there is. */
  sockets: ReadonlySet<Socket>;
  /** Breaks every connection. */
  breakAll(): void;
  close(): Promise<void>;
}

/**
 * Starts a relay. `join` handles each connection and passes chunks on; when one end closes, so does the other. A
 * connection for which `takes` returns false is closed.
 */
export async function startRelay(
  target: { host: string; port: number },
  join: (client: Socket, upstream: Socket) => void,
  takes: () => boolean = () => true,
): Promise<Relay> {
  const sockets = new Set<Socket>();
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    if (!takes()) return client.destroy();
    const upstream = connect(target.port, target.host);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    join(client, upstream);
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    sockets,
    breakAll,
    close: async () => {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
