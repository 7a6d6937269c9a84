/**
 * What the outside may know of the workflows: their names, ids and inputs. Inputs are ids; everything else is read
 * from the database by the activities.
 */

/** All workflows and the activities that only need the database. */
export const TASK_QUEUE_CORE = 'trueup-core';

export interface GapRunInput {
  orgId: string;
  runId: string;
  /** First unit that is left, when a long run goes on in a new history. */
  fromUnit?: number;
}

export interface BillingImportInput {
  orgId: string;
  importId: string;
}

export const WORKFLOW_NAMES = { gapRun: 'gapRun', billingImport: 'billingImport' } as const;

/** `gap:<organization>:<run>`: a second start is the same start. */
export function gapRunWorkflowId(input: { orgId: string; runId: string }): string {
  return `gap:${input.orgId}:${input.runId}`;
}

export function billingImportWorkflowId(input: BillingImportInput): string {
  return `import:${input.orgId}:${input.importId}`;
}

/** Longest life of a one-shot workflow. */
export const ONE_SHOT_TIMEOUT = '24 hours';
