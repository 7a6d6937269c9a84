/**
 * Measures the steps of ingest, in CPU microseconds a call: reading a body, mapping it, preparing a batch and writing
 * its statement in this process, storing it in Postgres, by the size of a batch, and folding it into totals.
 * docs/benchmarks.md has the budget.
 * `node bin/bootstrap.mjs lab/bench/ingestBudget`
 */
import pg from 'pg';
import { decodeBody } from '../../adapters/ingestBodies/decodeBody.js';
import type { Database } from '../../db/client.js';
import { storeStatement } from '../../db/events/storeStatement.js';
import { listUnfoldedOrganizations } from '../../db/usage/rollups.js';
import type { MappedBatch } from '../../domain/events/event.js';
import type { MapContext } from '../../domain/events/itemFault.js';
import { DEFAULT_SETTINGS } from '../../domain/installation/settings.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { prepareBatch } from '../../usecases/events/prepareBatch.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { readBackendCpu } from './support/backendCpu.js';
import { BENCH_APPLICATION, openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { foldEverything } from './support/fold.js';
import { MESSAGES } from './support/ingestLoads.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import type { PromptPlan } from './support/promptTexts.js';
import { Random } from './support/random.js';
import { TraceBody } from './support/traceBodies.js';
import { Traffic } from './support/traffic.js';

const APPLICATION = 'trueup-budget';
const BATCHES = [10, 100, 1_000];
const OPEN_SESSIONS = 10;
const USERS = 10_000;
/** Bodies with models and messages of their own. */
const BODIES = 20;
const flags = readFlags({ calls: 20_000, seed: 7 }, {});

interface Shape {
  name: string;
  spans: number;
  prompts: PromptPlan | undefined;
}

const SHAPES: readonly Shape[] = [
  { name: 'plain', spans: 1, prompts: undefined },
  { name: 'plain', spans: 20, prompts: undefined },
  { name: 'with messages', spans: 1, prompts: MESSAGES },
  { name: 'with messages', spans: 20, prompts: MESSAGES },
];

interface Bench {
  url: string;
  client: pg.Client;
  organization: BenchOrganization;
  book: PriceBook;
  context: MapContext;
}

/** Requests of a shape, as bytes; each seed makes other calls. */
function makeRequests({ spans, prompts }: Shape, seed: number): Buffer[] {
  const random = new Random(seed);
  const traffic = new Traffic(random.next(), OPEN_SESSIONS, { first: 0, count: USERS });
  const bodies = Array.from({ length: BODIES }, () => new TraceBody(traffic, random, spans, prompts));
  return Array.from({ length: Math.ceil(flags.calls / spans) }, (_, at) => {
    const body = bodies[at % BODIES] as TraceBody;
    body.renew(traffic, random);
    return Buffer.from(body.bytes);
  });
}

/** CPU microseconds a call of the work in this process. */
async function cpuMicros(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / flags.calls;
}

/** Reads and maps a shape's bodies, the second time after a first one that warms the code up. */
async function measureBodies(shape: Shape, { context }: Bench): Promise<string> {
  const requests = makeRequests(shape, flags.seed);
  const bytes = requests.reduce((sum, { length }) => sum + length, 0) / flags.calls;
  const decode = () => requests.map((body) => decodeBody('otlp_json', body)).length;
  const map = () => requests.map((body) => decodeBody('otlp_json', body).map(context)).length;
  for (const work of [decode, map]) await cpuMicros(work);
  const decoding = await cpuMicros(decode);
  const both = await cpuMicros(map);
  return `${Math.round(bytes)} bytes a call: decode ${decoding.toFixed(1)}, map ${(both - decoding).toFixed(1)}`;
}

/** Prepares, writes and stores a shape's calls in batches of `rows`. */
async function measureBatches(shape: Shape, rows: number, seed: number, bench: Bench): Promise<string> {
  const { client, organization, book, context } = bench;
  const { orgId, keyId } = organization;
  const mapped = makeRequests(shape, seed).map((body) => decodeBody('otlp_json', body).map(context));
  const each = Math.max(1, Math.round(rows / shape.spans));
  const groups: MappedBatch[][] = [];
  for (let at = 0; at < mapped.length; at += each) groups.push(mapped.slice(at, at + each));
  const prepared: Awaited<ReturnType<typeof prepareBatch>>[] = [];
  const prepare = await cpuMicros(async () => {
    for (const group of groups) {
      const requests = group.map((batch) => ({ orgId, keyId, defaultProjectId: null, batch }));
      prepared.push(await prepareBatch(requests, book, DEFAULT_SETTINGS));
    }
  });
  let statements: ReturnType<typeof storeStatement>[] = [];
  const write = await cpuMicros(() => {
    statements = prepared.map(({ events, links }) =>
      storeStatement(orgId, { events, links, alerts: [], isNew: true }),
    );
  });
  const backend = async () => (await readBackendCpu(bench.url)).get(APPLICATION) ?? Number.NaN;
  const before = await backend();
  const send = await cpuMicros(async () => {
    for (const { name, text, values } of statements) {
      await client.query(`begin; set local role app_rw; set local app.org_id = '${orgId}'`);
      await client.query({ name, text, values });
      await client.query('commit');
    }
  });
  const stored = (((await backend()) - before) / flags.calls) * 1e6;
  return `batches of ${rows}: prepare ${prepare.toFixed(1)}, write ${write.toFixed(1)}, send ${send.toFixed(1)}, Postgres ${stored.toFixed(1)}`;
}

/** Folds the calls that a shape's batches stored. */
async function measureFold(database: Database, url: string): Promise<string> {
  const calls = flags.calls * BATCHES.length;
  const backend = async () => (await readBackendCpu(url)).get(BENCH_APPLICATION) ?? Number.NaN;
  // The pool closes idle connections.
  await listUnfoldedOrganizations(database);
  const before = await backend();
  await foldEverything(database);
  const micros = (((await backend()) - before) / calls) * 1e6;
  return `fold of ${calls}: Postgres ${micros.toFixed(1)}`;
}

async function main(): Promise<void> {
  const cluster = await startBenchCluster();
  const url = await cluster.makeDatabase('budget');
  const database = openBenchDatabase(url, 1);
  const [organization] = await makeOrganizations(database, 1);
  const prices = await PriceBookHolder.open(database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  const book = prices.current();
  const context: MapContext = {
    nowMicros: BigInt(Date.now() + 3_600_000) * 1000n,
    oldestMicros: 0n,
    inferProvider: (model) => book.inferProvider(model),
  };
  const client = new pg.Client({ connectionString: url, application_name: APPLICATION });
  await client.connect();
  try {
    const bench = { url, client, organization: organization as BenchOrganization, book, context };
    let { seed } = flags;
    for (const shape of SHAPES) {
      const lines = [await measureBodies(shape, bench)];
      for (const rows of BATCHES) lines.push(await measureBatches(shape, rows, ++seed, bench));
      lines.push(await measureFold(database, url));
      process.stdout.write(
        `${shape.name}, ${shape.spans} spans a request, µs a call\n  ${lines.join('\n  ')}\n`,
      );
    }
  } finally {
    await client.end();
    await prices.settle();
    await database.close();
    await cluster.stop();
  }
}

await main();
