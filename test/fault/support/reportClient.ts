import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { pause } from './loadClient.js';

/** An answer that takes longer counts as a connection that broke. */
const ANSWER_LIMIT_MS = 180_000;
/** Calls of a storm, and spans of a request. */
const STORM_CALLS = 20;
const SPANS = 5;

/** How clients report calls: each by two instrumentations, or the same calls again and again. */
export type Reporting = 'twice' | 'in a storm';

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

/** Clients that report calls in ever new spans, each request until it is acknowledged. */
export class ReportClient {
  /** Response ids of acknowledged calls. */
  readonly acknowledged = new Set<string>();
  readonly statuses = new Set<number>();
  requests = 0;
  readonly #reporting: Reporting;
  readonly #key: string;
  readonly #baseUrl: string;
  readonly #storm = Array.from({ length: STORM_CALLS }, () => `resp-${hex(8)}`);
  #isRunning = true;
  #loops: Promise<void>[] = [];

  constructor({ baseUrl, key, reporting }: { baseUrl: string; key: string; reporting: Reporting }) {
    this.#baseUrl = baseUrl;
    this.#key = key;
    this.#reporting = reporting;
  }

  start(clients: number): void {
    this.#loops = Array.from({ length: clients }, () => this.#loop());
  }

  /** Starts no new request; resolves when each one in progress is acknowledged. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }

  async #loop(): Promise<void> {
    for (let turn = 0; this.#isRunning; turn += 1) {
      if (this.#reporting === 'in a storm') {
        const first = (turn * SPANS) % STORM_CALLS;
        await this.#report(this.#storm.slice(first, first + SPANS));
        continue;
      }
      const ids = Array.from({ length: SPANS }, () => `resp-${hex(8)}`);
      await this.#report(ids);
      await this.#report(ids);
    }
  }

  /** Reports calls by new spans until they are acknowledged. */
  async #report(ids: readonly string[]): Promise<void> {
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: ids.map(spanOf) }] }] });
    while (!(await this.#send(body))) await pause(20);
    this.requests += 1;
    for (const id of ids) this.acknowledged.add(id);
  }

  async #send(body: string): Promise<boolean> {
    try {
      const response = await fetch(`${this.#baseUrl}/v1/traces`, {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
        signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      });
      await response.arrayBuffer();
      this.statuses.add(response.status);
      return response.status === 202;
    } catch {
      this.statuses.add(0);
      return false;
    }
  }
}

/** A span that reports a call of $0.01, at some time of the last hour. */
function spanOf(responseId: string) {
  const start = BigInt(Date.now() - 3_600_000 + Math.floor(Math.random() * 60_000)) * 1_000_000n;
  const attribute = (key: string, value: object) => ({ key, value });
  return {
    traceId: hex(16),
    spanId: hex(8),
    name: 'chat',
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(start + 1_000_000n),
    attributes: [
      attribute('gen_ai.system', { stringValue: 'openai' }),
      attribute('gen_ai.request.model', { stringValue: 'gpt-4o' }),
      attribute('gen_ai.usage.input_tokens', { intValue: '10' }),
      attribute('gen_ai.usage.output_tokens', { intValue: '5' }),
      attribute('gen_ai.response.id', { stringValue: responseId }),
      attribute('gen_ai.response.cost_usd', { doubleValue: 0.01 }),
    ],
  };
}

/** Calls that are lost or counted more than once, as sentences; empty when each acknowledged call counts once. */
export async function auditReports(
  client: ReportClient,
  superuser: pg.Pool,
  orgId: string,
): Promise<string[]> {
  const { rows } = await superuser.query<{ response_id: string; live: number }>(
    `select s.response_id, count(e.id)::int as live from call_spans s
     left join events e on e.org_id = s.org_id and e.id = coalesce(s.live_event_id, s.event_id) and e.superseded_by is null
     where s.org_id = $1 and s.response_id is not null group by 1`,
    [orgId],
  );
  const { rows: counted } = await superuser.query<{ live: number; cost: string }>(
    `select count(*)::int as live, coalesce(sum(cost_usd), 0)::text as cost from events where org_id = $1 and superseded_by is null`,
    [orgId],
  );
  const faults = rows.flatMap(({ response_id: id, live }) =>
    live === 1 ? [] : [`${id} counts ${live} times`],
  );
  const stored = new Set(rows.map(({ response_id: id }) => id));
  for (const id of client.acknowledged)
    if (!stored.has(id)) faults.push(`${id} was acknowledged and is lost`);
  const { live = 0, cost = '0' } = counted[0] ?? {};
  if (live !== stored.size) faults.push(`${live} events count for ${stored.size} calls`);
  if (Number(cost) !== Number((stored.size / 100).toFixed(2)))
    faults.push(`${stored.size} calls cost ${cost}`);
  return faults;
}
