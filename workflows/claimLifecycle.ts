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
// A local activity runs in the workflow task that delivers the move: a separate task would halve the moves per second
// (docs/benchmarks.md). If the worker dies, the repeated command finds the recorded move.
const { recordClaimMove } = proxyLocalActivities<Activities>(PROFILES.moving);

/** Pause after a failed activity, and after a notice that is not due by the database's clock. */
const PAUSE = '1 minute';
const MICROS_PER_MILLI = 1_000;

export const moveClaim = defineUpdate<ClaimState, [ClaimCommand]>(MOVE_UPDATE);
export const wakeClaim = defineSignal(WAKE_SIGNAL);

/**
 * A claim from its creation to its end: carries out its moves one after the other, and sleeps until the next notice is
 * due. The row is authoritative and is read at every start, so a workflow that Temporal lost continues where it was. It
 * ends with the claim, or when the claim was deleted.
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
    // A cancellation does not lose a move in progress; the claim's next call starts another workflow.
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
    throw error;
  }
  await condition(allHandlersFinished);
}

/**
 * Continues in a new history, one step after the answer to the last move, because an answer in the same step can be
 * lost.
 */
async function goOnAnew(input: ClaimInput): Promise<void> {
  await condition(allHandlersFinished);
  await sleep(1);
  if (allHandlersFinished()) await continueAsNew<typeof claimLifecycle>(input);
}

/** The workflow's cached state of its claim. */
class Claim {
  readonly #input: ClaimInput;
  /** undefined: not read yet; null: the claim no longer exists. */
  #state: ClaimState | null | undefined;
  #isStale = true;
  #changes = 0;
  #moves = 0;
  #lastMove: Promise<unknown> = Promise.resolve();

  constructor(input: ClaimInput) {
    this.#input = input;
  }

  /** Makes the workflow read the row before its next decision. */
  reread(): void {
    this.#isStale = true;
  }

  /**
   * Refuses a certainly illegal move immediately and without a trace in the history, by the claim's state in the
   * command and its cached state. While a move is in progress nothing is certain.
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

  /** Carries out moves one after the other, in the order of their arrival. */
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
      // The row shows the result of a refusal or of an activity without an answer.
      this.reread();
      throw refusalOf(error);
    }
  }

  /** Reads the row when necessary; true: no move or notice can follow. */
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

  /** Sleeps until a change, or until the next notice is due, and then records it. */
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

  /** Ignores a state that was read before a move was recorded. */
  #adopt(state: ClaimState | null): void {
    if (state && this.#state && state.version < this.#state.version) return;
    this.#state = state;
    this.#changes += 1;
    if (state) setCurrentDetails(`${state.status}, version ${state.version}`);
  }

  /** Retries an activity that fails for minutes, without limit. */
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

/**
 * A failed activity as the requester of the move sees it: a rule's refusal by its code, any other failure as unknown.
 */
function refusalOf(error: unknown): ApplicationFailure {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure)
    return ApplicationFailure.nonRetryable(cause.message, cause.type ?? 'unknown');
  return ApplicationFailure.nonRetryable('the move was not carried out in time', 'unknown');
}
