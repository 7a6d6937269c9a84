import { existsSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { parentOf } from '../../../platform/embedded/processTable.js';
import { readCpuSeconds, readEndedChildrenSeconds } from './processCpu.js';

const NANOS_A_SECOND = 1e9;

/** The name of the backends that have ended. */
const ENDED = 'ended';

/**
 * CPU seconds of the Postgres backends of each program, by application name, and of all that have ended; empty outside
 * Linux. What a program's backend had spent before it ended moves from the program to `ENDED`.
 */
export async function readBackendCpu(url: string): Promise<Map<string, number>> {
  if (!existsSync('/proc/self/schedstat')) return new Map();
  const client: pg.Client & { processID?: number } = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // This backend lives until the connection is closed, so that its parent can be read.
    const server = parentOf(client.processID as number);
    for (;;) {
      const { rows } = await client.query<Backend>(
        `select pid, case when backend_type = 'client backend' then application_name else backend_type end as name
         from pg_stat_activity`,
      );
      const ended = readEndedChildrenSeconds(server);
      const seconds = secondsByName(rows);
      // A backend that ended meanwhile would be counted twice, or not at all.
      if (readEndedChildrenSeconds(server) === ended) return seconds.set(ENDED, ended);
    }
  } finally {
    await client.end();
  }
}

interface Backend {
  pid: number;
  name: string;
}

function secondsByName(backends: readonly Backend[]): Map<string, number> {
  const seconds = new Map<string, number>();
  for (const { pid, name } of backends) {
    try {
      const nanos = Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]);
      seconds.set(name, (seconds.get(name) ?? 0) + nanos / NANOS_A_SECOND);
    } catch {
      // It ended after the query.
    }
  }
  return seconds;
}

/** What was spent between two readings, by name; a name that is gone has a negative part, which `ENDED` contains. */
export function spentBetween(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): [name: string, seconds: number][] {
  return [...new Set([...before.keys(), ...after.keys()])].map((name) => [
    name,
    (after.get(name) ?? 0) - (before.get(name) ?? 0),
  ]);
}

/** CPU seconds of all backends of a Postgres. */
export async function readServerCpu(url: string): Promise<number> {
  return [...(await readBackendCpu(url)).values()].reduce((sum, seconds) => sum + seconds, 0);
}

/** CPU seconds of processes by name; the backends of a Postgres are summed. */
export async function readCpuOf(
  pids: Readonly<Record<string, number>>,
  url: string,
): Promise<Map<string, number>> {
  return new Map([
    ['Postgres', await readServerCpu(url)],
    ...Object.entries(pids).map(([name, pid]): [string, number] => [name, readCpuSeconds(pid)]),
  ]);
}
