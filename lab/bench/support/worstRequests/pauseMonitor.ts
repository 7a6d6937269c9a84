/**
 * Loaded into a process before its own program: notes how long its event loop stands still, in the time that its thread
 * spends on a processor. On a machine that is shared the clock says more of the others. Each pause is a line of the file
 * that PAUSE_FILE names: when it ended, and how long it was, both in milliseconds.
 */
import { appendFileSync } from 'node:fs';
import { threadCpuMs } from '../../../../test/support/threadCpu.js';

const TICK_MS = 5;
/** Shorter ones are not noted. */
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
