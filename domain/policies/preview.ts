import type { Violation } from './alerts/alert.js';
import {
  type CompiledPolicies,
  type JudgedCall,
  judgeCall,
  type UnjudgedReason,
  unjudgedOf,
} from './judge.js';

/** Events that a preview looks at: the newest. */
export const PREVIEW_EVENTS_MAX = 1_000;
/** Flagged events that it shows. */
const SHOWN_MAX = 100;
/** Prompts that are searched before others get a turn: some milliseconds at most. */
const PROMPTS_A_TURN = 8;

/** A stored event as policies see it; prompts are undefined where nothing was stored that they could be found in. */
export interface PreviewedEvent extends Omit<JudgedCall, 'prompts'> {
  id: string;
  timestampMicros: bigint;
  prompts: readonly string[] | undefined;
}

export interface PreviewResult {
  events: number;
  oldestMicros: bigint | null;
  flagged: number;
  /** Events, by what is not known of them. */
  unjudged: Record<UnjudgedReason | 'prompts_not_stored', number>;
  /** The first that were flagged. */
  shown: { id: string; timestampMicros: bigint; violation: Violation }[];
}

/** What a policy would have flagged, gathered event by event, newest first. */
export class Preview {
  readonly result: PreviewResult = {
    events: 0,
    oldestMicros: null,
    flagged: 0,
    unjudged: { prompts_not_stored: 0, environment_unknown: 0, key_unknown: 0, cost_unknown: 0 },
    shown: [],
  };
  readonly #policies: CompiledPolicies;
  readonly #needsPrompts: boolean;
  /** Prompts since others had their turn. */
  #searched = 0;

  constructor(policies: CompiledPolicies) {
    this.#policies = policies;
    this.#needsPrompts = policies.rules.some(({ policyType }) => policyType === 'banned_patterns');
  }

  /** Adds an event. `pause` lets others have a turn: a call can hold thousands of prompts. */
  async add(event: PreviewedEvent, pause: () => Promise<void>): Promise<void> {
    const { id, timestampMicros, prompts } = event;
    const { result } = this;
    result.events += 1;
    result.oldestMicros = timestampMicros;
    if (this.#needsPrompts && prompts === undefined) {
      result.unjudged.prompts_not_stored += 1;
      return;
    }
    for (const { reason } of unjudgedOf(this.#policies, { ...event, prompts: () => [] }))
      result.unjudged[reason] += 1;
    const violation = await this.#judge(event, pause);
    if (!violation) return;
    result.flagged += 1;
    if (result.shown.length < SHOWN_MAX) result.shown.push({ id, timestampMicros, violation });
  }

  async #judge(event: PreviewedEvent, pause: () => Promise<void>): Promise<Violation | undefined> {
    const prompts = (this.#needsPrompts && event.prompts) || [];
    let at = 0;
    do {
      const some = prompts.slice(at, at + PROMPTS_A_TURN);
      const [violation] = judgeCall(this.#policies, { ...event, prompts: () => some });
      if (violation) return violation;
      at += PROMPTS_A_TURN;
      this.#searched += some.length;
      if (this.#searched >= PROMPTS_A_TURN) {
        this.#searched = 0;
        await pause();
      }
    } while (at < prompts.length);
    return undefined;
  }
}
