import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import type { RunStatus } from '../runs/runs.js';
import { messageBody } from './message.js';

/** A gap run that has ended, as far as receivers are told of it. */
export interface EndedGapRun {
  /** uuid */
  id: string;
  status: Exclude<RunStatus, 'queued' | 'running'>;
  /** `7d`, `30d` or `90d`. */
  period: string;
  /** Null: all that have bills. */
  provider: string | null;
  /** Lines that it found, and how many of them are flagged; null where it ended without a result. */
  total: number | null;
  flagged: number | null;
  finishedAtMicros: bigint;
}

/**
 * The webhook message of a gap run: what it found is asked for by its id. The message has the run's own id, so one run is
 * never two messages.
 */
export function gapRunMessage(run: EndedGapRun): { id: string; type: 'gap_run.completed'; body: string } {
  const finishedAt = isoFromMicros(run.finishedAtMicros);
  return {
    id: run.id,
    type: 'gap_run.completed',
    body: messageBody('gap_run.completed', finishedAt, {
      run_id: publicId('run', run.id),
      status: run.status,
      period: run.period,
      provider: run.provider,
      total: run.total,
      flagged: run.flagged,
      finished_at: finishedAt,
    }),
  };
}
