import { z } from 'zod';
import { isoFromMicros } from '../domain/period.js';
import { percentDone, RUN_STATUSES, RUN_TERMINAL_STATUSES, type RunStatus } from '../domain/runs.js';

/** How long a client should wait before it asks again. */
export const RUN_RETRY_AFTER_SECONDS = 2;

export const runStatusSchema = z.enum(RUN_STATUSES);

/** How far a run is: units of its own kind, and whole percent. */
export const progressSchema = z.strictObject({
  stage: z.string(),
  done: z.int().min(0),
  total: z.int().min(0),
  percent: z.int().min(0).max(100),
});

/** Why a run ended without its whole result. */
export const runErrorSchema = z.strictObject({ code: z.string(), message: z.string() }).nullable();

export function presentProgress(run: {
  status: RunStatus;
  stage: string;
  done: number;
  total: number;
}): z.output<typeof progressSchema> {
  return {
    stage: run.stage,
    done: run.done,
    total: run.total,
    percent: percentDone(run.done, run.total, RUN_TERMINAL_STATUSES.has(run.status)),
  };
}

export function presentRunError(
  code: string | null,
  message: string | null,
): z.output<typeof runErrorSchema> {
  return code === null ? null : { code, message: message ?? code };
}

export function isoOrNull(micros: bigint | null): string | null {
  return micros === null ? null : isoFromMicros(micros);
}
