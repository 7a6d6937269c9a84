/** One event of a browser's trace; times in microseconds. */
export interface TraceEvent {
  name: string;
  cat: string;
  ph: string;
  ts: number;
  dur?: number;
  tid: number;
  args?: { data?: { type?: string } };
}

const SCRIPT_AND_LAYOUT = new Set([
  'FunctionCall',
  'EventDispatch',
  'FireAnimationFrame',
  'TimerFire',
  'UpdateLayoutTree',
  'Layout',
]);

/**
 * The longest task of the page's main thread, and the most script and layout between two frames, both in milliseconds.
 * Events within events count once.
 */
export function frameTimes(events: readonly TraceEvent[]): {
  longestTaskMs: number;
  longestFrameMs: number;
  frames: number;
} {
  const main = mainThread(events);
  const own = events.filter((event) => event.tid === main).sort((a, b) => a.ts - b.ts);
  const tasks = own.filter((event) => event.name === 'RunTask').map((event) => event.dur ?? 0);
  const starts = own.filter((event) => event.name === 'BeginMainThreadFrame').map((event) => event.ts);
  const work = outermost(own.filter((event) => SCRIPT_AND_LAYOUT.has(event.name) && event.dur !== undefined));
  const frames = starts.map((from, at) => {
    const to = starts[at + 1] ?? Number.POSITIVE_INFINITY;
    return work.filter(({ ts }) => ts >= from && ts < to).reduce((sum, { dur = 0 }) => sum + dur, 0);
  });
  return {
    longestTaskMs: Math.max(0, ...tasks) / 1_000,
    longestFrameMs: Math.max(0, ...frames) / 1_000,
    frames: frames.length,
  };
}

/** The thread that begins main frames. */
function mainThread(events: readonly TraceEvent[]): number | undefined {
  const counts = new Map<number, number>();
  for (const { name, tid } of events) {
    if (name === 'BeginMainThreadFrame') counts.set(tid, (counts.get(tid) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

function outermost(events: readonly TraceEvent[]): TraceEvent[] {
  let end = Number.NEGATIVE_INFINITY;
  return events.filter((event) => {
    if (event.ts < end) return false;
    end = event.ts + (event.dur ?? 0);
    return true;
  });
}
