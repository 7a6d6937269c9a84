import { readFileSync } from 'node:fs';

/** Processor time of the calling thread, nanoseconds; only Linux counts it. */
const SCHEDULED = '/proc/thread-self/schedstat';

/**
 * Milliseconds that this thread has worked. On a shared machine the clock mostly measures others; it is used where the
 * system does not count.
 */
export function threadCpuMs(): number {
  try {
    return Number(readFileSync(SCHEDULED, 'latin1').split(' ', 1)[0]) / 1_000_000;
  } catch {
    return performance.now();
  }
}
