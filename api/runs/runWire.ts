import { z } from 'zod';
import { isoFromMicros, isoOrNull } from '../../domain/period.js';
import {
  percentDone,
  RUN_STATUSES,
  RUN_TERMINAL_STATUSES,
  type RunStatus,
} from '../../domain/runs/runKinds.js';
import type { EndpointResponse, ResponseDoc } from '../endpoint.js';

/** Seconds between two polls of a client. */
const RUN_RETRY_AFTER_SECONDS = 2;

export const runStatusSchema = z.enum(RUN_STATUSES);

/** Progress of a run: units of its kind, and whole percent. */
export const progressSchema = z.strictObject({
  stage: z.string().meta({ description: 'What it is doing; the status once that is final' }),
  done: z.int().min(0),
  total: z.int().min(0),
  percent: z
    .int()
    .min(0)
    .max(100)
    .meta({ description: '100 only once it has succeeded, or succeeded in part' }),
});

/** Why a run ended without its complete result. */
export const runErrorSchema = z.strictObject({ code: z.string(), message: z.string() }).nullable();

export function presentProgress(run: {
  status: RunStatus;
  stage: string;
  done: number;
  total: number;
}): z.output<typeof progressSchema> {
  return {
    stage: RUN_TERMINAL_STATUSES.has(run.status) ? run.status : run.stage,
    done: run.done,
    total: run.total,
    percent: percentDone(run.done, run.total, run.status),
  };
}

export function presentRunError(
  code: string | null,
  message: string | null,
): z.output<typeof runErrorSchema> {
  return code === null ? null : { code, message: message ?? code };
}

/** Last fields of every run's answer; `existing` documents when an existing run is returned. */
export function runEndFields(existing: string) {
  return {
    error: runErrorSchema,
    existing: z.boolean().optional().meta({ description: existing }),
    created_at: z.string(),
    started_at: z.string().nullable(),
    finished_at: z.string().nullable(),
    status_url: z.string(),
  };
}

export interface EndingRun {
  status: RunStatus;
  errorCode: string | null;
  errorMessage: string | null;
  createdAtMicros: bigint;
  startedAtMicros: bigint | null;
  finishedAtMicros: bigint | null;
}

/** The fields of `runEndFields`; `existing` is added by `acceptedRun`. */
export function presentRunEnd(
  run: EndingRun,
  statusUrl: string,
): z.output<z.ZodObject<ReturnType<typeof runEndFields>>> {
  return {
    error: presentRunError(RUN_TERMINAL_STATUSES.has(run.status) ? run.errorCode : null, run.errorMessage),
    created_at: isoFromMicros(run.createdAtMicros),
    started_at: isoOrNull(run.startedAtMicros),
    finished_at: isoOrNull(run.finishedAtMicros),
    status_url: statusUrl,
  };
}

/** The documented answer of an endpoint that starts or stops a run. */
export function acceptedResponse(schema: z.ZodType): Record<number, ResponseDoc> {
  return {
    202: {
      description: 'Taken; poll status_url',
      schema,
      headers: { Location: 'Where to ask for its state', 'Retry-After': 'Seconds' },
    },
  };
}

/** 202 with the presented run and the address to poll; `existing`: the run was not started by this request. */
export function acceptedRun(presented: { status_url: string }, existing: boolean): EndpointResponse {
  return {
    status: 202,
    headers: { Location: presented.status_url, 'Retry-After': String(RUN_RETRY_AFTER_SECONDS) },
    body: existing ? { ...presented, existing } : presented,
  };
}
