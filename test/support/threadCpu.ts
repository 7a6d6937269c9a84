import { readFileSync } from 'node:fs';

/** Nanoseconds on a processor, of the thread that asks; only Linux counts them. */
const SCHEDULED = '/proc/thread-self/schedstat';

/**
 * Milliseconds that this thread has worked. On a machine that is shared, the clock says more of the others; where the
 * system does not count, it must do.
 */
export function threadCpuMs(): number {
  try {
    return Number(readFileSync(SCHEDULED, 'latin1').split(' ', 1)[0]) / 1_000_000;
  } catch {
    return performance.now();
  }
}
