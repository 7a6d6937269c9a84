import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type ChildLimits, startLimited } from '../../../adapters/invoices/limitedChild.js';

const PROGRAM = fileURLToPath(new URL('./silentProgram.ts', import.meta.url));
/** Longer than a child of the lowest priority waits for some CPU time on a busy machine. */
const SILENCE_MS = 1_500;
/** The same for a child that does nothing else than start and sleep. */
const LONG_SILENCE_MS = 20_000;
const hasPrlimit = process.platform === 'linux' && spawnSync('prlimit', ['true']).status === 0;

const start = (limits: Partial<ChildLimits> = {}) =>
  startLimited<{ busyMs?: number; sleepMs?: number }, { is: 'done' }>(PROGRAM, {
    silenceMsMax: SILENCE_MS,
    ...limits,
  });
const onMessage = () => true;

describe.skipIf(!hasPrlimit)('a silent child', () => {
  it('may work until its limit of CPU time, however long that takes', async () => {
    await expect(start().run({ busyMs: 2.5 * SILENCE_MS }, { onMessage })).resolves.toBeUndefined();
  });

  it('that uses all its CPU time has a document beyond the limits', async () => {
    const run = start({ cpuSecondsMax: 1 }).run({ busyMs: 60_000 }, { onMessage });
    await expect(run).rejects.toMatchObject({ code: 'resource_limit' });
  });

  it('that gets no CPU time fails as a busy machine, not as a document beyond the limits', async () => {
    const run = start().run({ sleepMs: 60_000 }, { onMessage });
    await expect(run).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});

/** Scheduling of the sessions that run the program: `/autogroup-7 nice 19`. */
const sessionsOfProgram = () =>
  readdirSync('/proc').flatMap((pid) => {
    try {
      const isOurs = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(PROGRAM);
      const session = isOurs ? readFileSync(`/proc/${pid}/autogroup`, 'utf8').trim() : '';
      return session === '' ? [] : [session];
    } catch {
      return [];
    }
  });

it.skipIf(!existsSync('/proc/self/autogroup'))(
  'lowers the session of a child, which Linux schedules by',
  async () => {
    const child = start({ silenceMsMax: LONG_SILENCE_MS });
    const run = child.run({ sleepMs: 500 }, { onMessage });
    // A process has no command line until it gets some CPU time, which on a busy machine takes a while.
    await expect.poll(sessionsOfProgram, { timeout: LONG_SILENCE_MS, interval: 10 }).toHaveLength(1);
    expect(sessionsOfProgram()).toEqual([expect.stringMatching(/ nice 19$/)]);
    await run;
  },
);
