/**
 * bench:ingest — measures committed events per second over HTTP, as a share of the table's own insert rate.
 * docs/benchmarks.md explains the measurement and the figures.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ceiling, measureCeiling, type RowPattern, readRowPattern } from './support/ceiling.js';
import { checkTotals, countEvents } from './support/checkTotals.js';
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { foldEverything } from './support/fold.js';
import {
  type IngestBench,
  type Measured,
  measureProduct,
  REPEAT_PERCENT,
  USERS,
  whereTheTimeWent,
} from './support/ingestRuns.js';
import { makeOrganizations } from './support/organizations.js';
import { comparePolicies } from './support/policyRounds.js';
import { LoadProcess, startProgram } from './support/programs.js';
import { formatCount, formatMebibytes, median } from './support/statistics.js';

const ORGANIZATIONS = 20;
/** Spans per request → minimum share of the ceiling. */
const TARGETS = new Map([
  [1, 0.15],
  [20, 0.4],
]);
const PATTERN_ROWS = 5_000;
const WARM_UP_SECONDS = 3;
const FOLD_CONNECTIONS = 2;

const flags = readFlags(
  { rounds: 4, seconds: 8, 'ceiling-seconds': 5, connections: 200, spans: 0, seed: Date.now() % 1_000_000 },
  { 'no-gate': false, profile: false, policies: false },
);

/** The request sizes of this run: both, or that of `--spans`. */
function spansPerRequest(): number[] {
  return flags.spans === 0 ? [...TARGETS.keys()] : [flags.spans];
}

interface Bench extends IngestBench {
  ceilingUrl: string;
  pattern: RowPattern;
}

/** Alternates ceiling and product, so that other load on the machine affects both. */
async function runRounds(bench: Bench): Promise<{ ceilings: Ceiling[]; measured: Map<number, Measured[]> }> {
  const ceilings: Ceiling[] = [];
  const measured = new Map<number, Measured[]>(spansPerRequest().map((spans) => [spans, []]));
  for (let round = 0; round < flags.rounds; round += 1) {
    const seed = flags.seed + round * 10;
    const orgIds = bench.organizations.map(({ orgId }) => orgId);
    const ceiling = await measureCeiling(
      bench.ceilingUrl,
      bench.pattern,
      orgIds,
      flags['ceiling-seconds'],
      seed,
    );
    ceilings.push(ceiling);
    process.stdout.write(`round ${round + 1}: ceiling ${formatCount(ceiling.rowsPerSecond)}/s`);
    for (const [spans, runs] of measured) {
      const run = await measureProduct(bench, {
        spansPerRequest: spans,
        seconds: flags.seconds,
        seed: seed + spans,
      });
      runs.push(run);
      process.stdout.write(
        `, ${spans} spans ${formatCount(run.rate)}/s (${(run.rate / ceiling.rowsPerSecond).toFixed(2)})`,
      );
    }
    process.stdout.write('\n');
  }
  return { ceilings, measured };
}

function report(ceilings: readonly Ceiling[], measured: ReadonlyMap<number, Measured[]>): boolean {
  let isGood = true;
  process.stdout.write(
    `ceiling: ${formatCount(median(ceilings.map((ceiling) => ceiling.rowsPerSecond)))} rows/s (INSERT … unnest … ON CONFLICT, ` +
      `1,000 rows a batch, 4 connections), CPU µs/row ${Math.round(median(ceilings.map((ceiling) => ceiling.cpuMicros)))}\n`,
  );
  for (const [spans, runs] of measured) {
    const target = TARGETS.get(spans) ?? 0;
    const ratio = median(runs.map((run, round) => run.rate / (ceilings[round] as Ceiling).rowsPerSecond));
    const refused = runs.reduce((sum, run) => sum + run.refused, 0);
    if (ratio < target || refused > 0) isGood = false;
    process.stdout.write(
      `ingest ${spans} span${spans > 1 ? 's' : ''} a request: ${formatCount(median(runs.map((run) => run.rate)))} committed events/s, ` +
        `p50 ${median(runs.map((run) => run.p50Ms)).toFixed(1)} ms, p99 ${median(runs.map((run) => run.p99Ms)).toFixed(1)} ms, ` +
        `refused ${refused}, CPU µs/event: ${whereTheTimeWent(runs)}, ` +
        `target ${target.toFixed(2)}, ratio=${ratio.toFixed(2)}\n`,
    );
  }
  return isGood;
}

function reportMemory(rssBytes: readonly number[]): void {
  const [start = 0, ...rest] = rssBytes;
  const middle = rest[Math.floor((rest.length - 1) / 2)] ?? start;
  const end = rest.at(-1) ?? start;
  process.stdout.write(
    `memory of the API: start ${formatMebibytes(start)}, middle ${formatMebibytes(middle)}, end ${formatMebibytes(end)}, ratio=${(end / middle).toFixed(2)}\n`,
  );
}

/** Checks that every acknowledged event is stored once, and that folded totals equal those of the events. */
async function reportTotals(url: string, acknowledged: number): Promise<boolean> {
  const database = openBenchDatabase(url, FOLD_CONNECTIONS);
  await foldEverything(database);
  await database.close();
  const { live, stored } = await countEvents(url);
  process.stdout.write(
    `events: ${formatCount(acknowledged)} acknowledged, ${formatCount(stored)} stored, ${formatCount(live)} live, ratio=${(live / acknowledged).toFixed(2)}\n`,
  );
  let isGood = live === acknowledged && stored === acknowledged;
  for (const { table, rows, differing } of await checkTotals(url)) {
    if (differing !== 0) isGood = false;
    process.stdout.write(
      `totals ${table}: ${formatCount(rows)} rows recomputed from the events, ${differing} differ, ratio=${((rows - differing) / rows).toFixed(2)}\n`,
    );
  }
  return isGood;
}

async function compareWithCeiling(
  ingest: IngestBench,
  ceilingUrl: string,
): Promise<{ isGood: boolean; runs: Measured[] }> {
  const warmUps: Measured[] = [];
  for (const spans of spansPerRequest()) {
    const run = { spansPerRequest: spans, seconds: WARM_UP_SECONDS, seed: flags.seed + 5 };
    warmUps.push(await measureProduct(ingest, run));
  }
  const pattern = await readRowPattern(ingest.url, PATTERN_ROWS);
  const { ceilings, measured } = await runRounds({ ...ingest, ceilingUrl, pattern });
  return { isGood: report(ceilings, measured), runs: [...warmUps, ...[...measured.values()].flat()] };
}

async function main(): Promise<boolean> {
  const cluster = await startBenchCluster();
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const ceilingUrl = await cluster.makeDatabase('ceiling');
    const database = openBenchDatabase(url, 1);
    const organizations = await makeOrganizations(database, ORGANIZATIONS);
    await database.close();
    const profileDir = flags.profile ? mkdtempSync(join(tmpdir(), 'trueup-profile-')) : undefined;
    if (profileDir) process.stdout.write(`CPU profile of the API: ${profileDir}\n`);
    const api = await startProgram({ name: 'api', url, folder: cluster.folder, profileDir });
    stops.push(() => api.stop());
    const worker = await startProgram({ name: 'worker', url, folder: cluster.folder });
    stops.push(() => worker.stop());
    const load = new LoadProcess();
    stops.push(() => load.stop());
    process.stdout.write(
      `bench:ingest, Postgres ${cluster.version} with its own settings, ${ORGANIZATIONS} organizations, ${formatCount(USERS)} users, ${flags.connections} connections, ` +
        `${REPEAT_PERCENT} % of requests sent twice, seed ${flags.seed}\n`,
    );
    const bench = { api, load, organizations, url, connections: flags.connections, rssBytes: [] };
    const { isGood: isFast, runs } = await (flags.policies
      ? comparePolicies(bench, { ...flags, sizes: spansPerRequest() })
      : compareWithCeiling(bench, ceilingUrl));
    reportMemory(bench.rssBytes);
    await worker.stop();
    const isExact = await reportTotals(
      url,
      runs.reduce((sum, run) => sum + run.accepted - run.duplicates, 0),
    );
    return isFast && isExact;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:ingest: a target is missed\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
