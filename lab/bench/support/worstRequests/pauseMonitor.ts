/**
 * Preloaded into a process: records the pauses of its event loop in CPU time of the thread, since on a shared
 * machine wall time mostly measures other programs. Each pause is a line of the file PAUSE_FILE: its end and its
 * length, both in milliseconds.
 */
import { appendFileSync } from 'node:fs';
import { threadCpuMs } from '../../../../test/support/threadCpu.js';

const TICK_MS = 5;
/** Shorter pauses are not recorded. */
const NOTED_MS_MIN = 20;

const { PAUSE_FILE } = process.env;
if (PAUSE_FILE !== undefined) {
  let before = threadCpuMs();
  setInterval(() => {
    const now = threadCpuMs();
    if (now - before >= NOTED_MS_MIN)
      appendFileSync(PAUSE_FILE, `${Date.now()} ${(now - before).toFixed(1)}\n`);
    before = now;
  }, TICK_MS).unref();
}
