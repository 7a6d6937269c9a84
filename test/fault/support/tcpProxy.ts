import { startRelay } from '../../support/relay.js';

/** A proxy in front of Postgres that can lose the answer to a commit. */
export interface TcpProxy {
  port: number;
  /**
   * The next commit reaches the server, but its answer is lost with the connection. `after` commits succeed before it.
   * With `writing`, it is the next commit of a transaction that sent this text.
   */
  loseNextCommit(which?: { after?: number; writing?: string }): void;
  /** No further commit is lost. */
  spare(): void;
  /** Number of commits whose answer was lost. */
  lost(): number;
  close(): Promise<void>;
}

const COMMIT = Buffer.from('commit\0');
const BEGIN = Buffer.from('begin');

/** Starts a proxy on a free port of loopback. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  let armed = 0;
  let passing = 0;
  let writing = '';
  let lost = 0;
  const relay = await startRelay({ host: '127.0.0.1', port: targetPort }, (client, upstream) => {
    let swallows = false;
    let isWritten = false;
    client.on('data', (chunk: Buffer) => {
      if (chunk.includes(BEGIN)) isWritten = false;
      if (chunk.includes(writing)) isWritten = true;
      if (armed > 0 && isWritten && chunk.includes(COMMIT)) {
        if (passing > 0) passing -= 1;
        else {
          armed -= 1;
          swallows = true;
        }
      }
      upstream.write(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      if (!swallows) {
        client.write(chunk);
        return;
      }
      // ReadyForQuery with no transaction open: the commit is done.
      if (!chunk.includes(Buffer.from([0x5a, 0, 0, 0, 5, 0x49]))) return;
      lost += 1;
      client.destroy();
    });
  });
  return {
    port: relay.port,
    loseNextCommit: ({ after = 0, writing: text = '' } = {}) => {
      armed += 1;
      passing = after;
      writing = text;
    },
    spare: () => {
      armed = 0;
    },
    lost: () => lost,
    close: () => relay.close(),
  };
}
