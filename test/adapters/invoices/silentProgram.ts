/** A child that says nothing while it computes for `busyMs` of CPU time or sleeps for `sleepMs`, and then ends well. */
import { setTimeout as sleep } from 'node:timers/promises';

process.once('message', async ({ busyMs = 0, sleepMs = 0 }: { busyMs?: number; sleepMs?: number }) => {
  const before = process.cpuUsage();
  const usedMicros = () => {
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  // Reading the clock is itself a call of the system, on some machines most of the time.
  while (usedMicros() < busyMs * 1_000);
  await sleep(sleepMs);
  process.send?.({ is: 'done' }, () => process.exit(0));
});
process.send?.({ is: 'ready' });
