import { readStat } from '../../../platform/embedded/processTable.js';

/** The unit of CPU times in /proc on all Linux builds. */
const TICKS_A_SECOND = 100;
/** Positions among the fields that `readStat` returns (proc(5)): utime, stime; cutime, cstime. */
const OWN_TIMES = [11, 12];
const TIMES_OF_CHILDREN = [13, 14];

/** CPU seconds in two fields of a process's /proc/PID/stat; 0: there is none, or they cannot be read. */
function readSeconds(pid: number | undefined, fields: readonly number[]): number {
  const stat = pid === undefined ? undefined : readStat(pid);
  return stat ? fields.reduce((sum, field) => sum + Number(stat[field]), 0) / TICKS_A_SECOND : 0;
}

/** CPU seconds of all threads of a process; 0: there is none, or they cannot be read. */
export function readCpuSeconds(pid: number | undefined): number {
  return readSeconds(pid, OWN_TIMES);
}

/** CPU seconds of the children of a process that have ended; 0 where they cannot be read. */
export function readEndedChildrenSeconds(pid: number | undefined): number {
  return readSeconds(pid, TIMES_OF_CHILDREN);
}
