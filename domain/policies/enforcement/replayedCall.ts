import type { TokenUsage } from '../../events/event.js';
import type { Pico } from '../../money.js';
import { priceCall } from '../../pricing/cost.js';
import type { PriceBook } from '../../pricing/priceBook.js';
import type { Biller } from '../../providers.js';

/** A stored call as far as rules look at it. Superseded and blocked events are none. */
export interface ReplayedCall {
  /** uuid of the event. */
  id: string;
  timestampMicros: bigint;
  status: 'ok' | 'error' | 'cancelled';
  billedBy: Biller;
  /** As the call names it. */
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

/** All tokens of a call; null where nobody told. */
export function tokensOf(call: ReplayedCall): number | null {
  const input = inputTokensOf(call);
  return input === null ? null : input + (call.usage ? call.usage.output + call.usage.outputAudio : 0);
}

/**
 * What the same tokens of a call would have cost as a call of another model of the same biller, at the same time, tier
 * and batch: as its own price was found. Null where no price is known, or not what it used.
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
