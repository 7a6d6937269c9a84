import { platform, type Spool } from './platform.js';

/**
 * Sends events in the background. The queue has a limit in bytes; a service that does not answer costs the
 * application nothing but that.
 */

export interface ReporterOptions {
  url: string;
  apiKey: string;
  /** Bytes of waiting events in memory. */
  queueBytesMax: number;
  flushIntervalMs: number;
  requestTimeoutMs: number;
  spool: { folder: string; bytesMax: number } | undefined;
  onError: (error: Error) => void;
}

/** Counts of the events of this process. */
export interface ReporterStats {
  recorded: number;
  sent: number;
  /** Lost because the queue was full. */
  dropped: number;
  /** Refused by the service for good. */
  refused: number;
  waiting: number;
  waitingBytes: number;
}

export const VERSION = '0.1.0';
const EVENTS_PATH = '/api/v1/ingest/events';
const BATCH_EVENTS_MAX = 1_000;
const BATCH_CHARS_MAX = 2_000_000;
/** Waiting events that are sent without waiting for the interval. */
const EVENTS_OF_A_BURST = 1_000;
/** Bytes of an event in memory beside its text. */
const EVENT_OVERHEAD_BYTES = 64;
const BACKOFF_FIRST_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;
const GZIP_CHARS_MIN = 1_024;
/** The service takes the events later: too many requests, restarting, or a key that is being changed. */
const RETRIED: ReadonlySet<number> = new Set([401, 403, 408, 425, 429, 500, 502, 503, 504]);

type Outcome = 'arrived' | 'refused' | { retryAfterMs: number | undefined; reason: string };

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #fetch: typeof fetch;
  #spool: Spool | undefined;
  #queue: string[] = [];
  #queueBytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | undefined;
  #underWay: AbortController | undefined;
  #failures = 0;
  #retryAt = 0;
  #closed = false;
  readonly #counts = { recorded: 0, sent: 0, dropped: 0, refused: 0 };

  constructor(options: ReporterOptions, fetchWith: typeof fetch) {
    this.#options = options;
    this.#fetch = fetchWith;
    const { spool } = options;
    if (spool) {
      this.#try(() => {
        this.#spool = platform().openSpool?.(spool.folder, { bytesMax: spool.bytesMax });
        if (this.#spool === undefined) throw new Error('this runtime has no disk: events wait in memory');
        // Events of an earlier process wait for the first answer of the service.
        if (!this.#spool.isEmpty) this.#schedule(0);
      });
    }
  }

  get stats(): ReporterStats {
    return { ...this.#counts, waiting: this.#queue.length, waitingBytes: this.#queueBytes };
  }

  /** Whether an event has not arrived yet; those under way count too. */
  get hasWaiting(): boolean {
    return this.#underWay !== undefined || this.#hasUnsent;
  }

  get #hasUnsent(): boolean {
    return this.#queue.length > 0 || this.#spool?.isEmpty === false;
  }

  /** Takes one event. Never throws, never waits. */
  add(event: object): void {
    this.#try(() => {
      if (this.#closed) return;
      this.#counts.recorded += 1;
      const text = JSON.stringify(event);
      if (!this.#isSpooled(text)) this.#enqueue(text);
      this.#schedule(this.#queue.length >= EVENTS_OF_A_BURST ? 0 : this.#options.flushIntervalMs);
    });
  }

  #isSpooled(text: string): boolean {
    if (this.#spool === undefined) return false;
    try {
      this.#spool.append(text);
      return true;
    } catch (error) {
      this.#reportError(error);
      return false;
    }
  }

  #enqueue(text: string): void {
    const bytes = bytesOf(text);
    if (this.#queueBytes + bytes > this.#options.queueBytesMax) {
      this.#counts.dropped += 1;
      if (this.#counts.dropped === 1)
        this.#reportError(new Error('the queue is full: events are being dropped'));
      return;
    }
    this.#queue.push(text);
    this.#queueBytes += bytes;
  }

  #schedule(ms: number): void {
    if (!platform().hasTimers || this.#sending) return;
    const wait = Math.max(ms, this.#retryAt - Date.now());
    if (this.#timer !== undefined) {
      if (ms > 0) return;
      clearTimeout(this.#timer);
    }
    this.#timer = unref(setTimeout(() => this.#send(false), wait));
  }

  /** Sends what waits. True: everything arrived, or was refused for good, within the time. */
  async flush(timeoutMs = this.#options.requestTimeoutMs): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    const sent = (async () => {
      await this.#sending;
      if (this.hasWaiting) await this.#send(true);
    })();
    await Promise.race([sent, late]);
    clearTimeout(timer);
    return !this.hasWaiting;
  }

  /** Breaks off the request under way, which would keep a process alive; its events wait again. */
  abandon(): void {
    this.#underWay?.abort();
  }

  async close(timeoutMs?: number): Promise<boolean> {
    const isSent = await this.flush(timeoutMs);
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#spool?.close();
    return isSent;
  }

  #send(isForced: boolean): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll(isForced).finally(() => {
      this.#sending = undefined;
      if (this.hasWaiting && !this.#closed) this.#schedule(this.#options.flushIntervalMs);
    });
    return this.#sending;
  }

  async #sendAll(isForced: boolean): Promise<void> {
    if (!isForced && Date.now() < this.#retryAt) return;
    while (this.#hasUnsent) {
      const fromDisk = this.#spool?.isEmpty === false;
      const batch = fromDisk ? this.#readSpool() : this.#takeBatch();
      if (batch.length === 0) return;
      const outcome = await this.#post(batch);
      if (typeof outcome === 'object') {
        if (!fromDisk) this.#putBack(batch);
        this.#waitAfter(outcome);
        return;
      }
      this.#failures = 0;
      this.#retryAt = 0;
      if (fromDisk) this.#try(() => this.#spool?.confirm());
      this.#counts[outcome === 'arrived' ? 'sent' : 'refused'] += batch.length;
    }
  }

  #readSpool(): string[] {
    let batch: string[] = [];
    this.#try(() => {
      batch = this.#spool?.read(BATCH_EVENTS_MAX, BATCH_CHARS_MAX) ?? [];
    });
    return batch;
  }

  #takeBatch(): string[] {
    let chars = 0;
    let count = 0;
    for (const text of this.#queue) {
      chars += text.length;
      if (count > 0 && (chars > BATCH_CHARS_MAX || count === BATCH_EVENTS_MAX)) break;
      count += 1;
    }
    const batch = this.#queue.splice(0, count);
    for (const text of batch) this.#queueBytes -= bytesOf(text);
    return batch;
  }

  #putBack(batch: string[]): void {
    this.#queue = batch.concat(this.#queue);
    for (const text of batch) this.#queueBytes += bytesOf(text);
  }

  #waitAfter({ retryAfterMs, reason }: { retryAfterMs: number | undefined; reason: string }): void {
    this.#failures += 1;
    const backoff = Math.min(BACKOFF_FIRST_MS * 2 ** (this.#failures - 1), BACKOFF_MAX_MS);
    // Processes that lost the service at once must not come back at once.
    this.#retryAt = Date.now() + (retryAfterMs ?? backoff * (0.5 + Math.random() / 2));
    if (this.#failures === 1) this.#reportError(new Error(`events wait: ${reason}`));
  }

  async #post(batch: string[]): Promise<Outcome> {
    const { url, apiKey, requestTimeoutMs } = this.#options;
    const controller = new AbortController();
    const late = unref(setTimeout(() => controller.abort(), requestTimeoutMs));
    this.#underWay = controller;
    try {
      const text = `{"events":[${batch.join(',')}]}`;
      const headers: Record<string, string> = {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        'user-agent': `trueup-sdk-js/${VERSION}`,
      };
      let body: string | Uint8Array<ArrayBuffer> = text;
      const { gzip } = platform();
      if (gzip && text.length > GZIP_CHARS_MIN) {
        body = (await gzip(new TextEncoder().encode(text))) as Uint8Array<ArrayBuffer>;
        headers['content-encoding'] = 'gzip';
      }
      const response = await this.#fetch(`${url}${EVENTS_PATH}`, {
        method: 'POST',
        headers,
        body,
        signal: controller.signal,
      });
      const answer = await response.text();
      if (response.ok) {
        this.#noteRejected(answer);
        return 'arrived';
      }
      const reason = `the service answers ${response.status}`;
      if (RETRIED.has(response.status)) return { retryAfterMs: retryAfterOf(response), reason };
      this.#reportError(new Error(`${batch.length} events are refused: ${reason} ${answer.slice(0, 200)}`));
      return 'refused';
    } catch (error) {
      return { retryAfterMs: undefined, reason: `the service does not answer (${messageOf(error)})` };
    } finally {
      clearTimeout(late);
      this.#underWay = undefined;
    }
  }

  /** Items that the service rejected alone; the others are stored. */
  #noteRejected(answer: string): void {
    this.#try(() => {
      const { rejected } = JSON.parse(answer) as { rejected?: unknown };
      const count = Array.isArray(rejected) ? rejected.length : Number(rejected ?? 0);
      if (count > 0) {
        this.#counts.refused += count;
        this.#counts.sent -= count;
        this.#reportError(new Error(`${count} events are rejected: ${answer.slice(0, 500)}`));
      }
    });
  }

  #try(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#reportError(error);
    }
  }

  #reportError(error: unknown): void {
    try {
      this.#options.onError(error instanceof Error ? error : new Error(String(error)));
    } catch {
      // The application's own handler must not break its call.
    }
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Timers of this package never keep a process alive. */
export function unref(timer: ReturnType<typeof setTimeout>): ReturnType<typeof setTimeout> {
  (timer as unknown as { unref?: () => void }).unref?.();
  return timer;
}

/** Two bytes a character at most. */
function bytesOf(text: string): number {
  return text.length * 2 + EVENT_OVERHEAD_BYTES;
}

/** Milliseconds of `Retry-After`, in seconds or as a date; at most an hour. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = Number(text);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), 3_600_000) : undefined;
}
