import { readFileSync } from 'node:fs';

/** The unit of CPU times in /proc on all Linux builds. */
const TICKS_A_SECOND = 100;

/** Fields of a process's /proc/PID/stat behind its name; empty: there is none, or they cannot be read. */
function readStat(pid: number | undefined): number[] {
  if (pid === undefined) return [];
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain any character.
    return stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
  } catch {
    return [];
  }
}

/** CPU seconds of all threads of a process; 0: there is none, or they cannot be read. */
export function readCpuSeconds(pid: number | undefined): number {
  const fields = readStat(pid);
  return ((fields[11] ?? 0) + (fields[12] ?? 0)) / TICKS_A_SECOND;
}

/** CPU seconds of the children of a process that have ended; 0 where they cannot be read. */
export function readEndedChildrenSeconds(pid: number | undefined): number {
  const fields = readStat(pid);
  return ((fields[13] ?? 0) + (fields[14] ?? 0)) / TICKS_A_SECOND;
}

export function readParent(pid: number): number | undefined {
  return readStat(pid)[1];
}
