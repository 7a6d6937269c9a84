import { type EndStatus, type Recorder, ServiceRecorder, SILENT_RECORDER } from './calls.js';
import { attach } from './clients/attach.js';
import { Configuration } from './configuration.js';
import type { Labels } from './labels.js';
import { platform } from './platform.js';
import { messageOf, Reporter, type ReporterStats } from './reporter.js';
import { Enforcer } from './rules.js';

export interface TrueupOptions extends Labels {
  /** Address of the service; by default `TRUEUP_URL`. */
  url?: string;
  /** A key of the role `ingest`; by default `TRUEUP_KEY`. */
  apiKey?: string;
  /** Name of the application, shown in ingest health; by default `TRUEUP_SERVICE`, then `OTEL_SERVICE_NAME`. */
  service?: string;
  /** Whether the organization's enforcement rules are applied; by default they are. */
  enforcement?: boolean;
  /** Whether requests and answers are sent to the service; by default no prompt leaves the process. */
  capturePayloads?: boolean;
  /**
   * Whether prompts are searched for the organization's banned patterns in this process, so that the service gets the
   * verdicts without the prompts. Not needed with `capturePayloads`.
   */
  policyVerdicts?: boolean;
  /** A folder in which events wait until the service has them; by default they wait in memory. */
  spool?: string | { folder: string; bytesMax?: number };
  /** Bytes of events that wait in memory; more are dropped. By default 12 MB. */
  queueBytesMax?: number;
  /** Milliseconds between two sendings; by default 1,000. */
  flushIntervalMs?: number;
  /** Milliseconds after which a request to the service is given up; by default 10,000. */
  requestTimeoutMs?: number;
  /** Milliseconds that the end of the process waits for the last events; by default 2,000. */
  exitTimeoutMs?: number;
  /** Whether the end of the process and SIGTERM send what waits; by default they do. */
  flushAtExit?: boolean;
  /** For requests to the service; by default the runtime's. */
  fetch?: typeof fetch;
  /** Called with each error in the background. By default nothing is printed. */
  onError?: (error: Error) => void;
  /** Called for each call that a rule blocks, downgrades or observes. */
  onVerdict?: (verdict: VerdictNote) => void;
}

export interface VerdictNote {
  verdict: 'allowed' | 'blocked' | 'downgraded';
  ruleId: string | null;
  /** Rules in mode `observe` that the call breaks. */
  observed: string[];
}

export type { EndStatus };

const QUEUE_BYTES_MAX = 12_000_000;
const SPOOL_BYTES_MAX = 104_857_600;
const FLUSH_INTERVAL_MS = 1_000;
const REQUEST_TIMEOUT_MS = 10_000;
const EXIT_TIMEOUT_MS = 2_000;
/** Longest first load of the rules that `ready` waits for. */
const READY_MS = 5_000;

/** One connection to the service, for any number of clients. */
export class Trueup {
  readonly #reporter: Reporter | undefined;
  readonly #configuration: Configuration | undefined;
  readonly #recorder: Recorder;
  /** Whether rules or patterns are fetched. */
  readonly #isConfigured: boolean;
  #isReady: Promise<boolean> | undefined;

  /** Without an address or a key it observes nothing, and calls `onError`. */
  constructor(options: TrueupOptions = {}) {
    const { env } = platform();
    const url = (options.url ?? env('TRUEUP_URL') ?? '').replace(/\/+$/, '');
    const apiKey = options.apiKey ?? env('TRUEUP_KEY') ?? '';
    const onError = options.onError ?? (() => undefined);
    const hasRules = options.enforcement !== false;
    const hasPatterns = options.policyVerdicts === true;
    this.#isConfigured = hasRules || hasPatterns;
    if (url === '' || apiKey === '') {
      onError(new Error('trueup-sdk observes nothing: set url and apiKey, or TRUEUP_URL and TRUEUP_KEY'));
      // The option of one call must still not reach the provider, which would refuse it.
      this.#recorder = SILENT_RECORDER;
      return;
    }
    const fetchWith = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    const requestTimeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
    const spool = typeof options.spool === 'string' ? { folder: options.spool } : options.spool;
    const reporter = new Reporter(
      {
        url,
        apiKey,
        requestTimeoutMs,
        onError,
        queueBytesMax: options.queueBytesMax ?? QUEUE_BYTES_MAX,
        flushIntervalMs: options.flushIntervalMs ?? FLUSH_INTERVAL_MS,
        spool: spool && { folder: spool.folder, bytesMax: spool.bytesMax ?? SPOOL_BYTES_MAX },
      },
      fetchWith,
    );
    const enforcer = new Enforcer();
    const configuration = new Configuration(
      { url, apiKey, requestTimeoutMs, onError, hasRules, hasPatterns },
      enforcer,
      fetchWith,
    );
    const { team, feature, session, user, project, environment = env('TRUEUP_ENVIRONMENT') } = options;
    this.#recorder = new ServiceRecorder(
      {
        labels: { team, feature, session, user, project, environment },
        service: options.service ?? env('TRUEUP_SERVICE') ?? env('OTEL_SERVICE_NAME'),
        capturePayloads: options.capturePayloads === true,
        onVerdict: options.onVerdict,
        onError,
      },
      { enforcer, configuration, reporter },
    );
    this.#reporter = reporter;
    this.#configuration = configuration;
    if (this.#isConfigured && platform().hasTimers) void this.#load();
    if (options.flushAtExit !== false) {
      const exitTimeoutMs = options.exitTimeoutMs ?? EXIT_TIMEOUT_MS;
      platform().onEnd(async () => {
        if (reporter.hasWaiting && !(await reporter.flush(exitTimeoutMs))) reporter.abandon();
      });
    }
  }

  /** Reports the calls of an official client and applies the rules to them. The client stays the same object. */
  observe<Client extends object>(client: Client, labels: Labels = {}): Client {
    try {
      return attach(client, this.#recorder, labels);
    } catch (error) {
      this.#recorder.reportError(new Error(`the client is not observed: ${messageOf(error)}`));
      return client;
    }
  }

  /** True: the first rules and patterns are there. Calls before them are not judged. */
  async ready(timeoutMs = READY_MS): Promise<boolean> {
    if (this.#configuration === undefined || !this.#isConfigured) return false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const isReady = await Promise.race([this.#load(), late]);
    clearTimeout(timer);
    return isReady;
  }

  /** Asks for the rules and patterns now. True: the service has answered. */
  async refresh(): Promise<boolean> {
    return this.#isConfigured ? ((await this.#configuration?.refresh()) ?? false) : false;
  }

  /** Sends what waits. True: nothing waits any more. */
  async flush(timeoutMs?: number): Promise<boolean> {
    return (await this.#reporter?.flush(timeoutMs)) ?? true;
  }

  /** Sends what waits and stops. */
  async close(timeoutMs?: number): Promise<boolean> {
    this.#configuration?.close();
    return (await this.#reporter?.close(timeoutMs)) ?? true;
  }

  get stats(): ReporterStats {
    return (
      this.#reporter?.stats ?? { recorded: 0, sent: 0, dropped: 0, refused: 0, waiting: 0, waitingBytes: 0 }
    );
  }

  #load(): Promise<boolean> {
    this.#isReady ??= (this.#configuration as Configuration).refresh().then((isLoaded) => {
      if (!isLoaded) this.#isReady = undefined;
      return isLoaded;
    });
    return this.#isReady;
  }
}

/** Connections that `observe` has made, by address and key. */
const SHARED = Symbol.for('trueup.shared');

function shared(): Map<string, Trueup> {
  const place = globalThis as unknown as Record<symbol, Map<string, Trueup> | undefined>;
  place[SHARED] ??= new Map();
  return place[SHARED];
}

/**
 * Reports the calls of an official client. Options beside the labels count for the first client of an address and key;
 * later ones share its connection.
 */
export function observe<Client extends object>(client: Client, options: TrueupOptions = {}): Client {
  const { env } = platform();
  const key = `${options.url ?? env('TRUEUP_URL') ?? ''}\n${options.apiKey ?? env('TRUEUP_KEY') ?? ''}`;
  const connections = shared();
  let trueup = connections.get(key);
  const { team, feature, session, user, project, environment, ...rest } = options;
  if (trueup === undefined) {
    trueup = new Trueup(rest);
    connections.set(key, trueup);
  }
  return trueup.observe(client, { team, feature, session, user, project, environment });
}

/** Sends what waits in every connection that `observe` has made. */
export async function flush(timeoutMs?: number): Promise<boolean> {
  const sent = await Promise.all([...shared().values()].map((trueup) => trueup.flush(timeoutMs)));
  return sent.every((isSent) => isSent);
}

/** Waits for the rules of every connection that `observe` has made. */
export async function ready(timeoutMs?: number): Promise<boolean> {
  const loaded = await Promise.all([...shared().values()].map((trueup) => trueup.ready(timeoutMs)));
  return loaded.every((isLoaded) => isLoaded);
}
