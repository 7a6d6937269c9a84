/**
 * bench:claims — measures moves of claims per second over HTTP, as a share of the bare updates that Temporal
 * handles. docs/benchmarks.md explains the measurement and the figures.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../platform/config.js';
import { startTemporal } from '../../platform/embedded/temporal.js';
import { findTemporalProgram } from '../../platform/embedded/temporalProgram.js';
import type { ServerName } from '../../platform/supervision.js';
import { readCpuOf, spentBetween } from './support/backendCpu.js';
import { BareEngine } from './support/bareEngine.js';
import { storeDrafts } from './support/benchClaims.js';
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { HttpConnection } from './support/httpConnection.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { type BenchProgram, startProgram } from './support/programs.js';
import { formatCount, median, quantile } from './support/statistics.js';

/** Minimum share of the bare updates. */
const TARGET = 0.5;
/** The typical moves of a claim; a bare workflow gets the same number of updates. */
const LIFE: readonly Record<string, unknown>[] = [
  { status: 'submitted_to_provider' },
  { status: 'provider_acknowledged', external_ticket_id: 'T-1' },
  { status: 'under_review' },
  { status: 'escalated' },
  { status: 'under_review' },
  { status: 'credit_approved' },
  { status: 'escalated' },
  { status: 'credit_issued', credit_issued_cents: 12_345 },
];

const TRIES_MAX = 5;
/** Lives to run first, until frequently called code is compiled. */
const WARM_UP_LIVES = 96;

const flags = readFlags(
  { rounds: 10, claims: 32, 'in-flight': 16, seconds: 30 },
  { 'no-gate': false, profile: false },
);

/** The result of one measurement: moves per second, the time of each, and the CPU time of each program. */
interface Measured {
  rate: number;
  times: number[];
  cpuSecondsOf: Map<string, number>;
}

/** Runs lives one after the other in each lane, until all are done or the time is up. */
async function measure(
  { url, pids }: Bench,
  lives: number,
  live: (life: number, lane: number, took: (milliseconds: number) => void) => Promise<void>,
): Promise<Measured> {
  const times: number[] = [];
  const before = await readCpuOf(pids, url);
  const started = performance.now();
  let next = 0;
  const lane = async (at: number) => {
    while (next < lives && performance.now() - started < flags.seconds * 1_000) {
      const life = next;
      next += 1;
      await live(life, at, (milliseconds) => times.push(milliseconds));
    }
  };
  await Promise.all(Array.from({ length: flags['in-flight'] }, (_, at) => lane(at)));
  const rate = times.length / ((performance.now() - started) / 1_000);
  const cpuSecondsOf = new Map(spentBetween(before, await readCpuOf(pids, url)));
  return { rate, times, cpuSecondsOf };
}

interface Bench {
  url: string;
  organization: BenchOrganization;
  api: BenchProgram;
  bare: BareEngine;
  /** Process ids of every program that works for either measurement. */
  pids: Record<string, number>;
  /** Moves that were answered 503 and repeated. */
  refused: number;
}

async function measureMoves(bench: Bench, claims: number): Promise<Measured> {
  const { url, organization, api } = bench;
  const ids = await storeDrafts(url, organization.orgId, claims);
  const connections = await Promise.all(
    Array.from({ length: flags['in-flight'] }, () => HttpConnection.open(api.port)),
  );
  const bodies = LIFE.map((body) => Buffer.from(JSON.stringify(body)));
  const measured = await measure(bench, claims, async (life, lane, took) => {
    const connection = connections[lane] as HttpConnection;
    for (const body of bodies) {
      const started = performance.now();
      for (let tries = 1; ; tries += 1) {
        const answer = await connection.patch(`/api/v1/claims/${ids[life]}/status`, organization.key, body);
        if (answer.status === 200) break;
        // Repeats like a client, within the measured time; any status other than 503 is a fault.
        if (answer.status !== 503 || tries === TRIES_MAX)
          throw new Error(`a move was answered ${answer.status}: ${answer.body}`);
        bench.refused += 1;
      }
      took(performance.now() - started);
    }
  });
  for (const connection of connections) connection.close();
  return measured;
}

const measureBare = (bench: Bench, lives: number): Promise<Measured> =>
  measure(bench, lives, (_life, _lane, took) => bench.bare.live(LIFE.length, took));

/** Alternates the measurements, so that other load on the machine affects both. */
async function runRounds(bench: Bench): Promise<{ bare: Measured[]; moves: Measured[] }> {
  await measureBare(bench, WARM_UP_LIVES);
  await measureMoves(bench, WARM_UP_LIVES);
  const bare: Measured[] = [];
  const moves: Measured[] = [];
  for (let round = 1; round <= flags.rounds; round += 1) {
    const ceiling = await measureBare(bench, flags.claims);
    const moved = await measureMoves(bench, flags.claims);
    bare.push(ceiling);
    moves.push(moved);
    process.stdout.write(
      `round ${round}: bare ${formatCount(ceiling.rate)}/s, moves ${formatCount(moved.rate)}/s (${(moved.rate / ceiling.rate).toFixed(2)})\n`,
    );
  }
  return { bare, moves };
}

/** CPU milliseconds of one move, by program. */
function cpuOf(runs: readonly Measured[], count: number): string {
  const names = [...new Set(runs.flatMap((run) => [...run.cpuSecondsOf.keys()]))];
  const spent = names.map((name) => {
    const seconds = runs.reduce((sum, run) => sum + (run.cpuSecondsOf.get(name) ?? 0), 0);
    return { name, milliseconds: (seconds / count) * 1_000 };
  });
  const shown = spent
    .filter(({ milliseconds }) => milliseconds >= 0.1)
    .map(({ name, milliseconds }) => `${name} ${milliseconds.toFixed(1)}`);
  return `${spent.reduce((sum, { milliseconds }) => sum + milliseconds, 0).toFixed(1)} (${shown.join(', ')})`;
}

function line(name: string, runs: readonly Measured[]): string {
  const times = runs.flatMap((run) => run.times);
  const at = (share: number) => `${quantile(times, share).toFixed(1)} ms`;
  return `${name}: ${formatCount(median(runs.map((run) => run.rate)))}/s, p50 ${at(0.5)}, p99 ${at(0.99)}, of ${formatCount(times.length)}, CPU ms each: ${cpuOf(runs, times.length)}`;
}

function report({ bare, moves }: { bare: Measured[]; moves: Measured[] }, refused: number): boolean {
  const ratio = median(moves.map((run, round) => run.rate / (bare[round] as Measured).rate));
  process.stdout.write(
    `${line('bare updates', bare)}\n${line('moves', moves)}, refused ${refused}, target ${TARGET.toFixed(2)}, ratio=${ratio.toFixed(2)}\n`,
  );
  return ratio >= TARGET;
}

async function main(): Promise<boolean> {
  const config = loadConfig();
  const program = await findTemporalProgram(config);
  if (!program) throw new Error('there is no Temporal server on this machine: npm start gets one');
  const cluster = await startBenchCluster();
  const stops: (() => Promise<unknown>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const database = openBenchDatabase(url, 1);
    const [organization] = await makeOrganizations(database, 1);
    await database.close();
    if (!organization) throw new Error('there is no organization');
    const namespace = config.temporalNamespace;
    const engine = await startTemporal({ program, dataDir: cluster.folder, namespace });
    stops.push(() => engine.stop());
    const profileDir = flags.profile ? mkdtempSync(join(tmpdir(), 'trueup-profile-')) : undefined;
    if (profileDir) process.stdout.write(`CPU profiles of API and worker: ${profileDir}\n`);
    const programOf = (name: ServerName) =>
      startProgram({ name, url, folder: cluster.folder, engineAddress: engine.address, profileDir });
    const [api, worker] = await Promise.all([programOf('api'), programOf('worker')]);
    stops.push(
      () => worker.stop(),
      () => api.stop(),
    );
    const bareEngine = await BareEngine.start({ address: engine.address, namespace, taskQueue: 'bare' });
    stops.push(() => bareEngine.stop());
    process.stdout.write(
      `bench:claims, Temporal ${engine.version} on SQLite, Postgres ${cluster.version}, ${flags['in-flight']} in flight, ` +
        `${flags.rounds} rounds of ${flags.claims} claims with ${LIFE.length} moves each\n`,
    );
    const pids = {
      client: process.pid,
      ...{ API: api.pid, worker: worker.pid, 'bare worker': bareEngine.pid, Temporal: engine.pid },
    };
    const bench: Bench = { url, organization, api, bare: bareEngine, pids, refused: 0 };
    return report(await runRounds(bench), bench.refused);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:claims: the target is missed\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
