import {
  type Connection,
  isGrpcServiceError,
  ServiceError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { DomainError } from '../domain/errors.js';

/** Longest wait for an answer of the engine. */
const RPC_DEADLINE_MS = 5_000;
/** After so many calls without an answer the engine is left alone for a moment. */
const BREAKER_FAILURES = 3;
const BREAKER_OPEN_MS = 5_000;
const RETRY_AFTER_SECONDS = 5;

/** gRPC codes of an engine that is away, too slow or overloaded; everything else would fail again. */
const TRANSIENT_GRPC: ReadonlySet<number> = new Set([1, 4, 8, 10, 13, 14]);

export function deadlineIn(milliseconds: number): Date {
  return new Date(Date.now() + milliseconds);
}

/**
 * The calls of a process to the engine: each has a deadline, and after repeated silence the engine is answered for over a
 * few seconds, so that nothing piles up behind it.
 */
export class EngineCalls {
  readonly #connection: Connection;
  readonly #nowMs: () => number;
  #failures = 0;
  #openUntilMs = 0;

  constructor(connection: Connection, nowMs: () => number) {
    this.#connection = connection;
    this.#nowMs = nowMs;
  }

  /** Whether the engine was silent so often that nothing is asked of it for now. */
  get isPaused(): boolean {
    return this.#nowMs() < this.#openUntilMs;
  }

  /** Error workflow_engine_unavailable, and whatever else `work` throws. */
  async call<T>(work: () => Promise<T>): Promise<T> {
    if (this.isPaused) throw unavailable();
    try {
      const result = await this.#connection.withDeadline(deadlineIn(RPC_DEADLINE_MS), work);
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

/** The client wraps what gRPC says; a connection that was never made says it itself. */
function isTransient(error: unknown): boolean {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return true;
  const cause = error instanceof ServiceError ? error.cause : error;
  if (isGrpcServiceError(cause)) return TRANSIENT_GRPC.has(cause.code);
  return error instanceof Error && error.message === 'Failed to connect before the deadline';
}
