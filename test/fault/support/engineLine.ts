import { startRelay } from '../../support/relay.js';

/** A connection to a server that can be cut, silenced or stalled, and restored. */
export interface EngineLine {
  address: string;
  /** Every connection breaks, and no new one is taken. */
  cut(): void;
  /** Drops all data without closing the connection. */
  silence(): void;
  /** Holds all data back until the line is restored. */
  stall(): void;
  mend(): void;
  close(): Promise<void>;
}

/** Starts it on a free port of loopback, in front of `host:port`. */
export async function startEngineLine(target: string): Promise<EngineLine> {
  const [host = '', port = ''] = target.split(':');
  let state: 'whole' | 'cut' | 'silent' | 'stalled' = 'whole';
  const relay = await startRelay(
    { host, port: Number(port) },
    (client, upstream) => {
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        from.on('data', (chunk: Buffer) => state !== 'silent' && to.write(chunk));
        if (state === 'stalled') from.pause();
      }
    },
    () => state !== 'cut',
  );
  return {
    address: `127.0.0.1:${relay.port}`,
    cut: () => {
      state = 'cut';
      relay.breakAll();
    },
    silence: () => {
      state = 'silent';
    },
    stall: () => {
      state = 'stalled';
      for (const socket of relay.sockets) socket.pause();
    },
    mend: () => {
      for (const socket of relay.sockets) socket.resume();
      // Dropped data are missing from the streams of existing connections, so these are closed.
      if (state === 'silent') relay.breakAll();
      state = 'whole';
    },
    close: () => relay.close(),
  };
}
