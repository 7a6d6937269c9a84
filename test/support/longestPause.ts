import { threadCpuMs } from './threadCpu.js';

const TICK_MS = 2;

/**
 * The longest time for which `work` blocked this process's event loop, as a share of all its processor time: a slow machine
 * prolongs both.
 */
export async function longestPause<T>(work: () => Promise<T>): Promise<{ result: T; share: number }> {
  let pauseMs = 0;
  const started = threadCpuMs();
  let before = started;
  const look = () => {
    const now = threadCpuMs();
    pauseMs = Math.max(pauseMs, now - before);
    before = now;
  };
  const timer = setInterval(look, TICK_MS);
  try {
    const result = await work();
    look();
    return { result, share: pauseMs / (before - started) };
  } finally {
    clearInterval(timer);
  }
}
