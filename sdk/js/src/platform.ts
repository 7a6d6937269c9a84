/** The parts of the runtime that differ: Node, Bun and Deno have all of them, browsers and Workers fewer. */
export interface Platform {
  name: string;
  env(name: string): string | undefined;
  /** A text that equal texts share; it never leaves the process. */
  digest(text: string): string;
  randomId(): string;
  gzip: ((bytes: Uint8Array) => Promise<Uint8Array>) | undefined;
  /** Carries values along async calls. */
  createStorage<T>(): AsyncStorage<T> | undefined;
  openSpool: ((folder: string, options: SpoolOptions) => Spool) | undefined;
  /** Calls `flush` when the process ends by itself and on SIGTERM. */
  onEnd(flush: () => Promise<void>): void;
  /** False where timers live only as long as a request: the application flushes by itself. */
  hasTimers: boolean;
}

export interface AsyncStorage<T> {
  run<R>(value: T, work: () => R): R;
  getStore(): T | undefined;
}

export interface SpoolOptions {
  /** Bytes of all files together. */
  bytesMax: number;
}

/** Events on disk until the service has them. */
export interface Spool {
  /** Writes one event before it returns. @throws where the disk refuses or the spool is full. */
  append(line: string): void;
  /** The oldest events that are not sent, at most so many and so many bytes; empty: there are none. */
  read(linesMax: number, bytesMax: number): string[];
  /** The events of the last `read` have arrived. */
  confirm(): void;
  /** Whether events wait. */
  readonly isEmpty: boolean;
  close(): void;
}

let current: Platform | undefined;

export function setPlatform(platform: Platform): void {
  current = platform;
}

export function platform(): Platform {
  if (current === undefined) throw new Error('trueup-sdk: import the package by its name');
  return current;
}

/** Two independent 53-bit hashes, for runtimes without a synchronous sha256 (after cyrb53, public domain). */
export function plainDigest(text: string): string {
  return `${hash53(text, 0)}-${hash53(text, 0x9e3779b9)}-${text.length}`;
}

function hash53(text: string, seed: number): string {
  let high = 0xdeadbeef ^ seed;
  let low = 0x41c6ce57 ^ seed;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36);
}
