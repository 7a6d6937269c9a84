import { PatternTables } from './patterns.js';
import { platform } from './platform.js';
import { PriceTable } from './prices.js';
import { messageOf, unref, VERSION } from './reporter.js';
import type { Enforcer } from './rules.js';

/** Keeps the rules, the prices and the banned patterns fresh. Without an answer the last known ones hold. */

const CONFIG_PATH = '/api/v1/enforcement/config';
const PRICES_PATH = '/api/v1/pricing/table';
const PATTERNS_PATH = '/api/v1/enforcement/patterns';
const POLL_SECONDS = 60;
const POLL_SECONDS_MIN = 5;
/** Processes must not poll at once: up to this share of the interval is added. */
const POLL_JITTER = 0.1;
const PRICES_MS = 3_600_000;

interface Answer {
  status: number;
  etag: string | undefined;
  body: Record<string, unknown>;
  retryAfterSeconds: number;
}

export interface ConfigurationOptions {
  url: string;
  apiKey: string;
  requestTimeoutMs: number;
  onError: (error: Error) => void;
  /** Whether rules and prices are fetched. */
  hasRules: boolean;
  /** Whether banned patterns are fetched. */
  hasPatterns: boolean;
}

export class Configuration {
  prices = new PriceTable();
  /** Undefined: not wanted, not fetched yet, or the organization has none. */
  patterns: PatternTables | undefined;
  readonly #hasRules: boolean;
  readonly #hasPatterns: boolean;
  readonly #url: string;
  readonly #apiKey: string;
  readonly #fetch: typeof fetch;
  readonly #enforcer: Enforcer;
  readonly #timeoutMs: number;
  readonly #onError: (error: Error) => void;
  readonly #etags = new Map<string, string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pricesAt = 0;
  #dueAt = 0;
  #refreshing: Promise<boolean> | undefined;
  #isClosed = false;
  #wasReached = true;

  constructor(options: ConfigurationOptions, enforcer: Enforcer, fetchWith: typeof fetch) {
    this.#hasRules = options.hasRules;
    this.#hasPatterns = options.hasPatterns;
    this.#url = options.url;
    this.#apiKey = options.apiKey;
    this.#timeoutMs = options.requestTimeoutMs;
    this.#onError = options.onError;
    this.#enforcer = enforcer;
    this.#fetch = fetchWith;
  }

  /** True: the service has answered with the rules. */
  refresh(): Promise<boolean> {
    this.#refreshing ??= this.#load().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** For runtimes without timers between requests: asks again when it is due. */
  refreshIfDue(): void {
    if (Date.now() >= this.#dueAt && !this.#isClosed) void this.refresh();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #load(): Promise<boolean> {
    let pollSeconds = POLL_SECONDS;
    // Set at once, so that calls of this moment do not ask too.
    this.#dueAt = Date.now() + pollSeconds * 1_000;
    let isLoaded = false;
    try {
      const answers = [
        ...(this.#hasRules ? [await this.#loadRules()] : []),
        ...(this.#hasPatterns ? [await this.#loadPatterns()] : []),
      ];
      for (const { body, retryAfterSeconds } of answers) {
        const asked = Number(body.poll_seconds ?? 0);
        if (asked > 0) pollSeconds = Math.max(asked, POLL_SECONDS_MIN);
        pollSeconds = Math.max(pollSeconds, retryAfterSeconds);
      }
      const refused = answers.find(({ status }) => status !== 200 && status !== 304);
      isLoaded = refused === undefined;
      if (isLoaded && this.#hasRules && Date.now() - this.#pricesAt >= PRICES_MS) await this.#loadPrices();
      if (refused) this.#reportLoss(`rules are not refreshed: the service answers ${refused.status}`);
      else this.#wasReached = true;
    } catch (error) {
      this.#reportLoss(`rules are not refreshed: ${messageOf(error)}`);
    }
    const waitMs = pollSeconds * 1_000 * (1 + Math.random() * POLL_JITTER);
    this.#dueAt = Date.now() + waitMs;
    if (!this.#isClosed && platform().hasTimers) {
      clearTimeout(this.#timer);
      this.#timer = unref(setTimeout(() => void this.refresh(), waitMs));
    }
    return isLoaded;
  }

  async #loadRules(): Promise<Answer> {
    const answer = await this.#get(CONFIG_PATH, true);
    if (answer.status === 200 && Array.isArray(answer.body.rules)) {
      this.#enforcer.setRules(answer.body.rules);
      this.#noteEtag(CONFIG_PATH, answer);
    }
    return answer;
  }

  async #loadPatterns(): Promise<Answer> {
    const answer = await this.#get(PATTERNS_PATH, true);
    if (answer.status === 200) {
      const tables = new PatternTables(answer.body);
      this.patterns = tables.isEmpty ? undefined : tables;
      this.#noteEtag(PATTERNS_PATH, answer);
    }
    return answer;
  }

  async #loadPrices(): Promise<void> {
    const table = await this.#get(PRICES_PATH, false);
    if (table.status === 200) {
      this.prices = new PriceTable(table.body.pricing);
      this.#noteEtag(PRICES_PATH, table);
    }
    if (table.status === 200 || table.status === 304) this.#pricesAt = Date.now();
  }

  async #get(path: string, isAuthorized: boolean): Promise<Answer> {
    const etag = this.#etags.get(path);
    const response = await this.#fetch(`${this.#url}${path}`, {
      headers: {
        'user-agent': `trueup-sdk-js/${VERSION}`,
        ...(isAuthorized ? { authorization: `Bearer ${this.#apiKey}` } : {}),
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
      },
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    const text = await response.text();
    return {
      status: response.status,
      etag: response.headers.get('etag') ?? undefined,
      body: response.status === 200 ? (JSON.parse(text) as Record<string, unknown>) : {},
      retryAfterSeconds: Number(response.headers.get('retry-after') ?? 0) || 0,
    };
  }

  #noteEtag(path: string, { etag }: Answer): void {
    if (etag === undefined) this.#etags.delete(path);
    else this.#etags.set(path, etag);
  }

  /** Once for each time that the service is lost. */
  #reportLoss(message: string): void {
    if (!this.#wasReached) return;
    this.#wasReached = false;
    try {
      this.#onError(new Error(message));
    } catch {
      // The application's own handler must not break its call.
    }
  }
}
