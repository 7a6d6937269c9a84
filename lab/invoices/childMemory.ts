import { readdirSync, readFileSync } from 'node:fs';

const POLL_MS = 25;

/** Watches the children of a process; `stop` returns the peak resident memory (VmHWM) of one child, in bytes. */
export function watchChildMemory(parent: number = process.pid): { stop: () => number } {
  let peak = 0;
  const look = () => {
    for (const pid of descendants(parent)) peak = Math.max(peak, peakOf(pid, parent));
  };
  const timer = setInterval(look, POLL_MS);
  return {
    stop() {
      clearInterval(timer);
      return peak;
    },
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
}

function descendants(pid: number): number[] {
  let tasks: string[] = [];
  try {
    tasks = readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
  const children = tasks.flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(' '));
  return children
    .filter((text) => text !== '')
    .map(Number)
    .flatMap((child) => [child, ...descendants(child)]);
}

/** A forked process has the memory of its parent until it starts its own program. */
function peakOf(pid: number, parent: number): number {
  if (read(`/proc/${pid}/cmdline`) === read(`/proc/${parent}/cmdline`)) return 0;
  return Number(/VmHWM:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) * 1_024;
}
