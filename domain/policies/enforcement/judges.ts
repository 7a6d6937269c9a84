import type { TokenUsage } from '../../events/event.js';
import type { Pico } from '../../money.js';
import { priceCall } from '../../pricing/cost.js';
import type { PriceBook } from '../../pricing/priceBook.js';
import type { Biller } from '../../providers.js';
import type { Rule } from './rule.js';

/** Reasons why a rule cannot judge a call of its scope. */
export const UNJUDGED_REASONS = [
  /** The call has no session. */
  'no_session',
  /** The call has no prompt, or none whose hash could be stored. */
  'no_prompts',
  /** The call's usage is unknown. */
  'no_usage',
  /** The known cost of the session is below the budget, but the cost of some of its calls is unknown. */
  'session_cost_unknown',
  /** The known tool calls of the session are within the limit, but the stop reason of some of its calls is unknown. */
  'stop_reason_unknown',
] as const;
export type UnjudgedReason = (typeof UNJUDGED_REASONS)[number];

/** A rule blocks a call, passes it, or cannot judge it for a reason. */
export type Judgement = 'blocked' | 'passed' | UnjudgedReason;

/** A blocking rule, with its memory of the calls that were let through. */
export interface Judge {
  judge(call: ReplayedCall): Judgement;
  /**
   * Called for each call of the rule's scope that no rule blocked, with its cost after changes by rules; null:
   * unknown.
   */
  letThrough(call: ReplayedCall, costPico: Pico | null): void;
  /** Number of remembered entries. */
  readonly size: number;
  /** Forgets the half of its entries that was not used for longest. */
  forget(): void;
  /** Number of entries that it forgot although they could still have mattered. */
  readonly forgotten: number;
}

/** Stop reasons of a call that ended with a tool call: of Anthropic, of OpenAI and of OpenAI's legacy functions. */
const TOOL_STOPS: ReadonlySet<string> = new Set(['tool_use', 'tool_calls', 'function_call']);
/** The stop reason of an event whose finish reason is unknown. */
const UNKNOWN_STOP = 'unknown';
const MICROS_PER_SECOND = 1_000_000n;

const REMEMBERS_NOTHING = { letThrough: () => undefined, size: 0, forget: () => undefined, forgotten: 0 };

export function judgeOf(rule: Rule): Judge | undefined {
  switch (rule.type) {
    case 'token_ceiling':
      return tokenCeiling(rule.config.maxTokens);
    case 'session_budget_usd':
      return new SessionBudget(rule.config.budgetPico);
    case 'duplicate_window_seconds':
      return new DuplicateWindow(BigInt(rule.config.windowSeconds) * MICROS_PER_SECOND);
    case 'max_tool_calls':
      return new ToolCalls(rule.config.maxToolCalls);
    case 'model_downgrade':
      return undefined;
  }
}

function tokenCeiling(maxTokens: number): Judge {
  const judge = (call: ReplayedCall): Judgement => {
    const tokens = tokensOf(call);
    if (tokens === null) return 'no_usage';
    return tokens > maxTokens ? 'blocked' : 'passed';
  };
  return { ...REMEMBERS_NOTHING, judge };
}

/** The known part of a value that grows with each call of a session. */
interface Grown<T> {
  known: T;
  /** The value of some calls is unknown. */
  isPartly: boolean;
}

/** The common part of rules about sessions. */
abstract class SessionJudge<T> implements Judge {
  protected readonly sessions = new Recent<Grown<T>>();
  forgotten = 0;

  get size(): number {
    return this.sessions.size;
  }

  forget(): void {
    this.forgotten += this.sessions.forgetHalf();
  }

  judge({ sessionId }: ReplayedCall): Judgement {
    if (sessionId === '') return 'no_session';
    const session = this.sessions.get(sessionId);
    // The session is in use: note it as the newest.
    if (session) this.sessions.note(sessionId, session);
    return this.judgeSession(session?.known, session?.isPartly ?? false);
  }

  letThrough(call: ReplayedCall, costPico: Pico | null): void {
    if (call.sessionId === '') return;
    const grown = this.grownBy(call, costPico);
    // A call that adds nothing is not remembered: most sessions request no tool.
    if (grown === 'nothing') return;
    const session = this.sessions.get(call.sessionId);
    if (session === undefined) {
      const first = grown === 'unknown' ? undefined : grown;
      this.sessions.note(call.sessionId, {
        known: this.add(undefined, first),
        isPartly: grown === 'unknown',
      });
    } else if (grown === 'unknown') session.isPartly = true;
    else session.known = this.add(session.known, grown);
  }

  protected abstract judgeSession(known: T | undefined, isPartly: boolean): Judgement;
  protected abstract grownBy(call: ReplayedCall, costPico: Pico | null): T | 'nothing' | 'unknown';
  protected abstract add(known: T | undefined, grown: T | undefined): T;
}

class SessionBudget extends SessionJudge<Pico> {
  readonly #budgetPico: Pico;

  constructor(budgetPico: Pico) {
    super();
    this.#budgetPico = budgetPico;
  }

  protected judgeSession(spentPico: Pico | undefined, isPartly: boolean): Judgement {
    if ((spentPico ?? 0n) >= this.#budgetPico) return 'blocked';
    return isPartly ? 'session_cost_unknown' : 'passed';
  }

  protected grownBy(_call: ReplayedCall, costPico: Pico | null): Pico | 'nothing' | 'unknown' {
    if (costPico === null) return 'unknown';
    return costPico === 0n ? 'nothing' : costPico;
  }

  protected add(spentPico: Pico | undefined, costPico: Pico | undefined): Pico {
    return (spentPico ?? 0n) + (costPico ?? 0n);
  }
}

class ToolCalls extends SessionJudge<number> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  protected judgeSession(asked: number | undefined, isPartly: boolean): Judgement {
    if ((asked ?? 0) > this.#max) return 'blocked';
    return isPartly ? 'stop_reason_unknown' : 'passed';
  }

  protected grownBy({ stopReason, status }: ReplayedCall): number | 'nothing' | 'unknown' {
    if (TOOL_STOPS.has(stopReason)) return 1;
    // A call that failed or was cancelled has requested no tool.
    return stopReason === UNKNOWN_STOP && status === 'ok' ? 'unknown' : 'nothing';
  }

  protected add(asked: number | undefined, more: number | undefined): number {
    return (asked ?? 0) + (more ?? 0);
  }
}

class DuplicateWindow implements Judge {
  readonly #windowMicros: bigint;
  /** The start of the latest equal call that succeeded and was let through, in the order of these times. */
  readonly #began = new Recent<bigint>();
  /** The time of the last search for expired entries. */
  #lookedMicros: bigint | undefined;
  forgotten = 0;

  constructor(windowMicros: bigint) {
    this.#windowMicros = windowMicros;
  }

  get size(): number {
    return this.#began.size;
  }

  judge(call: ReplayedCall): Judgement {
    this.#forgetWhatIsOver(call.timestampMicros);
    const key = keyOf(call);
    if (typeof key !== 'object') return key;
    const began = this.#began.get(key.text);
    return began !== undefined && call.timestampMicros - began <= this.#windowMicros ? 'blocked' : 'passed';
  }

  letThrough(call: ReplayedCall): void {
    if (call.status !== 'ok') return;
    const key = keyOf(call);
    if (typeof key === 'object') this.#began.note(key.text, call.timestampMicros);
  }

  forget(): void {
    this.forgotten += this.#began.forgetHalf();
  }

  /** Runs once a window: a call before it can equal no later call. */
  #forgetWhatIsOver(nowMicros: bigint): void {
    this.#lookedMicros ??= nowMicros;
    if (nowMicros - this.#lookedMicros <= this.#windowMicros) return;
    this.#lookedMicros = nowMicros;
    this.#began.forgetWhile((began) => nowMicros - began > this.#windowMicros);
  }
}

/** The key that equal calls share. */
function keyOf(call: ReplayedCall): { text: string } | 'no_prompts' | 'no_usage' {
  if (call.promptHash === null) return 'no_prompts';
  const input = inputTokensOf(call);
  if (input === null) return 'no_usage';
  // The model comes last because it is the only part that can contain blanks.
  return { text: `${call.promptHash} ${input} ${call.billedBy} ${call.model}` };
}

/** Values by key, in the order in which they were last noted, so that the oldest can be forgotten first. */
export class Recent<V> {
  readonly #byKey = new Map<string, V>();

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): V | undefined {
    return this.#byKey.get(key);
  }

  /** Stores the value as the newest. */
  note(key: string, value: V): void {
    this.#byKey.delete(key);
    this.#byKey.set(key, value);
  }

  /** Forgets the oldest values while `isOver` is true for them. Looks at one more than it forgets. */
  forgetWhile(isOver: (value: V) => boolean): void {
    for (const [key, value] of this.#byKey) {
      if (!isOver(value)) return;
      this.#byKey.delete(key);
    }
  }

  /** Forgets the older half; returns the number of forgotten values. */
  forgetHalf(): number {
    let left = Math.ceil(this.#byKey.size / 2);
    const forgotten = left;
    this.forgetWhile(() => {
      left -= 1;
      return left >= 0;
    });
    return forgotten;
  }
}

/** The fields of a stored call that rules use. Superseded and blocked events are not replayed. */
export interface ReplayedCall {
  /** uuid of the event. */
  id: string;
  timestampMicros: bigint;
  status: 'ok' | 'error' | 'cancelled';
  billedBy: Biller;
  model: string;
  teamId: string | null;
  feature: string | null;
  /** '': the call has no session. */
  sessionId: string;
  /** `unknown`: no client reported it. */
  stopReason: string;
  /** null: no usage was reported. */
  usage: TokenUsage | null;
  /** The call consumed tokens that were not reported: its usage is unknown, not zero. */
  unmetered: boolean;
  isBatch: boolean;
  serviceTier: string | null;
  /** The hash of the prompt; null: no prompt was sent. */
  promptHash: string | null;
  /** The cost of the event; null: unpriced, which does not mean free. */
  costPico: Pico | null;
}

/** Orders calls as they are judged: by time, then by id. */
export function compareCalls(
  left: Pick<ReplayedCall, 'id' | 'timestampMicros'>,
  right: Pick<ReplayedCall, 'id' | 'timestampMicros'>,
): number {
  if (left.timestampMicros !== right.timestampMicros)
    return left.timestampMicros < right.timestampMicros ? -1 : 1;
  return left.id < right.id ? -1 : left.id > right.id ? 1 : 0;
}

/** All input tokens of a call, cached or not; null: the usage is unknown. */
export function inputTokensOf({ usage, unmetered }: ReplayedCall): number | null {
  if (usage === null) return unmetered ? null : 0;
  return usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
}

export function tokensOf(call: ReplayedCall): number | null {
  const input = inputTokensOf(call);
  return input === null ? null : input + (call.usage ? call.usage.output + call.usage.outputAudio : 0);
}

/**
 * The cost of the call's tokens at another model's price with the same biller, time, tier and batch; null: no
 * price or usage.
 */
export function costAs(book: PriceBook, call: ReplayedCall, model: string): Pico | null {
  if (call.usage === null) return call.unmetered ? null : 0n;
  return priceCall(book, {
    biller: call.billedBy,
    model,
    atMicros: call.timestampMicros,
    usage: call.usage,
    isBatch: call.isBatch,
    serviceTier: call.serviceTier,
  }).computedPico;
}
