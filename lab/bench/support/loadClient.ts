import { HttpConnection } from './httpConnection.js';
import type { PromptPlan } from './promptTexts.js';
import { Random } from './random.js';
import { quantile } from './statistics.js';
import { TraceBody } from './traceBodies.js';
import { Traffic } from './traffic.js';

/** Bodies of a connection. It sends one request at a time, so the other bodies can be changed meanwhile. */
const BODIES_A_CONNECTION = 4;
/** Concurrent sessions of a connection. */
const OPEN_SESSIONS = 10;

export interface LoadPlan {
  port: number;
  /** One key for each organization; connections are divided among them. */
  keys: readonly string[];
  connections: number;
  /** Users of all organizations together, divided equally. */
  users: number;
  spansPerRequest: number;
  seconds: number;
  /** Percentage of requests that are sent twice, as by an exporter that received no answer. */
  repeatPercent: number;
  seed: number;
  /** The prompts of the calls; absent: no client sends prompts. */
  prompts?: PromptPlan | undefined;
}

export interface LoadResult {
  seconds: number;
  requests: number;
  /** According to the answers. */
  accepted: number;
  duplicates: number;
  /** Number of answers other than 202. */
  refused: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time of this client. */
  cpuSeconds: number;
}

/** Sends traces for some time over many connections and counts acknowledged events. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const random = new Random(plan.seed);
  const usersEach = Math.ceil(plan.users / plan.keys.length);
  const senders = await Promise.all(
    Array.from({ length: plan.connections }, async (_, index) => {
      const organization = index % plan.keys.length;
      const users = { first: organization * usersEach, count: usersEach };
      return {
        connection: await HttpConnection.open(plan.port),
        key: plan.keys[organization] as string,
        traffic: new Traffic(random.next(), OPEN_SESSIONS, users),
      };
    }),
  );
  const bodies = senders.map(({ traffic }) =>
    Array.from(
      { length: BODIES_A_CONNECTION },
      () => new TraceBody(traffic, random, plan.spansPerRequest, plan.prompts),
    ),
  );
  const result = { requests: 0, accepted: 0, duplicates: 0, refused: 0 };
  const latencies: number[] = [];
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  const deadline = started + plan.seconds * 1000;
  await Promise.all(
    senders.map(async ({ connection, key, traffic }, index) => {
      let turn = 0;
      let isRepeat = false;
      while (performance.now() < deadline) {
        if (!isRepeat) turn += 1;
        const body = bodies[index]?.[turn % BODIES_A_CONNECTION] as TraceBody;
        if (!isRepeat) body.renew(traffic, random);
        const sent = performance.now();
        const answer = await connection.post('/api/v1/ingest/trace', key, body.bytes);
        latencies.push(performance.now() - sent);
        result.requests += 1;
        if (answer.status === 202) {
          result.accepted += countIn(answer.body, /"accepted":(\d+)/);
          result.duplicates += countIn(answer.body, /"duplicates":(\d+)/);
        } else result.refused += 1;
        // Refused requests are sent again too, since they were not stored.
        isRepeat = answer.status !== 202 || random.below(100) < plan.repeatPercent;
      }
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  for (const { connection } of senders) connection.close();
  return {
    seconds,
    ...result,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
}

function countIn(body: string, pattern: RegExp): number {
  return Number(pattern.exec(body)?.[1] ?? 0);
}
