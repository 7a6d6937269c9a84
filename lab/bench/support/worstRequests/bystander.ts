import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeOtlp } from './otlpBytes.js';
import { bodyOfShape } from './traceShapes.js';

const HEALTH_EVERY_MS = 20;
const INGEST_EVERY_MS = 50;

export interface Seen<T> {
  outcome: T | Error;
  /** The longest pause of the API's event loop, in CPU time. */
  pauseMs: number;
  /** The slowest answers to other clients meanwhile. */
  healthMs: number;
  ingestMs: number;
  /** Other clients' requests with a wrong answer. */
  failures: number;
}

/** Another organization and a health check, which run during an expensive request. */
export class Bystander {
  readonly #url: string;
  readonly #key: string;
  #failures = 0;

  readonly #pauseFile: string;

  /** @param pauseFile the file in which the API records its pauses. */
  constructor(port: number, key: string, pauseFile: string) {
    this.#url = `http://127.0.0.1:${port}`;
    this.#key = key;
    this.#pauseFile = pauseFile;
  }

  async watch<T>(work: () => Promise<T>): Promise<Seen<T>> {
    this.#failures = 0;
    writeFileSync(this.#pauseFile, '');
    const stopping = new AbortController();
    const health = this.#repeat(HEALTH_EVERY_MS, stopping.signal, () => this.#askHealth());
    const ingest = this.#repeat(INGEST_EVERY_MS, stopping.signal, () => this.#ingest());
    const outcome = await work().catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    stopping.abort();
    const [healthMs, ingestMs] = await Promise.all([health, ingest]);
    return { outcome, healthMs, ingestMs, failures: this.#failures, pauseMs: this.#longestPause() };
  }

  /** The slowest of many requests; one that is open at the end counts too. */
  async #repeat(everyMs: number, signal: AbortSignal, ask: () => Promise<void>): Promise<number> {
    let slowest = 0;
    do {
      const started = performance.now();
      await ask().catch(() => {
        this.#failures += 1;
      });
      slowest = Math.max(slowest, performance.now() - started);
      await sleep(everyMs);
    } while (!signal.aborted);
    return slowest;
  }

  async #askHealth(): Promise<void> {
    const response = await fetch(`${this.#url}/healthz`);
    await response.text();
    if (!response.ok) throw new Error(`/healthz answered ${response.status}`);
  }

  async #ingest(): Promise<void> {
    const response = await fetch(`${this.#url}/api/v1/ingest/trace`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/x-protobuf' },
      body: new Uint8Array(encodeOtlp(bodyOfShape({ name: 'one call', spans: 1, parent: () => undefined }))),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`ingest of the other organization answered ${response.status}`);
  }

  #longestPause(): number {
    const lines = readFileSync(this.#pauseFile, 'utf8').split('\n');
    return Math.max(0, ...lines.filter((line) => line !== '').map((line) => Number(line.split(' ')[1])));
  }
}
