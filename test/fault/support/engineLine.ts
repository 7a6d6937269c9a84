import { connect, createServer, type Socket } from 'node:net';

/** A line to a server that can be cut, fall silent or stand still, and be whole again. */
export interface EngineLine {
  address: string;
  /** Every connection breaks, and no new one is taken. */
  cut(): void;
  /** Nothing is passed on any more, and nobody is told. */
  silence(): void;
  /** The same, but what was sent arrives when the line is mended. */
  stall(): void;
  mend(): void;
  close(): Promise<void>;
}

/** Starts it on a free port of loopback, in front of `host:port`. */
export async function startEngineLine(target: string): Promise<EngineLine> {
  const [host = '', port = ''] = target.split(':');
  let state: 'whole' | 'cut' | 'silent' | 'stalled' = 'whole';
  const sockets = new Set<Socket>();
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    if (state === 'cut') return client.destroy();
    const upstream = connect(Number(port), host);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('data', (chunk: Buffer) => state !== 'silent' && to.write(chunk));
      if (state === 'stalled') from.pause();
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as { port: number }).port}`,
    cut: () => {
      state = 'cut';
      breakAll();
    },
    silence: () => {
      state = 'silent';
    },
    stall: () => {
      state = 'stalled';
      for (const socket of sockets) socket.pause();
    },
    mend: () => {
      for (const socket of sockets) socket.resume();
      // What was swallowed is missing from the streams of the connections that there are.
      if (state === 'silent') breakAll();
      state = 'whole';
    },
    close: async () => {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
