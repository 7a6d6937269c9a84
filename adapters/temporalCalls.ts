import {
  type Connection,
  isGrpcServiceError,
  ServiceError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { DomainError } from '../domain/errors.js';

/** Longest wait for an answer of Temporal, milliseconds. */
const RPC_DEADLINE_MS = 5_000;
/** Consecutive calls without an answer after which calls pause. */
const BREAKER_FAILURES = 3;
const BREAKER_OPEN_MS = 5_000;
const RETRY_AFTER_SECONDS = 5;

/** gRPC codes of a server that is unreachable, too slow or overloaded; all others would fail again. */
const TRANSIENT_GRPC: ReadonlySet<number> = new Set([1, 4, 8, 10, 13, 14]);

/**
 * Calls of a process to Temporal: each has a deadline, and after repeated timeouts calls fail immediately for a few
 * seconds, so that requests do not queue up.
 */
export class TemporalCalls {
  readonly #connection: Connection;
  readonly #nowMs: () => number;
  #underWay = 0;
  #failures = 0;
  #openUntilMs = 0;

  constructor(connection: Connection, nowMs: () => number) {
    this.#connection = connection;
    this.#nowMs = nowMs;
  }

  /** Whether calls pause after repeated timeouts. */
  get isPaused(): boolean {
    return this.#nowMs() < this.#openUntilMs;
  }

  /** Error: workflow_engine_unavailable, and the errors of `work`. */
  async call<T>(work: () => Promise<T>): Promise<T> {
    if (this.isPaused) throw unavailable();
    try {
      const result = await this.within(RPC_DEADLINE_MS, work);
      this.#failures = 0;
      return result;
    } catch (error) {
      if (!isTransient(error)) throw error;
      this.#failures += 1;
      if (this.#failures >= BREAKER_FAILURES) {
        this.#openUntilMs = this.#nowMs() + BREAKER_OPEN_MS;
        this.#failures = 0;
      }
      throw unavailable(error);
    }
  }

  /** Runs `work`, whose calls end after so many milliseconds. */
  async within<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await this.#connection.withDeadline(Date.now() + milliseconds, work);
    } finally {
      this.#underWay -= 1;
      // The client keeps deadlines in an AsyncLocalStorage, which slows the whole process down while it is in use.
      if (this.#underWay === 0) this.#connection.callContextStorage.disable();
    }
  }
}

function unavailable(cause?: unknown): DomainError {
  return new DomainError(
    'workflow_engine_unavailable',
    'The workflow engine does not answer. What was asked for waits and is done when it does.',
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      cause,
    },
  );
}

/** The client wraps gRPC errors, except those of a connection that was never established. */
function isTransient(error: unknown): boolean {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return true;
  const cause = error instanceof ServiceError ? error.cause : error;
  if (isGrpcServiceError(cause)) return TRANSIENT_GRPC.has(cause.code);
  return error instanceof Error && error.message === 'Failed to connect before the deadline';
}
