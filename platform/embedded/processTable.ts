import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Whether a process with this id exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function isZombie(pid: number): boolean {
  return readStat(pid)?.[0] === 'Z';
}

/** Fields of /proc/<pid>/stat from the state on; undefined: there is no /proc. */
export function readStat(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

/** Position of `starttime` among the fields that `readStat` returns (proc(5): field 22, the state being field 3). */
const START_TIME_FIELD = 19;

/**
 * The start time as the system writes it, which distinguishes a process from a later one with the same id. undefined:
 * no such process.
 */
export function startMark(pid: number): string | undefined {
  return readStat(pid)?.[START_TIME_FIELD] ?? (ps(pid, 'lstart=') || undefined);
}

/** Position of the parent's id among the same fields (field 4). */
const PARENT_FIELD = 1;

/** The parent process, or the one that adopted it; undefined: no such process. */
export function parentOf(pid: number): number | undefined {
  const field = readStat(pid)?.[PARENT_FIELD] ?? ps(pid, 'ppid=');
  return field === '' ? undefined : Number(field);
}

/** The command line of a process; '' without one. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return ps(pid, 'command=');
  }
}

function ps(pid: number, column: string): string {
  if (process.platform === 'linux') return '';
  return spawnSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim() ?? '';
}

/** Waits until a process, child or not, has ended; false: it still exists after `limitMs`. */
export async function waitUntilGone(pid: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (isAlive(pid)) {
    if (performance.now() > deadline) return false;
    await sleep(10);
  }
  return true;
}
