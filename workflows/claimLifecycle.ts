import type { Duration } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  defineUpdate,
  isCancellation,
  log,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import type { ClaimCommand, ClaimState } from '../domain/claims/lifecycle.js';
import { canMove, isTerminal } from '../domain/claims/lifecycle.js';
import { PROFILES } from './activityOptions.js';
import { type ClaimInput, MOVE_UPDATE, WAKE_SIGNAL } from './contract.js';

const { readClaim, noteClaimDue } = proxyActivities<Activities>(PROFILES.database);
// Within the task that brings the move: as a task of its own it takes a second one, and there are half as many moves a second
// (docs/benchmarks.md). What is lost with a worker is found by its command again.
const { recordClaimMove } = proxyLocalActivities<Activities>(PROFILES.moving);

/** Pause after an effect that could not be had, and after a notice that is not due by the database's clock. */
const PAUSE = '1 minute';
const MICROS_PER_MILLI = 1_000;

export const moveClaim = defineUpdate<ClaimState, [ClaimCommand]>(MOVE_UPDATE);
export const wakeClaim = defineSignal(WAKE_SIGNAL);

/**
 * A claim from its making to its end: takes its moves one after the other, and sleeps until the next notice is due. The
 * row is the record and is read at every start, so one that the engine has lost begins again where it was. It ends with
 * the claim, or when the claim is gone.
 */
export async function claimLifecycle(input: ClaimInput): Promise<void> {
  const claim = new Claim(input);
  setHandler(moveClaim, (command) => claim.move(command), {
    validator: (command) => claim.assertPossible(command),
  });
  setHandler(wakeClaim, () => claim.reread());
  try {
    while (!(await claim.isOver())) {
      if (claim.isLong()) await goOnAnew(input);
      await claim.waitAndRemind();
    }
  } catch (error) {
    // Whoever cancels it loses no move that is under way: the next call of the claim begins another one.
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
    throw error;
  }
  await condition(allHandlersFinished);
}

/** In a new history; a step after the last move has been answered, since an answer in the same step can be lost. */
async function goOnAnew(input: ClaimInput): Promise<void> {
  await condition(allHandlersFinished);
  await sleep(1);
  if (allHandlersFinished()) await continueAsNew<typeof claimLifecycle>(input);
}

/** What the workflow knows of its claim. */
class Claim {
  readonly #input: ClaimInput;
  /** Undefined until it is known, null where there is no such claim any more. */
  #state: ClaimState | null | undefined;
  #isStale = true;
  #changes = 0;
  #moves = 0;
  #lastMove: Promise<unknown> = Promise.resolve();

  constructor(input: ClaimInput) {
    this.#input = input;
  }

  /** Has the row read before anything else is decided by it. */
  reread(): void {
    this.#isStale = true;
  }

  /**
   * Refuses at once, and without a trace in the history, what is surely illegal: of the claim as the command saw it and
   * as it is known here. While a move is under way nothing is sure.
   */
  assertPossible(command: ClaimCommand): void {
    const state = this.#state;
    if (this.#moves > 0 || this.#isStale || !state || state.version !== command.version) return;
    if (!canMove(state.status, command.to))
      throw ApplicationFailure.nonRetryable(
        `the claim is ${state.status} and cannot become ${command.to}`,
        'illegal_transition',
      );
  }

  /** Carries moves out one after the other, in the order in which they came. */
  async move(command: ClaimCommand): Promise<ClaimState> {
    this.#moves += 1;
    const moved = this.#lastMove.then(() => this.#record(command));
    this.#lastMove = moved.catch(() => undefined);
    try {
      return await moved;
    } finally {
      this.#moves -= 1;
    }
  }

  async #record(command: ClaimCommand): Promise<ClaimState> {
    try {
      const { orgId } = this.#input;
      const state = await CancellationScope.nonCancellable(() => recordClaimMove({ orgId, command }));
      this.#adopt(state);
      return state;
    } catch (error) {
      // Whatever was refused, and whatever became of an effect that did not answer, is in the row.
      this.reread();
      throw refusalOf(error);
    }
  }

  /** Reads the row where that is due; true when nothing can follow any more. */
  async isOver(): Promise<boolean> {
    while (this.#isStale) {
      this.#isStale = false;
      const { orgId, claimId } = this.#input;
      await this.#patiently(async () => this.#adopt(await readClaim({ orgId, claimId })));
    }
    return this.#state === null || (this.#state !== undefined && isTerminal(this.#state.status));
  }

  isLong(): boolean {
    const { eventsMax } = this.#input;
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    return continueAsNewSuggested || (eventsMax !== undefined && historyLength > eventsMax);
  }

  /** Sleeps until something changes, or until the next notice is due, and has it given then. */
  async waitAndRemind(): Promise<void> {
    const dueMicros = this.#state?.nextActionAtMicros ?? null;
    if (dueMicros === null) return this.#change();
    const waitMs = Math.ceil(dueMicros / MICROS_PER_MILLI) - Date.now();
    if (waitMs > 0 && (await this.#changeWithin(waitMs))) return;
    const { orgId, claimId } = this.#input;
    await this.#patiently(async () => {
      this.#adopt(await noteClaimDue({ orgId, claimId }));
      if (this.#state?.nextActionAtMicros === dueMicros) await this.#changeWithin(PAUSE);
    });
  }

  async #change(): Promise<void> {
    const seen = this.#changes;
    await condition(() => this.#isStale || this.#changes !== seen);
  }

  #changeWithin(time: Duration): Promise<boolean> {
    const seen = this.#changes;
    return condition(() => this.#isStale || this.#changes !== seen, time);
  }

  /** What was read before a move was recorded tells nothing new. */
  #adopt(state: ClaimState | null): void {
    if (state && this.#state && state.version < this.#state.version) return;
    this.#state = state;
    this.#changes += 1;
    if (state) setCurrentDetails(`${state.status}, version ${state.version}`);
  }

  /** An effect that cannot be had for minutes is asked for again, for as long as it takes. */
  async #patiently(effect: () => Promise<void>): Promise<void> {
    try {
      await effect();
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      log.warn('the claim cannot be read; trying again', { cause: error.cause?.message });
      await this.#changeWithin(PAUSE);
      this.reread();
    }
  }
}

/** A failed effect as whoever asked for the move is told of it: a rule's refusal by its code, all else as unknown. */
function refusalOf(error: unknown): ApplicationFailure {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure)
    return ApplicationFailure.nonRetryable(cause.message, cause.type ?? 'unknown');
  return ApplicationFailure.nonRetryable('the move was not carried out in time', 'unknown');
}
