/**
 * What the outside may know of the workflows: their names, ids and inputs. Inputs are ids; everything else is read
 * from the database by the activities.
 */

/** All workflows and the activities that only need the database. */
export const TASK_QUEUE_CORE = 'trueup-core';

/**
 * Where the messages to webhook endpoints are sent from: receivers are slow as they like, and what they take up is taken
 * from no other work. Beside another task queue than the product's own it is another one too.
 */
export function webhookTaskQueue(taskQueue: string): string {
  return taskQueue === TASK_QUEUE_CORE ? 'trueup-webhooks' : `${taskQueue}-webhooks`;
}

/** Where invoices are read: each takes a core for a while, so that few are read at once. */
export function extractionTaskQueue(taskQueue: string): string {
  return taskQueue === TASK_QUEUE_CORE ? 'trueup-ocr' : `${taskQueue}-ocr`;
}

export interface GapRunInput {
  orgId: string;
  runId: string;
  /** First unit that is left, when a long run goes on in a new history. */
  fromUnit?: number;
  /** The same of the accounts that it explains. */
  fromAccount?: number;
}

export interface BillingImportInput {
  orgId: string;
  importId: string;
}

/** Of every other run. */
export interface RunInput {
  orgId: string;
  runId: string;
}

/** What a schedule knows: whose bill it is time to ask for. */
export interface ScheduledSyncInput {
  orgId: string;
  connectionId: string;
}

export interface WebhookDeliveryInput {
  orgId: string;
  endpointId: string;
}

export interface ClaimInput {
  orgId: string;
  claimId: string;
  /** After so many events it goes on in a new history; where absent, when the engine says so. */
  eventsMax?: number;
}

export interface WeightRecomputeInput {
  orgId: string;
  /** How long no outcome has come before they are learned from; the product's own where absent. */
  quietMs?: number;
}

/** Those of runs are in domain/runs/runKinds.ts. */
export const WORKFLOW_NAMES = {
  scheduledSync: 'scheduledSync',
  retention: 'retention',
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

/** Word to it that there is another outcome. */
export const POKE_SIGNAL = 'poke';

/** Outcomes come in batches, as a provider answers: one recompute for all of them. */
export const WEIGHTS_QUIET_MS = 60_000;

/** Word to the workflow of an endpoint that something may be due, and to that of a claim that its row has changed. */
export const WAKE_SIGNAL = 'wake';

/** What the ids of schedules of connections begin with. */
export const SYNC_SCHEDULE_PREFIX = 'sync:';

/** `sync:<organization>:<connection>`: the schedule, and what the ids of its workflows begin with. */
export function syncScheduleId(input: ScheduledSyncInput): string {
  return `${SYNC_SCHEDULE_PREFIX}${input.orgId}:${input.connectionId}`;
}

/**
 * `retention:daily`, the schedule of the whole installation, and what the ids of its workflows begin with. Another task
 * queue than the product's own has one of its own.
 */
export function retentionScheduleId(taskQueue: string): string {
  return taskQueue === TASK_QUEUE_CORE ? 'retention:daily' : `retention:daily:${taskQueue}`;
}

/** Longest life of a one-shot workflow. */
export const ONE_SHOT_TIMEOUT = '24 hours';
