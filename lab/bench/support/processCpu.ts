import { readFileSync } from 'node:fs';
import { readBackendCpu } from './backendCpu.js';

/** Of Linux, in all its builds: what /proc counts in. */
const TICKS_A_SECOND = 100;

/** CPU seconds that a process has spent, all its threads; 0 where that cannot be read. */
function readCpuSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  } catch {
    return 0;
  }
}

/** CPU seconds of processes by name, the backends of a Postgres together among them. */
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
