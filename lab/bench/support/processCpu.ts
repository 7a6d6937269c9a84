import { readFileSync } from 'node:fs';
import { readBackendCpu } from './backendCpu.js';

/** The unit of CPU times in /proc on all Linux builds. */
const TICKS_A_SECOND = 100;

/** CPU seconds of all threads of a process; 0: there is none, or they cannot be read. */
export function readCpuSeconds(pid: number | undefined): number {
  if (pid === undefined) return 0;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain any character.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  } catch {
    return 0;
  }
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
