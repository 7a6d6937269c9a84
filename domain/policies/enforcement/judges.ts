import type { TokenUsage } from '../../events/event.js';
import type { Pico } from '../../money.js';
import { priceCall } from '../../pricing/cost.js';
import type { PriceBook } from '../../pricing/priceBook.js';
import type { Biller } from '../../providers.js';
import type { Rule } from './rule.js';

/** Why a rule could not judge a call that it is for. */
export const UNJUDGED_REASONS = [
  /** The client told no session. */
  'no_session',
  /** No prompt was sent, or none that could be kept as a hash. */
  'no_prompts',
  /** Nobody told what the call used. */
  'no_usage',
  /** What is known of the session's cost is below the budget, and of some of its calls it is not known. */
  'session_cost_unknown',
  /** What is known of the session's calls for tools is within the rule, and of some of its calls it is not known. */
  'stop_reason_unknown',
] as const;
export type UnjudgedReason = (typeof UNJUDGED_REASONS)[number];

/** What a rule says of a call: it blocks it, or has nothing against it, or cannot tell. */
export type Judgement = 'blocked' | 'passed' | UnjudgedReason;

/** One rule that blocks, with what it remembers of the calls that were let through. */
export interface Judge {
  judge(call: ReplayedCall): Judgement;
  /** Told of each call of its scope that no rule blocked, with what it costs then; null: not known. */
  letThrough(call: ReplayedCall, costPico: Pico | null): void;
  /** How many things it remembers. */
  readonly size: number;
  /** Forgets half of it: what it has not used for longest. */
  forget(): void;
  /** How many things it forgot that could still have mattered. */
  readonly forgotten: number;
}

/** Stop reasons of a call that ended by asking for a tool: as Anthropic, OpenAI and OpenAI's older form have it. */
const TOOL_STOPS: ReadonlySet<string> = new Set(['tool_use', 'tool_calls', 'function_call']);
/** What an event says where nobody told how the answer ended. */
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

/** What is known of something that grows with each call of a session. */
interface Grown<T> {
  known: T;
  /** Of some of its calls it is not known. */
  isPartly: boolean;
}

/** What a judge of sessions has in common. */
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
    // It goes on.
    if (session) this.sessions.note(sessionId, session);
    return this.judgeSession(session?.known, session?.isPartly ?? false);
  }

  letThrough(call: ReplayedCall, costPico: Pico | null): void {
    if (call.sessionId === '') return;
    const grown = this.grownBy(call, costPico);
    // What adds nothing needs no memory: most sessions ask for no tool.
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
    // A call that failed, or was given up, has not asked for anything.
    return stopReason === UNKNOWN_STOP && status === 'ok' ? 'unknown' : 'nothing';
  }

  protected add(asked: number | undefined, more: number | undefined): number {
    return (asked ?? 0) + (more ?? 0);
  }
}

class DuplicateWindow implements Judge {
  readonly #windowMicros: bigint;
  /** When the last equal call began that ended well and was let through: in the order of these times. */
  readonly #began = new Recent<bigint>();
  /** When those that are over were looked for last. */
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

  /** Once a window's time: what is older can be equal to no call to come. */
  #forgetWhatIsOver(nowMicros: bigint): void {
    this.#lookedMicros ??= nowMicros;
    if (nowMicros - this.#lookedMicros <= this.#windowMicros) return;
    this.#lookedMicros = nowMicros;
    this.#began.forgetWhile((began) => nowMicros - began > this.#windowMicros);
  }
}

/** What equal calls have the same of. */
function keyOf(call: ReplayedCall): { text: string } | 'no_prompts' | 'no_usage' {
  if (call.promptHash === null) return 'no_prompts';
  const input = inputTokensOf(call);
  if (input === null) return 'no_usage';
  // The model comes last: it alone may have blanks.
  return { text: `${call.promptHash} ${input} ${call.billedBy} ${call.model}` };
}

/** What is remembered by a key, in the order in which it was last noted: so that the oldest can go first. */
export class Recent<V> {
  readonly #byKey = new Map<string, V>();

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): V | undefined {
    return this.#byKey.get(key);
  }

  /** Remembers it as the newest. */
  note(key: string, value: V): void {
    this.#byKey.delete(key);
    this.#byKey.set(key, value);
  }

  /** Forgets the oldest for as long as `isOver` says so of them. Looks at one more than it forgets. */
  forgetWhile(isOver: (value: V) => boolean): void {
    for (const [key, value] of this.#byKey) {
      if (!isOver(value)) return;
      this.#byKey.delete(key);
    }
  }

  /** Forgets the older half; returns how many those were. */
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

/** A stored call as far as rules look at it. Superseded and blocked events are none. */
export interface ReplayedCall {
  /** uuid of the event. */
  id: string;
  timestampMicros: bigint;
  status: 'ok' | 'error' | 'cancelled';
  billedBy: Biller;
  model: string;
  teamId: string | null;
  feature: string | null;
  /** '' for a call of no session. */
  sessionId: string;
  /** `unknown` where nobody told. */
  stopReason: string;
  /** Null where none was told. */
  usage: TokenUsage | null;
  /** It consumed something that nobody told: its usage is not known, and not zero. */
  unmetered: boolean;
  isBatch: boolean;
  serviceTier: string | null;
  /** What tells equal prompts; null where no prompt was sent. */
  promptHash: string | null;
  /** What the event says that it cost; null: unpriced, which is not free. */
  costPico: Pico | null;
}

/** The order in which calls are judged: by time, and by id where the time is the same. */
export function compareCalls(
  left: Pick<ReplayedCall, 'id' | 'timestampMicros'>,
  right: Pick<ReplayedCall, 'id' | 'timestampMicros'>,
): number {
  if (left.timestampMicros !== right.timestampMicros)
    return left.timestampMicros < right.timestampMicros ? -1 : 1;
  return left.id < right.id ? -1 : left.id > right.id ? 1 : 0;
}

/** The whole input of a call, cached or not; null where nobody told. */
export function inputTokensOf({ usage, unmetered }: ReplayedCall): number | null {
  if (usage === null) return unmetered ? null : 0;
  return usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
}

export function tokensOf(call: ReplayedCall): number | null {
  const input = inputTokensOf(call);
  return input === null ? null : input + (call.usage ? call.usage.output + call.usage.outputAudio : 0);
}

/** The call's tokens at another model's price, same biller, time, tier and batch; null without a price or usage. */
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
