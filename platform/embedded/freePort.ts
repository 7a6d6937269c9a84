import { createServer } from 'node:net';

/** `preferred` when nothing listens on it on 127.0.0.1, else a port that the system picks. */
export async function findFreePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await tryListen(preferred)) !== undefined) return preferred;
  const port = await tryListen(0);
  if (port === undefined) throw new Error('no free port on 127.0.0.1');
  return port;
}

/** Whether something on this machine already listens at an address. */
export async function isPortTaken(port: number, host: string): Promise<boolean> {
  return port !== 0 && (await tryListen(port, host)) === undefined;
}

function tryListen(port: number, host = '127.0.0.1'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    probe.listen(port, host, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : undefined));
    });
  });
}
