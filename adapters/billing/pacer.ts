import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../domain/errors.js';

/** A longer wait that the provider asked for is told to the caller, who can do something else meanwhile. */
const WAIT_MS_MAX = 5_000;
/** Connections whose last request is remembered; the one that has waited longest is forgotten first. */
const KEYS_MAX = 1_000;

interface Pace {
  /** When the next request may leave, milliseconds of the pacer's clock. */
  nextMs: number;
  /** Until when the provider wants to hear nothing. */
  blockedUntilMs: number;
}

/** Keeps a gap between the requests of one connection and remembers how long its provider asked to be left alone. */
export class Pacer {
  readonly #gapMs: number;
  readonly #nowMs: () => number;
  readonly #paces = new Map<string, Pace>();

  /** `nowMs` is a clock that never goes back. */
  constructor(gapMs: number, nowMs: () => number) {
    this.#gapMs = gapMs;
    this.#nowMs = nowMs;
  }

  /**
   * Waits until the connection `key` may ask again. Error provider_rate_limited, at once, where the provider asked for
   * more than a few seconds; the signal's reason when it is aborted.
   */
  async turn(key: string, signal: AbortSignal): Promise<void> {
    const pace = this.#paceOf(key);
    const nowMs = this.#nowMs();
    const blockedMs = pace.blockedUntilMs - nowMs;
    if (blockedMs > WAIT_MS_MAX) {
      throw rateLimited('the provider asked to be left alone for a while', Math.ceil(blockedMs / 1_000));
    }
    const startMs = Math.max(nowMs, pace.nextMs, pace.blockedUntilMs);
    pace.nextMs = startMs + this.#gapMs;
    if (startMs > nowMs) {
      try {
        await sleep(startMs - nowMs, undefined, { signal });
      } catch {
        throw signal.reason;
      }
    }
    signal.throwIfAborted();
  }

  /** The provider wants no request of this connection for so long. */
  block(key: string, seconds: number): void {
    const pace = this.#paceOf(key);
    pace.blockedUntilMs = Math.max(pace.blockedUntilMs, this.#nowMs() + seconds * 1_000);
  }

  #paceOf(key: string): Pace {
    const pace = this.#paces.get(key) ?? { nextMs: 0, blockedUntilMs: 0 };
    // Taken out and put back, the map is in the order of use.
    this.#paces.delete(key);
    this.#paces.set(key, pace);
    if (this.#paces.size > KEYS_MAX) this.#paces.delete(this.#paces.keys().next().value as string);
    return pace;
  }
}

/** A request that has to wait, with the seconds that it has to. */
export function rateLimited(sentence: string, retryAfterSeconds: number): DomainError {
  return new DomainError(
    'provider_rate_limited',
    `${sentence}; the next request can go in ${retryAfterSeconds} s`,
    {
      retryAfterSeconds,
    },
  );
}
