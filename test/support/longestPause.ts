import { threadCpuMs } from './threadCpu.js';

const TICK_MS = 2;

/** How long the event loop of this process stood still at most while something went on, in time on a processor. */
export async function longestPause<T>(work: () => Promise<T>): Promise<{ result: T; pauseMs: number }> {
  let pauseMs = 0;
  let before = threadCpuMs();
  const look = () => {
    const now = threadCpuMs();
    pauseMs = Math.max(pauseMs, now - before);
    before = now;
  };
  const timer = setInterval(look, TICK_MS);
  try {
    const result = await work();
    look();
    return { result, pauseMs };
  } finally {
    clearInterval(timer);
  }
}
