import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../domain/errors.js';
import { MICROS_PER_DAY, parseInstant } from '../../domain/period.js';

/** A longer wait that the provider requires is reported to the caller, who can do other work meanwhile. */
const WAIT_MS_MAX = 5_000;
/** Connections whose pace is cached; the least recently used is evicted first. */
const KEYS_MAX = 1_000;

interface Pace {
  /** Time at which the next request may be sent, milliseconds of the pacer's clock. */
  nextMs: number;
  /** Time until which the provider refuses requests. */
  blockedUntilMs: number;
}

/** Keeps a gap between the requests of one connection and remembers how long its provider refuses requests. */
export class Pacer {
  readonly #gapMs: number;
  readonly #nowMs: () => number;
  readonly #paces = new Map<string, Pace>();

  /** `nowMs` is a monotonic clock. */
  constructor(gapMs: number, nowMs: () => number) {
    this.#gapMs = gapMs;
    this.#nowMs = nowMs;
  }

  /**
   * Waits until the connection `key` may send a request. Error: provider_rate_limited immediately where the provider
   * requires more than a few seconds; the signal's reason when it is aborted.
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

  /** Blocks the connection for as long as the provider requires. */
  block(key: string, seconds: number): void {
    const pace = this.#paceOf(key);
    pace.blockedUntilMs = Math.max(pace.blockedUntilMs, this.#nowMs() + seconds * 1_000);
  }

  #paceOf(key: string): Pace {
    const pace = this.#paces.get(key) ?? { nextMs: 0, blockedUntilMs: 0 };
    // Removed and inserted again, so that the map is in the order of use.
    this.#paces.delete(key);
    this.#paces.set(key, pace);
    if (this.#paces.size > KEYS_MAX) this.#paces.delete(this.#paces.keys().next().value as string);
    return pace;
  }
}

/** The error of a request that has to wait, with the seconds. */
export function rateLimited(sentence: string, retryAfterSeconds: number): DomainError {
  return new DomainError(
    'provider_rate_limited',
    `${sentence}; the next request can go in ${retryAfterSeconds} s`,
    {
      retryAfterSeconds,
    },
  );
}

/** Wait after a rate limit without a stated time, seconds. */
export const RETRY_AFTER_SECONDS_DEFAULT = 60;
/** Longest wait, seconds, even if the provider requires more. */
export const RETRY_AFTER_SECONDS_MAX = 3_600;

const SECONDS = /^\d{1,9}(?:\.\d+)?$/;
const DURATION = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/;

/**
 * Seconds that an answer requires to wait, whole and at least one: `retry-after-ms`, `retry-after` (seconds or an HTTP
 * date) or the longest of Azure's headers, else the time until the request window resets (Anthropic states the time,
 * OpenAI a duration such as `1m6s`).
 */
export function retryAfterOf(headers: Headers, nowMicros: bigint): number {
  const named = fromRetryAfter(headers, nowMicros);
  const ofAzure = longestOfAzure(headers);
  const longest =
    named === undefined || ofAzure === undefined ? (named ?? ofAzure) : Math.max(named, ofAzure);
  const seconds = longest ?? fromReset(headers, nowMicros);
  return Math.min(Math.max(1, Math.ceil(seconds ?? RETRY_AFTER_SECONDS_DEFAULT)), RETRY_AFTER_SECONDS_MAX);
}

/** Seconds until the window resets, where an answer reports no remaining requests; else undefined. */
export function spentWindowOf(headers: Headers, nowMicros: bigint): number | undefined {
  const remaining =
    headers.get('anthropic-ratelimit-requests-remaining') ?? headers.get('x-ratelimit-remaining-requests');
  if (remaining?.trim() !== '0') return undefined;
  const seconds = fromReset(headers, nowMicros);
  return seconds === undefined ? undefined : Math.min(Math.max(0, seconds), RETRY_AFTER_SECONDS_MAX);
}

/** Azure reports the wait of each limit separately (`…costmanagement-qpu-retry-after`, `-entity-`, `-tenant-`). */
const AZURE_RETRY_AFTER = /^x-ms-ratelimit-microsoft\.(?:costmanagement|consumption)[\w.-]*-retry-after$/;

/** Whether an answer states how long to wait. */
export function hasRetryAfter(headers: Headers): boolean {
  return headers.has('retry-after') || longestOfAzure(headers) !== undefined;
}

/** The longest of the waits in Azure's headers, seconds. */
function longestOfAzure(headers: Headers): number | undefined {
  let longest: number | undefined;
  for (const [name, value] of headers) {
    const text = value.trim();
    if (!AZURE_RETRY_AFTER.test(name) || !SECONDS.test(text)) continue;
    longest = Math.max(longest ?? 0, Number(text));
  }
  return longest;
}

function fromRetryAfter(headers: Headers, nowMicros: bigint): number | undefined {
  const millis = headers.get('retry-after-ms')?.trim();
  if (millis !== undefined && SECONDS.test(millis)) return Number(millis) / 1_000;
  const text = headers.get('retry-after')?.trim();
  if (text === undefined) return undefined;
  if (SECONDS.test(text)) return Number(text);
  const until = Date.parse(text);
  if (Number.isNaN(until)) return undefined;
  // Measured by the provider's clock if it is sent, since ours may differ.
  const date = Date.parse(headers.get('date') ?? '');
  return (until - (Number.isNaN(date) ? Number(nowMicros / 1_000n) : date)) / 1_000;
}

function fromReset(headers: Headers, nowMicros: bigint): number | undefined {
  const instant = parseInstant(headers.get('anthropic-ratelimit-requests-reset') ?? '');
  if (instant) {
    const micros = instant.micros - nowMicros;
    return micros > MICROS_PER_DAY ? undefined : Number(micros) / 1_000_000;
  }
  const match = DURATION.exec(headers.get('x-ratelimit-reset-requests')?.trim() ?? '');
  if (!match || match[0] === '') return undefined;
  const [hours, minutes, seconds, millis] = match.slice(1).map((part) => Number(part ?? 0));
  return (hours ?? 0) * 3_600 + (minutes ?? 0) * 60 + (seconds ?? 0) + (millis ?? 0) / 1_000;
}
