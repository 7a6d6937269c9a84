import type { Socket } from 'node:net';
import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import pg from 'pg';

/** Channels of NOTIFY between processes, sent inside the transaction of the change; the payload is the row's id. */
export const CHANGE_CHANNELS = ['key_changed', 'settings_changed'] as const;
export type ChangeChannel = (typeof CHANGE_CHANNELS)[number];

/** A cache that listens for changes. */
export interface ChangeListener {
  /** The row with this id has changed, and the change is committed. */
  changed(id: string): void;
  /** Changes may have been missed: the listener must drop its cache. */
  missed(): void;
}

/** The source of change notices: `ChangeFeed`, or NO_CHANGES in a process that relies on the expiry of its caches. */
export interface Changes {
  subscribe(channel: ChangeChannel, listener: ChangeListener): void;
}

/** For a process without a feed: it never reports a change. */
export const NO_CHANGES: Changes = { subscribe: () => undefined };

export interface ChangeFeedOptions {
  /** Connection string without a transaction pooler: LISTEN belongs to a session. */
  directUrl: string;
  /** Called once when the connection is lost or fails; the feed keeps retrying. */
  onLost(error: unknown): void;
  onBack?(): void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;
/**
 * Milliseconds between probes: a connection whose other end disappeared silently is found by a probe without an answer.
 */
const PROBE_EVERY_MS = 10_000;
const PROBE_TIMEOUT_MS = 5_000;
const END_TIMEOUT_MS = 1_000;

/**
 * Changes that other processes commit, over one listening connection that reconnects; each reconnect reports `missed`.
 */
export class ChangeFeed implements Changes {
  readonly #options: ChangeFeedOptions;
  readonly #listeners = new Map<string, ChangeListener[]>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #isListening = false;
  /** Whether the loss of the connection has been reported. */
  #isLost = false;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  subscribe(channel: ChangeChannel, listener: ChangeListener): void {
    this.#listeners.set(channel, [...(this.#listeners.get(channel) ?? []), listener]);
  }

  /**
   * Begins to listen. Resolves once it listens, or after the first failed attempt: the process also works without it.
   */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#running ??= this.#run(resolve);
    });
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(onFirstTry: () => void): Promise<void> {
    let waitMs = RETRY_FIRST_MS;
    while (!this.#stopping.signal.aborted) {
      await this.#listenUntilLost(() => {
        waitMs = RETRY_FIRST_MS;
        onFirstTry();
      }).catch((error: unknown) => this.#noteLoss(error));
      onFirstTry();
      await pause(waitMs, this.#stopping.signal);
      waitMs = Math.min(waitMs * 2, RETRY_MAX_MS);
    }
  }

  #noteLoss(error: unknown): void {
    if (this.#isLost || this.#stopping.signal.aborted) return;
    this.#isLost = true;
    this.#options.onLost(error);
  }

  /** Runs one connection from start to end. Rejects with the reason of its end. */
  async #listenUntilLost(onListening: () => void): Promise<never> {
    const client = new pg.Client({
      connectionString: this.#options.directUrl,
      application_name: 'trueup-changes',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
    });
    let stop: () => void = () => undefined;
    const lost = new Promise<never>((_, reject) => {
      client.once('error', reject);
      client.once('end', () => reject(new Error('the connection that listens has ended')));
      stop = () => reject(new Error('the feed is closed'));
    });
    this.#stopping.signal.addEventListener('abort', stop);
    // Awaited below; until then its end must not be an unhandled rejection.
    lost.catch(() => undefined);
    client.on('error', () => undefined);
    client.on('notification', ({ channel, payload }) => this.#tell(channel, payload ?? ''));
    let probes: NodeJS.Timeout | undefined;
    try {
      await Promise.race([client.connect(), lost]);
      await Promise.race([client.query(CHANGE_CHANNELS.map((name) => `listen ${name}`).join('; ')), lost]);
      this.#isListening = true;
      if (this.#isLost) this.#options.onBack?.();
      this.#isLost = false;
      // Listeners may have missed changes before LISTEN.
      this.#tellMissed();
      onListening();
      probes = setInterval(() => void probe(client), PROBE_EVERY_MS);
      return await lost;
    } finally {
      this.#isListening = false;
      clearInterval(probes);
      this.#stopping.signal.removeEventListener('abort', stop);
      await end(client);
    }
  }

  #tell(channel: string, id: string): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener.changed(id);
  }

  #tellMissed(): void {
    for (const listener of [...this.#listeners.values()].flat()) listener.missed();
  }
}

/** Closes a connection that does not answer a probe, which is then handled as lost. */
async function probe(client: pg.Client): Promise<void> {
  const late = setTimeout(() => cut(client, 'the connection that listens gives no answer'), PROBE_TIMEOUT_MS);
  await client.query('select 1').catch(() => undefined);
  clearTimeout(late);
}

async function end(client: pg.Client): Promise<void> {
  const late = setTimeout(() => cut(client, 'the connection does not end'), END_TIMEOUT_MS);
  await client.end().catch(() => undefined);
  clearTimeout(late);
}

function cut(client: pg.Client, why: string): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.destroy(new Error(why));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return setTimeoutPromise(ms, undefined, { signal }).catch(() => undefined);
}
