/** A child that says nothing while it computes for `busyMs` of CPU time or sleeps for `sleepMs`, and then ends well. */
import { setTimeout as sleep } from 'node:timers/promises';

process.once('message', async ({ busyMs = 0, sleepMs = 0 }: { busyMs?: number; sleepMs?: number }) => {
  const { user, system } = process.cpuUsage();
  while (process.cpuUsage({ user, system }).user < busyMs * 1_000);
  await sleep(sleepMs);
  process.send?.({ is: 'done' }, () => process.exit(0));
});
process.send?.({ is: 'ready' });
