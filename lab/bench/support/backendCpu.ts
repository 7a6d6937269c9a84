import { existsSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { readCpuSeconds, readEndedChildrenSeconds, readParent } from './processCpu.js';

const NANOS_A_SECOND = 1e9;

/** The name of the backends that have ended. */
const ENDED = 'ended';

/**
 * CPU seconds of the Postgres backends of each program, by application name, and of all that have ended; empty outside
 * Linux. What a program's backend had spent before it ended moves from the program to `ENDED`.
 */
export async function readBackendCpu(url: string): Promise<Map<string, number>> {
  const seconds = new Map<string, number>();
  if (!existsSync('/proc/self/schedstat')) return seconds;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const result = await client.query<{ pid: number; name: string }>(
    `select pid, case when backend_type = 'client backend' then application_name else backend_type end as name from pg_stat_activity`,
  );
  await client.end();
  const [first] = result.rows;
  if (first) seconds.set(ENDED, readEndedChildrenSeconds(readParent(first.pid)));
  for (const { pid, name } of result.rows) {
    try {
      const nanos = Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]);
      seconds.set(name, (seconds.get(name) ?? 0) + nanos / NANOS_A_SECOND);
    } catch {
      // The backend ended between the two reads.
    }
  }
  return seconds;
}

/** CPU seconds of processes by name; the backends of a Postgres are summed. */
export async function readCpuOf(
  pids: Readonly<Record<string, number>>,
  url: string,
): Promise<Map<string, number>> {
  const backends = [...(await readBackendCpu(url)).values()].reduce((sum, seconds) => sum + seconds, 0);
  return new Map([
    ...Object.entries(pids).map(([name, pid]): [string, number] => [name, readCpuSeconds(pid)]),
    ['Postgres', backends],
  ]);
}
