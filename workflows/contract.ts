/**
 * The public interface of the workflows: their names, ids and inputs. Inputs are ids; activities read everything else
 * from the database.
 */
import type { Cadence } from '../domain/reports/schedule.js';

/** All workflows, and the activities that need only the database. */
export const TASK_QUEUE_CORE = 'trueup-core';

/**
 * The task queue for messages to webhook endpoints: receivers may be slow and must not take slots from other work. It
 * derives from the task queue, so that tests have separate ones.
 */
export function webhookTaskQueue(taskQueue: string): string {
  return taskQueue === TASK_QUEUE_CORE ? 'trueup-webhooks' : `${taskQueue}-webhooks`;
}

/** The task queue for reading invoices: each takes a core for a while, so few are read at once. */
export function extractionTaskQueue(taskQueue: string): string {
  return taskQueue === TASK_QUEUE_CORE ? 'trueup-ocr' : `${taskQueue}-ocr`;
}

export interface GapRunInput {
  orgId: string;
  runId: string;
  /** The first remaining unit, when a long run continues in a new history. */
  fromUnit?: number;
  /** The first remaining account to explain, in the same case. */
  fromAccount?: number;
}

export interface BillingImportInput {
  orgId: string;
  importId: string;
}

/** Input of every other run. */
export interface RunInput {
  orgId: string;
  runId: string;
}

/** Input of a schedule: the connection whose bill is due. */
export interface ScheduledSyncInput {
  orgId: string;
  connectionId: string;
}

/** Input of a schedule of reports. */
export interface ScheduledReportInput {
  orgId: string;
  cadence: Cadence;
}

export interface WebhookDeliveryInput {
  orgId: string;
  endpointId: string;
}

export interface ClaimInput {
  orgId: string;
  claimId: string;
  /** Number of events after which it continues in a new history; absent: when Temporal suggests it. */
  eventsMax?: number;
}

export interface WeightRecomputeInput {
  orgId: string;
  /** Milliseconds without a new outcome before weights are computed; absent: the product's default. */
  quietMs?: number;
}

/** Names of the workflows; those of runs are in domain/runs/runKinds.ts. */
export const WORKFLOW_NAMES = {
  scheduledSync: 'scheduledSync',
  scheduledReport: 'scheduledReport',
  retention: 'retention',
  priceFeeds: 'priceFeeds',
  webhookDelivery: 'webhookDelivery',
  weightRecompute: 'weightRecompute',
  claimLifecycle: 'claimLifecycle',
} as const;

/** `webhook:<organization>:<endpoint>`: one workflow for each endpoint at a time. */
export function webhookDeliveryWorkflowId(input: WebhookDeliveryInput): string {
  return `webhook:${input.orgId}:${input.endpointId}`;
}

/** `claim:<organization>:<claim>`: one workflow for each claim at a time. */
export function claimWorkflowId({ orgId, claimId }: ClaimInput): string {
  return `claim:${orgId}:${claimId}`;
}

/** The update of a claim's workflow that carries a move out. */
export const MOVE_UPDATE = 'moveClaim';

/** `weights:<organization>`: one at a time. */
export function weightRecomputeWorkflowId({ orgId }: WeightRecomputeInput): string {
  return `weights:${orgId}`;
}

/** Signals that there is another outcome. */
export const POKE_SIGNAL = 'poke';

/** Outcomes come in batches, as a provider answers; one recomputation covers a batch. */
export const WEIGHTS_QUIET_MS = 60_000;

/** Signals an endpoint's workflow that a message may be due, and a claim's workflow that its row has changed. */
export const WAKE_SIGNAL = 'wake';

/** Prefix of the ids of connections' schedules. */
export const SYNC_SCHEDULE_PREFIX = 'sync:';

/** `sync:<organization>:<connection>`: the schedule's id, and the prefix of its workflows' ids. */
export function syncScheduleId(input: ScheduledSyncInput): string {
  return `${SYNC_SCHEDULE_PREFIX}${input.orgId}:${input.connectionId}`;
}

/** The prefix of the ids of schedules of reports. */
export const REPORT_SCHEDULE_PREFIX = 'report:';

/** `report:<organization>:<cadence>`: the schedule, and what the ids of its workflows begin with. */
export function reportScheduleId({ orgId, cadence }: ScheduledReportInput): string {
  return `${REPORT_SCHEDULE_PREFIX}${orgId}:${cadence}`;
}

/**
 * `retention:daily`: the id of the installation's schedule, and the prefix of its workflows' ids. Another task queue
 * than the product's has a separate schedule.
 */
export function retentionScheduleId(taskQueue: string): string {
  return taskQueue === TASK_QUEUE_CORE ? 'retention:daily' : `retention:daily:${taskQueue}`;
}

/** `prices:daily`: the schedule that reads the price feeds, named as that of the retention. */
export function priceFeedScheduleId(taskQueue: string): string {
  return taskQueue === TASK_QUEUE_CORE ? 'prices:daily' : `prices:daily:${taskQueue}`;
}

/** Longest life of a one-shot workflow. */
export const ONE_SHOT_TIMEOUT = '24 hours';
