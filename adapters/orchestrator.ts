import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type ScheduleOptions,
  WithStartWorkflowOperation,
  type WorkflowClient,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { ClaimCommand, ClaimState } from '../domain/claims/lifecycle.js';
import { DomainError, type ErrorCode } from '../domain/errors.js';
import {
  describeRun,
  type RunKind,
  type RunName,
  runWorkflowId,
  runWorkflowInput,
} from '../domain/runs/runKinds.js';
import {
  type ClaimInput,
  claimWorkflowId,
  MOVE_UPDATE,
  ONE_SHOT_TIMEOUT,
  POKE_SIGNAL,
  priceFeedScheduleId,
  REPORT_SCHEDULE_PREFIX,
  retentionScheduleId,
  SYNC_SCHEDULE_PREFIX,
  TASK_QUEUE_CORE,
  WAKE_SIGNAL,
  type WebhookDeliveryInput,
  type WeightRecomputeInput,
  WORKFLOW_NAMES,
  webhookDeliveryWorkflowId,
  weightRecomputeWorkflowId,
} from '../workflows/contract.js';
import {
  priceFeedScheduleOptions,
  type ReportScheduleTimes,
  reportScheduleOptions,
  retentionScheduleOptions,
  type SyncSchedule,
  syncScheduleOptions,
} from './scheduleOptions.js';
import { TemporalCalls } from './temporalCalls.js';

interface OrchestratorOptions {
  address: string;
  namespace: string;
  /** Task queue of the workflows; differs from the product's only in tests. */
  taskQueue?: string;
  /** Milliseconds without a new outcome before weights are computed; absent: the product's default. */
  weightsQuietMs?: number;
  /** Monotonic clock, milliseconds; drives the circuit breaker. */
  nowMs(): number;
}

const HEALTH_DEADLINE_MS = 1_000;
const RPC_ATTEMPTS = 3;

export type WorkflowState = 'running' | 'closed' | 'unknown';

/** The product's interface to Temporal. */
export interface Orchestrator {
  /** Starts a run's workflow; a repeated start has no effect. Error: workflow_engine_unavailable. */
  startRun(kind: RunKind, run: RunName): Promise<void>;
  /**
   * Asks a run's workflow to stop; does nothing for one that is over or unknown. Error: workflow_engine_unavailable.
   */
  cancelRun(kind: RunKind, run: RunName): Promise<void>;
  /**
   * Signals a webhook endpoint's workflow that a message may be due, and starts the workflow if necessary. Error:
   * workflow_engine_unavailable.
   */
  wakeWebhookDelivery(input: WebhookDeliveryInput): Promise<void>;
  /** Makes a claim's workflow carry out a move; starts the workflow if necessary. Does not throw. */
  moveClaim(input: ClaimInput, command: ClaimCommand): Promise<MoveAnswer>;
  /**
   * Signals a claim's workflow that its row has changed, and starts the workflow if necessary. Error:
   * workflow_engine_unavailable.
   */
  wakeClaim(input: ClaimInput): Promise<void>;
  /**
   * The ids of the running workflows of claims; one that has just started may be missing. Error:
   * workflow_engine_unavailable.
   */
  listClaimWorkflows(): Promise<Set<string>>;
  /**
   * Signals a new outcome to the workflow that computes an organization's weights, and starts the workflow if
   * necessary. Error: workflow_engine_unavailable.
   */
  pokeWeightRecompute(input: WeightRecomputeInput): Promise<void>;
  /** Creates or updates the schedule of a connection. Error: workflow_engine_unavailable. */
  putSyncSchedule(schedule: SyncSchedule): Promise<void>;
  /** Deletes the schedule with this id; does nothing for an unknown one. Error: workflow_engine_unavailable. */
  deleteSchedule(scheduleId: string): Promise<void>;
  /** Creates the schedule of the retention, or updates it to this version's. Error: workflow_engine_unavailable. */
  putRetentionSchedule(): Promise<void>;
  /** Whether the schedule exists. Error: workflow_engine_unavailable. */
  hasRetentionSchedule(): Promise<boolean>;
  /** Creates or updates the schedule that reads the price feeds. Error: workflow_engine_unavailable. */
  putPriceFeedSchedule(): Promise<void>;
  /** Deletes it; does nothing where there is none. Error: workflow_engine_unavailable. */
  deletePriceFeedSchedule(): Promise<void>;
  /** Whether it exists. Error: workflow_engine_unavailable. */
  hasPriceFeedSchedule(): Promise<boolean>;
  /** All schedules of connections, by id. Error: workflow_engine_unavailable. */
  listSyncSchedules(): Promise<Map<string, { paused: boolean }>>;
  /** Makes the schedule of an organization's reports, or changes it to this. Error: workflow_engine_unavailable. */
  putReportSchedule(schedule: ReportScheduleTimes): Promise<void>;
  /** The ids of all schedules of reports. Error: workflow_engine_unavailable. */
  listReportSchedules(): Promise<Set<string>>;
  /** Whether a workflow is running. Error: workflow_engine_unavailable. */
  describe(workflowId: string): Promise<WorkflowState>;
  status(): Promise<'up' | 'degraded'>;
  close(): Promise<void>;
}

/**
 * The only Temporal client. It connects at the first use, sets a deadline for every call, and after repeated timeouts
 * fails calls immediately for a few seconds, so that requests do not queue up.
 */
export class TemporalOrchestrator implements Orchestrator {
  readonly #connection: Connection;
  readonly #client: Client;
  readonly #taskQueue: string;
  readonly #weightsQuietMs: number | undefined;
  readonly #calls: TemporalCalls;

  constructor(options: OrchestratorOptions) {
    this.#taskQueue = options.taskQueue ?? TASK_QUEUE_CORE;
    this.#weightsQuietMs = options.weightsQuietMs;
    this.#connection = Connection.lazy({
      address: options.address,
      interceptors: [makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: RPC_ATTEMPTS }))],
    });
    this.#client = new Client({ connection: this.#connection, namespace: options.namespace });
    this.#calls = new TemporalCalls(this.#connection, options.nowMs);
  }

  async startRun(kind: RunKind, run: RunName): Promise<void> {
    await this.#call(async () => {
      try {
        await this.#client.workflow.start(describeRun(kind).workflow.type, {
          workflowId: runWorkflowId(kind, run),
          taskQueue: this.#taskQueue,
          args: [runWorkflowInput(kind, run)],
          workflowExecutionTimeout: ONE_SHOT_TIMEOUT,
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowIdConflictPolicy: 'FAIL',
        });
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      }
    });
  }

  async cancelRun(kind: RunKind, run: RunName): Promise<void> {
    await this.#call(async () => {
      try {
        await this.#client.workflow.getHandle(runWorkflowId(kind, run)).cancel();
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    });
  }

  async putSyncSchedule(schedule: SyncSchedule): Promise<void> {
    await this.#put(syncScheduleOptions(schedule, this.#taskQueue));
  }

  /** Creates or updates a schedule; an operator's pause stays unless the options set it. */
  async #put(options: ScheduleOptions): Promise<void> {
    const { scheduleId, spec, policies, action, state } = options;
    await this.#call(async () => {
      try {
        await this.#client.schedule.create(options);
      } catch (error) {
        if (!(error instanceof ScheduleAlreadyRunning)) throw error;
        await this.#client.schedule.getHandle(scheduleId).update((current) => ({
          ...current,
          spec,
          policies: { ...policies },
          action,
          state: { ...current.state, ...state },
        }));
      }
    });
  }

  async deleteSchedule(scheduleId: string): Promise<void> {
    await this.#call(async () => {
      try {
        await this.#client.schedule.getHandle(scheduleId).delete();
      } catch (error) {
        if (!(error instanceof ScheduleNotFoundError)) throw error;
      }
    });
  }

  async listSyncSchedules(): Promise<Map<string, { paused: boolean }>> {
    return this.#call(async () => {
      const found = new Map<string, { paused: boolean }>();
      for await (const { scheduleId, memo, state } of this.#client.schedule.list()) {
        // Other installations on the same server have other task queues; their schedules stay.
        if (!scheduleId.startsWith(SYNC_SCHEDULE_PREFIX) || memo?.taskQueue !== this.#taskQueue) continue;
        found.set(scheduleId, { paused: state.paused });
      }
      return found;
    });
  }

  async putReportSchedule(schedule: ReportScheduleTimes): Promise<void> {
    await this.#put(reportScheduleOptions(schedule, this.#taskQueue));
  }

  async listReportSchedules(): Promise<Set<string>> {
    return this.#call(async () => {
      const found = new Set<string>();
      for await (const { scheduleId, memo } of this.#client.schedule.list())
        if (scheduleId.startsWith(REPORT_SCHEDULE_PREFIX) && memo?.taskQueue === this.#taskQueue)
          found.add(scheduleId);
      return found;
    });
  }

  async putRetentionSchedule(): Promise<void> {
    await this.#put(retentionScheduleOptions(this.#taskQueue));
  }

  hasRetentionSchedule(): Promise<boolean> {
    return this.#hasSchedule(retentionScheduleId(this.#taskQueue));
  }

  async putPriceFeedSchedule(): Promise<void> {
    await this.#put(priceFeedScheduleOptions(this.#taskQueue));
  }

  async deletePriceFeedSchedule(): Promise<void> {
    await this.deleteSchedule(priceFeedScheduleId(this.#taskQueue));
  }

  hasPriceFeedSchedule(): Promise<boolean> {
    return this.#hasSchedule(priceFeedScheduleId(this.#taskQueue));
  }

  #hasSchedule(scheduleId: string): Promise<boolean> {
    return this.#call(async () => {
      try {
        await this.#client.schedule.getHandle(scheduleId).describe();
        return true;
      } catch (error) {
        if (error instanceof ScheduleNotFoundError) return false;
        throw error;
      }
    });
  }

  async wakeWebhookDelivery(input: WebhookDeliveryInput): Promise<void> {
    await this.#call(async () => {
      // No time limit: it runs while a delivery is pending.
      await this.#client.workflow.signalWithStart(WORKFLOW_NAMES.webhookDelivery, {
        workflowId: webhookDeliveryWorkflowId(input),
        taskQueue: this.#taskQueue,
        args: [input],
        signal: WAKE_SIGNAL,
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      });
    });
  }

  moveClaim(input: ClaimInput, command: ClaimCommand): Promise<MoveAnswer> {
    return askForMove(this.#calls, this.#client.workflow, { input, command, taskQueue: this.#taskQueue });
  }

  async wakeClaim(input: ClaimInput): Promise<void> {
    await this.#call(async () => {
      // No time limit: it lives for as long as the claim.
      await this.#client.workflow.signalWithStart(WORKFLOW_NAMES.claimLifecycle, {
        workflowId: claimWorkflowId(input),
        taskQueue: this.#taskQueue,
        args: [input],
        signal: WAKE_SIGNAL,
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      });
    });
  }

  async listClaimWorkflows(): Promise<Set<string>> {
    return this.#call(async () => {
      const found = new Set<string>();
      const query = `WorkflowType = '${WORKFLOW_NAMES.claimLifecycle}' and ExecutionStatus = 'Running' and TaskQueue = '${this.#taskQueue}'`;
      for await (const { workflowId } of this.#client.workflow.list({ query })) found.add(workflowId);
      return found;
    });
  }

  async pokeWeightRecompute({ orgId }: WeightRecomputeInput): Promise<void> {
    const input = { orgId, ...(this.#weightsQuietMs === undefined ? {} : { quietMs: this.#weightsQuietMs }) };
    await this.#call(async () => {
      // No time limit: it runs until the weights are stored.
      await this.#client.workflow.signalWithStart(WORKFLOW_NAMES.weightRecompute, {
        workflowId: weightRecomputeWorkflowId(input),
        taskQueue: this.#taskQueue,
        args: [input],
        signal: POKE_SIGNAL,
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      });
    });
  }

  async describe(workflowId: string): Promise<WorkflowState> {
    return this.#call(async () => {
      try {
        const { status } = await this.#client.workflow.getHandle(workflowId).describe();
        return status.name === 'RUNNING' ? 'running' : 'closed';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return 'unknown';
        throw error;
      }
    });
  }

  async status(): Promise<'up' | 'degraded'> {
    try {
      await this.#calls.within(HEALTH_DEADLINE_MS, () => this.#connection.workflowService.getSystemInfo({}));
      return 'up';
    } catch {
      return 'degraded';
    }
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  #call<T>(work: () => Promise<T>): Promise<T> {
    return this.#calls.call(work);
  }
}

/**
 * Result of a move of a claim. `refused`: a rule refused it, and the row is unchanged. `unsent`: calls to Temporal
 * pause, so it was not sent. `unknown`: Temporal did not answer; only the row shows the result.
 */
export type MoveAnswer =
  | { kind: 'moved'; state: ClaimState }
  | { kind: 'refused'; error: DomainError }
  | { kind: 'unsent' }
  | { kind: 'unknown'; cause: unknown };

interface MoveRequest {
  input: ClaimInput;
  command: ClaimCommand;
  taskQueue: string;
}

/** Makes a claim's workflow carry out a move; starts the workflow if necessary. Does not throw. */
async function askForMove(
  calls: TemporalCalls,
  client: WorkflowClient,
  request: MoveRequest,
): Promise<MoveAnswer> {
  if (calls.isPaused) return { kind: 'unsent' };
  try {
    return await calls.call(() => update(client, request));
  } catch (cause) {
    return { kind: 'unknown', cause };
  }
}

async function update(
  client: WorkflowClient,
  { input, command, taskQueue }: MoveRequest,
): Promise<MoveAnswer> {
  try {
    const state = await client.executeUpdateWithStart<Workflow, ClaimState, [ClaimCommand]>(MOVE_UPDATE, {
      // No time limit: it lives for as long as the claim.
      startWorkflowOperation: new WithStartWorkflowOperation(WORKFLOW_NAMES.claimLifecycle, {
        workflowId: claimWorkflowId(input),
        taskQueue,
        args: [input],
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      }),
      // Includes this attempt's deadline: a later attempt of the same command must not get the result of this one,
      // which may have come too late.
      updateId: `${command.commandId}:${command.notAfterMicros}`,
      args: [command],
    });
    return { kind: 'moved', state };
  } catch (error) {
    const refusal = error instanceof WorkflowUpdateFailedError && findRefusal(error.cause);
    if (refusal) return { kind: 'refused', error: refusal };
    throw error;
  }
}

/** Errors by which rules refuse a move; after any other failure only the row shows the result. */
const REFUSALS: readonly ErrorCode[] = [
  'not_found',
  'illegal_transition',
  'claim_conflict',
  'invalid_body',
  'command_too_late',
];

function findRefusal(cause: unknown): DomainError | undefined {
  if (!(cause instanceof ApplicationFailure)) return undefined;
  const code = REFUSALS.find((known) => known === cause.type);
  return code && new DomainError(code, cause.message);
}
