import type { Orchestrator } from '../adapters/orchestrator.js';
import { failBillingSource } from '../db/billing/billingSources.js';
import type { OrgDb } from '../db/orgDb.js';
import type { OutboxKind } from '../db/runs/outbox.js';
import { endRun, RUN_KINDS, type RunKind } from '../db/runs/runStates.js';
import {
  billingImportWorkflowId,
  billingSyncWorkflowId,
  gapRunWorkflowId,
  repricingWorkflowId,
  savingsRunWorkflowId,
} from '../workflows/contract.js';

/** A run as the messages and the sweeper name it. */
export interface RunName {
  orgId: string;
  id: string;
}

/** What differs between the kinds of runs. */
interface RunHandling {
  workflowId(run: RunName): string;
  /** Starts its workflow; a second start is the same start. */
  start(orchestrator: Orchestrator, run: RunName): Promise<void>;
  /** Ends it, visibly; one that has ended stays as it is. */
  fail(orgDb: OrgDb, id: string, error: { code: string; message: string }): Promise<unknown>;
}

const inputOf = ({ orgId, id }: RunName) => ({ orgId, runId: id });
const importOf = ({ orgId, id }: RunName) => ({ orgId, importId: id });

export const RUN_HANDLING: Readonly<Record<RunKind, RunHandling>> = {
  gap_run: {
    workflowId: (run) => gapRunWorkflowId(inputOf(run)),
    start: (orchestrator, run) => orchestrator.startGapRun(inputOf(run)),
    fail: (orgDb, id, error) => endRun(orgDb, 'gap_run', id, { status: 'failed', error }),
  },
  billing_import: {
    workflowId: (run) => billingImportWorkflowId(importOf(run)),
    start: (orchestrator, run) => orchestrator.startBillingImport(importOf(run)),
    fail: failBillingSource,
  },
  billing_sync: {
    workflowId: (run) => billingSyncWorkflowId(inputOf(run)),
    start: (orchestrator, run) => orchestrator.startBillingSync(inputOf(run)),
    fail: (orgDb, id, error) => endRun(orgDb, 'billing_sync', id, { status: 'failed', error }),
  },
  reprice: {
    workflowId: (run) => repricingWorkflowId(inputOf(run)),
    start: (orchestrator, run) => orchestrator.startRepricing(inputOf(run)),
    fail: (orgDb, id, error) => endRun(orgDb, 'reprice', id, { status: 'failed', error }),
  },
  savings_run: {
    workflowId: (run) => savingsRunWorkflowId(inputOf(run)),
    start: (orchestrator, run) => orchestrator.startSavingsRun(inputOf(run)),
    fail: (orgDb, id, error) => endRun(orgDb, 'savings_run', id, { status: 'failed', error }),
  },
};

/** The message that starts a run of this kind. */
export function startMessage(kind: RunKind): OutboxKind {
  return `${kind}.start`;
}

/** The kind of run that a message starts; undefined for every other message. */
export function startedRun(message: OutboxKind): RunKind | undefined {
  return RUN_KINDS.find((kind) => startMessage(kind) === message);
}
