/**
 * bench:read — measures how the cost of reads grows with ten times as many events. docs/benchmarks.md explains the
 * measurement and the figures.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Database } from '../../db/client.js';
import { listEvents } from '../../db/events/events.js';
import { OrgDb } from '../../db/orgDb.js';
import { EVENT_COLUMNS } from '../../domain/events/event.js';
import { isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';
import { readCpuOf, spentBetween } from './support/backendCpu.js';
import { openBenchDatabase, startBenchCluster, vacuum } from './support/cluster.js';
import { countCopiedRows } from './support/copyCount.js';
import { readExport } from './support/exportClient.js';
import { readFlags } from './support/flags.js';
import { HttpConnection } from './support/httpConnection.js';
import { type LoadedWindow, loadRows } from './support/loadRows.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { readCpuSeconds } from './support/processCpu.js';
import { readProcessMetrics, startProgram } from './support/programs.js';
import { formatCount, formatMebibytes, median, quantile } from './support/statistics.js';

const TARGETS = {
  /** Maximum factor on the time of a summary over ten times the events. */
  summaryGrowth: 1.1,
  latestMs: 5,
  /** Minimum share of COPY's rows per second. */
  exportShare: 0.5,
  /** Maximum memory of the API after exports, as a multiple of that after the first export. */
  memoryGrowth: 1.2,
};
const TENTH = 10;
const WINDOW_DAYS = 29n;
const WARM_UPS = 20;
const LATEST_EVENTS = 100;
const LOAD_CONNECTIONS = 6;
const MEMORY_POLL_MS = 250;

const flags = readFlags(
  { rows: 10_000_000, requests: 200, exports: 3, seed: Date.now() % 1_000_000 },
  { 'no-gate': false, keep: false, 'only-exports': false, 'export-large': false, profile: false },
);
/** `--keep`: the folder of the database that the next run with `--keep` and as many rows measures without loading. */
const KEPT = join(tmpdir(), `trueup-bench-read-${flags.rows}`);
/** `--profile`: the folder for CPU profiles of the API. */
const PROFILES = join(tmpdir(), 'trueup-bench-read-profiles');
const LOADED = join(KEPT, 'loaded.json');

interface Loaded {
  small: BenchOrganization;
  large: BenchOrganization;
  window: LoadedWindow;
  /** Median of the small organization's summary while the table held no more. */
  firstMs: number;
}

interface Bench extends Loaded {
  url: string;
  port: number;
  pid: number;
}

/** Milliseconds of each answer to the same request, sent one after the other. */
async function timeRequests(port: number, key: string, path: string, count: number): Promise<number[]> {
  const connection = await HttpConnection.open(port);
  const times: number[] = [];
  for (let turn = 0; turn < WARM_UPS + count; turn += 1) {
    const started = performance.now();
    const answer = await connection.get(path, key);
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.body}`);
    if (turn >= WARM_UPS) times.push(performance.now() - started);
  }
  connection.close();
  return times;
}

const SUMMARY = '/api/v1/usage/summary';

/** Alternates the same request between both organizations, so that other load affects both. */
async function benchSummary(bench: Bench): Promise<boolean> {
  const small: number[] = [];
  const large: number[] = [];
  const share = Math.ceil(flags.requests / TENTH);
  for (let turn = 0; turn < TENTH; turn += 1) {
    small.push(...(await timeRequests(bench.port, bench.small.key, SUMMARY, share)));
    large.push(...(await timeRequests(bench.port, bench.large.key, SUMMARY, share)));
  }
  const ratio = median(large) / median(small);
  process.stdout.write(
    `30-day summary: ${formatCount(flags.rows / TENTH)} events ${median(small).toFixed(2)} ms ` +
      `(${bench.firstMs.toFixed(2)} ms while the table held no more), ${formatCount(flags.rows)} events ${median(large).toFixed(2)} ms, ` +
      `p99 ${quantile(large, 0.99).toFixed(2)} ms, target below ${TARGETS.summaryGrowth}, ratio=${ratio.toFixed(2)}\n`,
  );
  return ratio < TARGETS.summaryGrowth;
}

async function benchLatest(bench: Bench): Promise<boolean> {
  const path = `/api/v1/events?limit=${LATEST_EVENTS}`;
  const times = await timeRequests(bench.port, bench.large.key, path, flags.requests);
  const database = openBenchDatabase(bench.url, 1);
  const orgDb = new OrgDb(database, bench.large.orgId);
  const queries: number[] = [];
  for (let turn = 0; turn < flags.requests; turn += 1) {
    const started = performance.now();
    await listEvents(orgDb, {}, { limit: LATEST_EVENTS, offset: 0 }, false);
    queries.push(performance.now() - started);
  }
  await database.close();
  const ratio = median(times) / TARGETS.latestMs;
  process.stdout.write(
    `latest ${LATEST_EVENTS} of ${formatCount(flags.rows)} events over HTTP: ${median(times).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(2)} ms, ` +
      `the query alone ${median(queries).toFixed(2)} ms, target below ${TARGETS.latestMs} ms, ratio=${ratio.toFixed(2)}\n`,
  );
  return ratio < 1;
}

const EXPORTS = ['jsonl', 'json'].flatMap((format) =>
  [false, true].map((withPayloads) => ({ format, withPayloads })),
);

const formatCpu = (cpu: Record<string, number>, rows: number) =>
  Object.entries(cpu)
    .map(([name, seconds]) => `${name} ${((seconds * 1e6) / rows).toFixed(1)}`)
    .join(', ');

/** Alternates the export and COPY of the same rows, in both formats, without and with payloads. */
async function benchExport(bench: Bench): Promise<boolean> {
  const highest: number[] = [];
  let isFast = true;
  // The first export compiles the API, and the first COPY this program.
  for (const withPayloads of [false, true]) await exportOnce(bench, 'jsonl', withPayloads);
  for (const { format, withPayloads } of EXPORTS) {
    const ratios: number[] = [];
    let shown = '';
    for (let turn = 0; turn < flags.exports; turn += 1) {
      const { copy, sent, rssBytes } = await exportOnce(bench, format, withPayloads);
      highest.push(rssBytes);
      ratios.push(copy.seconds / sent.seconds);
      shown =
        `${formatCount(copy.rows / sent.seconds)} rows/s (CPU µs a row: ${formatCpu(sent.cpu, copy.rows)}), ` +
        `COPY TO STDOUT ${formatCount(copy.rows / copy.seconds)} rows/s (${formatCpu(copy.cpu, copy.rows)})`;
    }
    const ratio = median(ratios);
    isFast &&= ratio >= TARGETS.exportShare;
    process.stdout.write(
      `export as ${format} ${withPayloads ? 'with' : 'without'} payloads: ${shown}, ` +
        `target at least ${TARGETS.exportShare}, ratio=${ratio.toFixed(2)}\n`,
    );
  }
  const growth = (highest.at(-1) ?? Number.NaN) / (highest[0] ?? Number.NaN);
  process.stdout.write(
    `memory of the API at its highest during each export: ${highest.map(formatMebibytes).join(', ')}, ratio=${growth.toFixed(2)}\n`,
  );
  return isFast && growth <= TARGETS.memoryGrowth;
}

async function exportOnce(bench: Bench, format: string, withPayloads: boolean) {
  const exported = flags['export-large'] ? bench.large : bench.small;
  const [start, end] = [bench.window.fromMicros, bench.window.toMicros].map(isoFromMicros);
  const query = `select ${EVENT_COLUMNS.map((name) => `e.${name}`).join(', ')}
       ${withPayloads ? ', p.payload, p.tool_input, p.tool_output, p.service' : ''} from events e
     ${withPayloads ? 'left join event_payloads p on p.org_id = e.org_id and p.timestamp = e.timestamp and p.event_id = e.id' : ''}
     where e.org_id = '${exported.orgId}' and e.timestamp >= '${start}' and e.timestamp <= '${end}'
       and e.superseded_by is null`;
  const own = readCpuSeconds(process.pid);
  const { postgresCpu, ...counted } = await countCopiedRows(bench.url, query);
  const copy = { ...counted, cpu: { Postgres: postgresCpu, client: readCpuSeconds(process.pid) - own } };
  const polls: number[] = [];
  const poll = setInterval(() => {
    readProcessMetrics(bench.port).then(
      ({ rssBytes }) => polls.push(rssBytes),
      () => undefined,
    );
  }, MEMORY_POLL_MS);
  const path = `/api/v1/events/export?format=${format}&include_payload=${withPayloads}&start=${start}&end=${end}`;
  const before = await readCpuOf({ API: bench.pid, client: process.pid }, bench.url);
  const { rows, seconds } = await readExport(bench.port, path, exported.key);
  const after = await readCpuOf({ API: bench.pid, client: process.pid }, bench.url);
  const cpu = Object.fromEntries(spentBetween(before, after));
  clearInterval(poll);
  polls.push((await readProcessMetrics(bench.port)).rssBytes);
  if (format === 'jsonl' && rows !== copy.rows)
    throw new Error(`the export has ${rows} rows, the table ${copy.rows}`);
  return { copy, sent: { seconds, cpu }, rssBytes: Math.max(...polls) };
}

async function load(database: Database, url: string, port: number): Promise<Loaded> {
  const [small, large] = (await makeOrganizations(database, 2)) as [BenchOrganization, BenchOrganization];
  const toMicros = BigInt(Date.now()) * 1000n;
  const window = { fromMicros: toMicros - WINDOW_DAYS * MICROS_PER_DAY, toMicros };
  await loadRows(database, url, small, flags.rows / TENTH, window, flags.seed);
  await vacuum(url);
  const firstMs = median(await timeRequests(port, small.key, SUMMARY, flags.requests));
  await loadRows(database, url, large, flags.rows, window, flags.seed + 10);
  await vacuum(url);
  return { small, large, window, firstMs };
}

function readKept(): Loaded {
  const { window, ...kept } = JSON.parse(readFileSync(LOADED, 'utf8'));
  return { ...kept, window: { fromMicros: BigInt(window.fromMicros), toMicros: BigInt(window.toMicros) } };
}

function keep({ window, ...loaded }: Loaded): void {
  const { fromMicros, toMicros } = window;
  const texts = { fromMicros: `${fromMicros}`, toMicros: `${toMicros}` };
  writeFileSync(LOADED, JSON.stringify({ ...loaded, window: texts }), { mode: 0o600 });
}

async function main(): Promise<boolean> {
  if (flags.keep) mkdirSync(KEPT, { recursive: true });
  const cluster = await startBenchCluster(flags.keep ? KEPT : undefined);
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const database = openBenchDatabase(url, LOAD_CONNECTIONS);
    stops.push(() => database.close());
    const api = await startProgram({
      name: 'api',
      url,
      folder: cluster.folder,
      profileDir: flags.profile ? PROFILES : undefined,
    });
    stops.push(() => api.stop());
    process.stdout.write(
      `bench:read, Postgres ${cluster.version} with its own settings, seed ${flags.seed}\n`,
    );
    const isLoaded = flags.keep && existsSync(LOADED);
    const loaded = isLoaded ? readKept() : await load(database, url, api.port);
    if (flags.keep && !isLoaded) keep(loaded);
    const bench: Bench = { ...loaded, url, port: api.port, pid: api.pid };
    const others = flags['only-exports'] ? [] : [await benchSummary(bench), await benchLatest(bench)];
    return [...others, await benchExport(bench)].every((isGood) => isGood);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:read: a target is missed\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
