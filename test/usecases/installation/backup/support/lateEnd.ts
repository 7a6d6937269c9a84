import { startRelay } from '../../../../support/relay.js';

/** The server's message that a copy is complete, and the beginning of the result set behind it. */
const COPY_DONE = Buffer.from([0x63, 0, 0, 0, 4, 0x54, 0, 0, 0]);

/**
 * A proxy between a client and Postgres that forwards the data after the end of a copy only when `letGo` is called, as
 * a busy server or network may.
 */
export async function holdEndOfCopy(
  url: string,
): Promise<{ url: string; letGo: () => void; close: () => Promise<void> }> {
  const target = new URL(url);
  const held: (() => void)[] = [];
  let isHolding = true;
  const relay = await startRelay({ host: target.hostname, port: Number(target.port) }, (client, upstream) => {
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
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String(relay.port);
  return {
    url: through.toString(),
    letGo: () => {
      isHolding = false;
      for (const write of held.splice(0)) write();
    },
    close: () => relay.close(),
  };
}
