import { threadCpuMs } from './threadCpu.js';

const TICK_MS = 2;

/** The longest time for which `work` blocked this process's event loop, in processor time. */
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
