import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { picoOfNumeric } from '../../db/support/liveEvents.js';
import type { SeededRandom } from '../../fakes/seededRandom.js';

/** An answer that takes longer counts as a connection that broke: far longer than a busy machine needs for one. */
const ANSWER_LIMIT_MS = 180_000;

/** A batch as it was sent, and the answer to its client. */
export interface SentBatch {
  /** Request ids of its events. */
  ids: string[];
  /** Cost of each event in pico-dollars. */
  costs: bigint[];
  /** The counts of each 202 that it got; empty: never acknowledged. */
  accepted: number[];
}

/** One answer as the client saw it; status 0: the connection broke. */
export interface SeenAnswer {
  status: number;
  retryAfter: string | null;
  /** Why the connection broke, e.g. ECONNREFUSED; null for an answer. */
  broke: string | null;
  /** The sent batch, and whether an earlier request with it had been acknowledged. */
  batch: SentBatch;
  wasAcknowledged: boolean;
}

/**
 * Clients that send batches of events without pause, each until it is acknowledged, and record everything that they
 * sent and received.
 */
export class LoadClient {
  readonly batches: SentBatch[] = [];
  readonly answers: SeenAnswer[] = [];
  readonly #random: SeededRandom;
  readonly #key: string;
  #baseUrl: string;
  #isRunning = true;
  #loops: Promise<void>[] = [];

  constructor(options: { baseUrl: string; key: string; random: SeededRandom }) {
    this.#baseUrl = options.baseUrl;
    this.#key = options.key;
    this.#random = options.random;
  }

  /** Sets the service's address, which may change at a restart. */
  moveTo(baseUrl: string): void {
    this.#baseUrl = baseUrl;
  }

  start(clients: number): void {
    this.#loops = Array.from({ length: clients }, (_, client) => this.#loop(client));
  }

  /** Sends no new batch; resolves when each one in progress is acknowledged or given up. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }

  get acknowledged(): number {
    return this.batches.filter((batch) => batch.accepted.length > 0).length;
  }

  async #loop(client: number): Promise<void> {
    while (this.#isRunning) {
      const size = this.#random.integer(1, 8);
      const batch: SentBatch = {
        ids: Array.from({ length: size }, () => `req-${randomUUID()}`),
        costs: Array.from({ length: size }, () => BigInt(this.#random.integer(1, 999_999_999))),
        accepted: [],
      };
      this.batches.push(batch);
      const body = this.#write(batch, client % 2 === 0);
      // One in ten is never repeated: it may be stored or not, but not twice.
      const repeats = this.#random.integer(1, 10) > 1;
      do {
        await this.#send(batch, body);
        // An acknowledged batch is sent again now and then: its client did not hear the answer.
        if (batch.accepted.length === 1 && this.#random.integer(1, 5) === 1) await this.#send(batch, body);
      } while (batch.accepted.length === 0 && repeats);
    }
  }

  async #send(batch: SentBatch, { path, text }: { path: string; text: string }): Promise<void> {
    const known = { batch, wasAcknowledged: batch.accepted.length > 0 };
    try {
      const response = await fetch(this.#baseUrl + path, {
        method: 'POST',
        body: text,
        headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
        signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      });
      const answer = (await response.json()) as { accepted?: number };
      const retryAfter = response.headers.get('retry-after');
      this.answers.push({ status: response.status, retryAfter, broke: null, ...known });
      if (response.status === 202) batch.accepted.push(answer.accepted ?? -1);
      else await pause(20);
    } catch (error) {
      const { cause } = error as { cause?: { code?: string } };
      this.answers.push({ status: 0, retryAfter: null, broke: cause?.code ?? String(error), ...known });
      await pause(20);
    }
  }

  /** The batch as events of a wrapper, or as spans with a response id. */
  #write(batch: SentBatch, asEvents: boolean): { path: string; text: string } {
    const micros = BigInt(Date.now() - 3_600_000) * 1_000n;
    const usd = (pico: bigint) => Number(pico) / 1e12;
    if (asEvents) {
      const events = batch.ids.map((request_id, index) => ({
        provider: 'openai',
        model: 'gpt-4o',
        timestamp: new Date(Number(micros / 1_000n)).toISOString(),
        request_id,
        input_tokens: 10,
        output_tokens: 5,
        cost_usd: usd(batch.costs[index] ?? 0n),
      }));
      return { path: '/api/v1/ingest/events', text: JSON.stringify({ events }) };
    }
    const attribute = (key: string, value: object) => ({ key, value });
    const spans = batch.ids.map((id, index) => ({
      traceId: randomUUID().replaceAll('-', ''),
      spanId: randomUUID().replaceAll('-', '').slice(0, 16),
      name: 'chat',
      startTimeUnixNano: String(micros * 1_000n),
      endTimeUnixNano: String(micros * 1_000n + 1_000_000n),
      attributes: [
        attribute('gen_ai.system', { stringValue: 'openai' }),
        attribute('gen_ai.request.model', { stringValue: 'gpt-4o' }),
        attribute('gen_ai.usage.input_tokens', { intValue: '10' }),
        attribute('gen_ai.usage.output_tokens', { intValue: '5' }),
        attribute('gen_ai.response.id', { stringValue: id }),
        attribute('gen_ai.response.cost_usd', { doubleValue: usd(batch.costs[index] ?? 0n) }),
      ],
    }));
    return { path: '/v1/traces', text: JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }) };
  }
}

export function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}

/** Differences between a client's record and the database, as sentences; empty when every promise was kept. */
export async function auditBook(client: LoadClient, superuser: pg.Pool, orgId: string): Promise<string[]> {
  const { rows } = await superuser.query<{ request_id: string; count: string; cost: string }>(
    'select request_id, count(*) as count, sum(cost_usd)::text as cost from events where org_id = $1 group by 1',
    [orgId],
  );
  const stored = new Map(rows.map((row) => [row.request_id, row]));
  const faults: string[] = [];
  let sent = 0n;
  for (const batch of client.batches) {
    if (new Set(batch.accepted).size > 1 || batch.accepted.some((count) => count !== batch.ids.length))
      faults.push(`a batch of ${batch.ids.length} was acknowledged with ${batch.accepted}`);
    batch.ids.forEach((id, index) => {
      const row = stored.get(id);
      if (!row && batch.accepted.length > 0) faults.push(`${id} was acknowledged and is lost`);
      if (row && Number(row.count) !== 1) faults.push(`${id} is stored ${row.count} times`);
      if (row) sent += batch.costs[index] ?? 0n;
      stored.delete(id);
    });
  }
  for (const id of stored.keys()) faults.push(`${id} is stored and was never sent`);
  const total = rows.reduce((sum, row) => sum + picoOfNumeric(row.cost), 0n);
  if (total !== sent) faults.push(`the stored cost is ${total}, the client's book says ${sent}`);
  return faults;
}
