import { type AsyncStorage, type Platform, plainDigest } from './platform.js';

/** Browsers and Cloudflare Workers: no disk, no process, and timers only within a request. */

type Modules = { AsyncLocalStorage: new <T>() => AsyncStorage<T> };

/** Workers with `nodejs_compat` have Node's modules. */
function asyncHooks(): Modules | undefined {
  try {
    const { process } = globalThis as {
      process?: { getBuiltinModule?: (name: string) => Modules | undefined };
    };
    return process?.getBuiltinModule?.('node:async_hooks');
  } catch {
    return undefined;
  }
}

async function gzip(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new CompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const isWorker = typeof navigator !== 'undefined' && navigator.userAgent === 'Cloudflare-Workers';

export const webPlatform: Platform = {
  name: isWorker ? 'workerd' : 'web',
  env: (name) =>
    (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name],
  digest: plainDigest,
  randomId: () => crypto.randomUUID(),
  gzip: typeof CompressionStream === 'undefined' ? undefined : gzip,
  createStorage<T>() {
    const modules = asyncHooks();
    return modules && new modules.AsyncLocalStorage<T>();
  },
  openSpool: undefined,
  onEnd: () => undefined,
  hasTimers: !isWorker,
};
