import { HttpConnection } from './httpConnection.js';
import type { PromptPlan } from './promptTexts.js';
import { Random } from './random.js';
import { quantile } from './statistics.js';
import { drawKnownCalls, type KnownCall, TraceBody } from './traceBodies.js';
import { Traffic } from './traffic.js';

/** Bodies of a connection. It sends one request at a time, so the other bodies can be changed meanwhile. */
const BODIES_A_CONNECTION = 4;
/** Concurrent sessions of a connection. */
const OPEN_SESSIONS = 10;

/** Calls that a storm reports again and again. */
const STORM_CALLS = 20;
/** The requests of readers, in turns. */
const READS = ['/api/v1/usage/summary', '/api/v1/events?limit=100'];

/**
 * The reports of a call by its clients: once; by two instrumentations, of which the second sends its request after the answer
 * to the first; or as a storm, in which all connections report the same calls in ever new spans.
 */
export type ReportPlan = 'once' | 'twice' | 'storm';

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
  /** Absent: once. */
  reports?: ReportPlan | undefined;
  /** Connections that read meanwhile, with the first key; absent: none. */
  readers?: number | undefined;
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
  /** New calls among the accepted ones; the others are further reports of calls. */
  calls: number;
  /** Answered reads. */
  reads: number;
  /** Number of answers other than 202. */
  refused: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time of this client. */
  cpuSeconds: number;
}

/** A connection that sends traces. */
interface Sender {
  connection: HttpConnection;
  key: string;
  traffic: Traffic;
  bodies: TraceBody[];
}

/** Sends traces for some time over many connections, reads meanwhile, and counts acknowledged events. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const random = new Random(plan.seed);
  const senders = await openSenders(plan, random);
  const readers = await Promise.all(
    Array.from({ length: plan.readers ?? 0 }, () => HttpConnection.open(plan.port)),
  );
  const result = { requests: 0, accepted: 0, duplicates: 0, calls: 0, reads: 0, refused: 0 };
  const latencies: number[] = [];
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  const deadline = started + plan.seconds * 1000;
  const known = new Set<TraceBody>();
  const send = async ({ connection, key, traffic, bodies }: Sender) => {
    let turn = 0;
    let isRepeat = false;
    let isSecond = false;
    while (performance.now() < deadline) {
      if (!isRepeat && !isSecond) turn += 1;
      const body = bodies[turn % BODIES_A_CONNECTION] as TraceBody;
      if (!isRepeat) {
        if (plan.reports === 'storm') body.reportAgain(random);
        else if (isSecond) body.reportByOther(random);
        else body.renew(traffic, random);
      }
      const sent = performance.now();
      const answer = await connection.post('/api/v1/ingest/trace', key, body.bytes);
      latencies.push(performance.now() - sent);
      result.requests += 1;
      const isTaken = answer.status === 202;
      if (isTaken) {
        const accepted = countIn(answer.body, /"accepted":(\d+)/);
        const duplicates = countIn(answer.body, /"duplicates":(\d+)/);
        result.accepted += accepted;
        result.duplicates += duplicates;
        if (plan.reports !== 'storm' && !isSecond) result.calls += accepted - duplicates;
        known.add(body);
      } else result.refused += 1;
      // Refused requests are sent again too, since they were not stored.
      isRepeat = !isTaken || random.below(100) < plan.repeatPercent;
      if (!isRepeat) isSecond = plan.reports === 'twice' && !isSecond;
    }
  };
  const read = async (connection: HttpConnection) => {
    for (let turn = 0; performance.now() < deadline; turn += 1) {
      const path = READS[turn % READS.length] as string;
      const { status } = await connection.get(path, plan.keys[0] as string);
      if (status === 200) result.reads += 1;
      else result.refused += 1;
    }
  };
  await Promise.all([...senders.map(send), ...readers.map(read)]);
  const seconds = (performance.now() - started) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  if (plan.reports === 'storm') result.calls = new Set([...known].flatMap(({ calls }) => calls)).size;
  for (const { connection } of senders) connection.close();
  for (const connection of readers) connection.close();
  return {
    seconds,
    ...result,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
}

async function openSenders(plan: LoadPlan, random: Random): Promise<Sender[]> {
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
  const [first] = senders;
  const storm = plan.reports === 'storm' && first ? drawKnownCalls(first.traffic, STORM_CALLS) : undefined;
  let drawn = 0;
  const bodyOf = (traffic: Traffic) => {
    const from = drawn;
    drawn += plan.spansPerRequest;
    const known =
      storm && Array.from({ length: plan.spansPerRequest }, (_, at) => stormCall(storm, from + at));
    return new TraceBody(traffic, random, plan.spansPerRequest, plan.prompts, known);
  };
  return senders.map((sender) => ({
    ...sender,
    bodies: Array.from({ length: BODIES_A_CONNECTION }, () => bodyOf(sender.traffic)),
  }));
}

/** Requests report the calls of a storm in turns. */
function stormCall(storm: readonly KnownCall[], at: number): KnownCall {
  return storm[at % storm.length] as KnownCall;
}

function countIn(body: string, pattern: RegExp): number {
  return Number(pattern.exec(body)?.[1] ?? 0);
}
