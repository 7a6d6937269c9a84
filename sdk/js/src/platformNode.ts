import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Platform } from './platform.js';
import { openSpool } from './spool.js';

/** Node, Bun and Deno. */

const compress = promisify(gzip);
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

const flushes = new Set<() => Promise<void>>();

async function flushAll(): Promise<void> {
  await Promise.all([...flushes].map((flush) => flush()));
}

/**
 * A signal that nobody else handles ends the process as before, after the flush. The application's own handlers decide
 * when it ends where there are any.
 */
function watchEnd(): void {
  let isFlushed = false;
  process.on('beforeExit', () => {
    // The flush keeps the process alive, and this event comes again after it: one attempt is made.
    if (isFlushed) return;
    isFlushed = true;
    void flushAll();
  });
  for (const signal of SIGNALS) {
    const handle = () => {
      process.removeListener(signal, handle);
      const isAlone = process.listenerCount(signal) === 0;
      void flushAll().finally(() => {
        if (isAlone) process.kill(process.pid, signal);
      });
    };
    process.on(signal, handle);
  }
}

export const nodePlatform: Platform = {
  name: 'node',
  env: (name) => process.env[name],
  digest: (text) => createHash('sha256').update(text).digest('base64'),
  randomId: randomUUID,
  gzip: (bytes) => compress(bytes),
  createStorage: <T>() => new AsyncLocalStorage<T>(),
  openSpool,
  onEnd(flush) {
    if (flushes.size === 0) watchEnd();
    flushes.add(flush);
  },
  hasTimers: true,
};
