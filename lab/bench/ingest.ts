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
  INGEST_LOADS,
  type IngestLoad,
  NEIGHBOUR_RATIO_MIN,
  P99_MS_MAX,
  plainLoadOf,
  RSS_BYTES_MAX,
  wordsOf,
} from './support/ingestLoads.js';
import {
  eventsOfCpuSecond,
  type IngestBench,
  type Measured,
  measureProduct,
  USERS,
  whereTheTimeWent,
} from './support/ingestRuns.js';
import type { LoadResult } from './support/loadClient.js';
import { measureNeighbour, type NeighbourRates, type NeighbourRound } from './support/neighbour.js';
import { makeOrganizations } from './support/organizations.js';
import { comparePolicies } from './support/policyRounds.js';
import { LoadProcess, startProgram } from './support/programs.js';
import { formatCount, formatMebibytes, median } from './support/statistics.js';

const ORGANIZATIONS = 20;
/** Spans per request with `--policies`. */
const POLICY_SIZES = [1, 20];
const PATTERN_ROWS = 5_000;
const WARM_UP_SECONDS = 3;
/** Distance of the seeds of a load and of its plain form. */
const PLAIN_SEED = 500_000;
const FOLD_CONNECTIONS = 2;

const flags = readFlags(
  {
    rounds: 3,
    seconds: 5,
    'ceiling-seconds': 3,
    connections: 200,
    spans: 0,
    load: 0,
    seed: Date.now() % 1_000_000,
  },
  { 'no-gate': false, profile: false, policies: false },
);

/** The loads of this run: all, that of `--load` (its place in the list), or those of `--spans`. */
function chosenLoads(): IngestLoad[] {
  return INGEST_LOADS.filter(
    ({ spansPerRequest }, at) =>
      (flags.load === 0 || flags.load === at + 1) && (flags.spans === 0 || flags.spans === spansPerRequest),
  );
}

interface Bench extends IngestBench {
  ceilingUrl: string;
  pattern: RowPattern;
}

/** A run of one load beside the ceiling of its round, and beside the load with each call reported once. */
interface Round {
  ceiling: Ceiling;
  run: Measured;
  plain?: Measured;
  neighbour?: NeighbourRound;
}

/** Alternates ceiling and product, so that other load on the machine affects both. */
async function runRounds(bench: Bench): Promise<Map<IngestLoad, Round[]>> {
  const rounds = new Map<IngestLoad, Round[]>(chosenLoads().map((load) => [load, []]));
  let seed = flags.seed + 100;
  for (let round = 0; round < flags.rounds; round += 1) {
    for (const [load, taken] of rounds) {
      const orgIds = bench.organizations.slice(0, load.organizations).map(({ orgId }) => orgId);
      seed += 1;
      const ceiling = await measureCeiling(
        bench.ceilingUrl,
        bench.pattern,
        orgIds,
        flags['ceiling-seconds'],
        seed,
      );
      const one = { ceiling, ...(await measureLoad(bench, load, seed)) };
      taken.push(one);
      process.stdout.write(`round ${round + 1}, ${wordsOf(load)}: ${ratesOf(one)}\n`);
    }
  }
  return rounds;
}

/** Each run has another seed, since ids of an earlier run would be repeated calls. */
async function measureLoad(bench: Bench, load: IngestLoad, seed: number): Promise<Omit<Round, 'ceiling'>> {
  const { seconds } = flags;
  if (load.reports === 'storm') {
    const loads = { storm: load, plain: plainLoadOf(load) };
    const neighbour = await measureNeighbour(bench, loads, { seconds, seed });
    return { run: neighbour.storm, plain: neighbour.plain, neighbour };
  }
  const plain =
    load.plainRatioMin === undefined
      ? undefined
      : await measureProduct(bench, { ...plainLoadOf(load), seconds, seed: seed + PLAIN_SEED });
  const run = await measureProduct(bench, { ...load, seconds, seed });
  return plain === undefined ? { run } : { run, plain };
}

function ratesOf({ ceiling, run, plain, neighbour }: Round): string {
  const shareOf = (rate: number) => `${formatCount(rate)}/s (${(run.rate / rate).toFixed(2)})`;
  const beside = ({ ingest, reads }: NeighbourRates) => `${formatCount(ingest)} and ${formatCount(reads)}`;
  return [
    `${formatCount(run.rate)}/s, ${formatCount(run.calls / run.seconds)} calls/s`,
    `ceiling ${shareOf(ceiling.rowsPerSecond)}`,
    ...(plain === undefined ? [] : [`plain ${shareOf(plain.rate)}`]),
    ...(neighbour === undefined
      ? []
      : [
          `requests and reads/s of another organization alone ${beside(neighbour.alone)}, ` +
            `beside plain ${beside(neighbour.besidePlain)}, beside the storm ${beside(neighbour.besideStorm)}`,
        ]),
  ].join(', ');
}

/** The smaller share of its rates that another organization kept beside the storm; undefined: it was not measured. */
function keptByNeighbour(rounds: readonly Round[]): number | undefined {
  const kept = rounds.flatMap(({ neighbour }) => {
    if (neighbour === undefined) return [];
    const { alone, besideStorm } = neighbour;
    return [Math.min(besideStorm.ingest / alone.ingest, besideStorm.reads / alone.reads)];
  });
  return kept.length === 0 ? undefined : median(kept);
}

/** Everything that clients sent in a round. */
function sentIn({ run, plain, neighbour }: Round): LoadResult[] {
  return [run, ...(plain ? [plain] : []), ...(neighbour?.stored ?? [])];
}

/** Prints a load's medians and returns whether its targets are met. */
function reportLoad(load: IngestLoad, rounds: readonly Round[]): boolean {
  const runs = rounds.map(({ run }) => run);
  const ceiling = median(rounds.map((round) => round.ceiling.rowsPerSecond));
  const rate = median(runs.map((run) => run.rate));
  const ratio = median(rounds.map((round) => round.run.rate / round.ceiling.rowsPerSecond));
  const perCpuSecond = median(runs.map(eventsOfCpuSecond));
  const p99Ms = median(runs.map((run) => run.p99Ms));
  const refused = rounds.flatMap(sentIn).reduce((sum, run) => sum + run.refused, 0);
  const ofPlain = rounds.flatMap(({ run, plain }) => (plain ? [run.rate / plain.rate] : []));
  const kept = keptByNeighbour(rounds);
  const targets = [
    [load.ratioMin, ratio, 'of the ceiling'],
    [load.plainRatioMin, median(ofPlain), `of the plain rate (${median(ofPlain).toFixed(2)})`],
    [
      kept === undefined ? undefined : NEIGHBOUR_RATIO_MIN,
      kept ?? 0,
      `of another organization (${kept?.toFixed(2)})`,
    ],
    [load.rateMin, rate, 'events/s'],
    [load.eventsOfCpuSecondMin, perCpuSecond, 'events a CPU second'],
  ] as const;
  const asked = targets.flatMap(([least, reached, unit]) =>
    least === undefined ? [] : [{ least, reached, unit }],
  );
  const isGood =
    refused === 0 &&
    asked.every(({ least, reached }) => reached >= least) &&
    (load.connections < flags.connections || p99Ms <= P99_MS_MAX);
  process.stdout.write(
    `${wordsOf(load)}: ${formatCount(rate)} committed events/s, ${formatCount(perCpuSecond)} a CPU second of all servers, ` +
      `p50 ${median(runs.map((run) => run.p50Ms)).toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, refused ${refused}, ` +
      `ceiling ${formatCount(ceiling)}/s at ${Math.round(median(rounds.map((round) => round.ceiling.cpuMicros)))} µs a row, ` +
      `CPU µs/event: ${whereTheTimeWent(runs)}, ` +
      `target ${asked.map(({ least, unit }) => `${formatTarget(least)} ${unit}`).join(' and ')}, ratio=${ratio.toFixed(2)}\n`,
  );
  return isGood;
}

function formatTarget(least: number): string {
  return least < 1 ? least.toFixed(2) : formatCount(least);
}

function reportMemory(rssBytes: readonly number[]): boolean {
  const [start = 0, ...rest] = rssBytes;
  const middle = rest[Math.floor((rest.length - 1) / 2)] ?? start;
  const end = rest.at(-1) ?? start;
  process.stdout.write(
    `memory of the API: start ${formatMebibytes(start)}, middle ${formatMebibytes(middle)}, end ${formatMebibytes(end)}, most ${formatMebibytes(Math.max(...rssBytes))}, target ${formatMebibytes(RSS_BYTES_MAX)}, ratio=${(end / middle).toFixed(2)}\n`,
  );
  return Math.max(...rssBytes) <= RSS_BYTES_MAX;
}

/** Checks that every acknowledged event is stored once, that each call counts once, and that folded totals equal those of the events. */
async function reportTotals(url: string, sent: readonly LoadResult[]): Promise<boolean> {
  const database = openBenchDatabase(url, FOLD_CONNECTIONS);
  await foldEverything(database);
  await database.close();
  const { live, stored } = await countEvents(url);
  const acknowledged = sent.reduce((sum, { accepted, duplicates }) => sum + accepted - duplicates, 0);
  const calls = sent.reduce((sum, run) => sum + run.calls, 0);
  process.stdout.write(
    `events: ${formatCount(acknowledged)} acknowledged, ${formatCount(stored)} stored, ` +
      `of ${formatCount(calls)} calls, ${formatCount(live)} count, ratio=${(live / calls).toFixed(2)}\n`,
  );
  let isGood = live === calls && stored === acknowledged;
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
): Promise<{ isGood: boolean; runs: LoadResult[] }> {
  const warmUps: Measured[] = [];
  for (const [at, load] of chosenLoads().entries())
    warmUps.push(await measureProduct(ingest, { ...load, seconds: WARM_UP_SECONDS, seed: flags.seed + at }));
  const pattern = await readRowPattern(ingest.url, PATTERN_ROWS);
  const rounds = await runRounds({ ...ingest, ceilingUrl, pattern });
  let isGood = true;
  for (const [load, taken] of rounds) if (!reportLoad(load, taken)) isGood = false;
  return { isGood, runs: [...warmUps, ...[...rounds.values()].flat().flatMap(sentIn)] };
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
      `bench:ingest, Postgres ${cluster.version} with its own settings, ${formatCount(USERS)} users, seed ${flags.seed}\n`,
    );
    const { connections } = flags;
    const bench = { api, worker, load, organizations, url, connections, rssBytes: [] };
    const { isGood: isFast, runs } = await (flags.policies
      ? comparePolicies(bench, { ...flags, sizes: flags.spans === 0 ? POLICY_SIZES : [flags.spans] })
      : compareWithCeiling(bench, ceilingUrl));
    const isSmall = reportMemory(bench.rssBytes);
    await worker.stop();
    const isExact = await reportTotals(url, runs);
    return isFast && isSmall && isExact;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:ingest: a target is missed\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
