/**
 * bench:reports — what reports cost over ten million events.
 * docs/benchmarks.md says what is measured and what the figures mean.
 */
import { MICROS_PER_DAY } from '../../domain/period.js';
import { CHARGEBACK_DIMENSIONS } from '../../domain/usage/chargeback.js';
import { openBenchDatabase, startBenchCluster, vacuum } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { HttpConnection } from './support/httpConnection.js';
import { loadRows } from './support/loadRows.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { startProgram } from './support/programs.js';
import { formatCount, median, quantile } from './support/statistics.js';

const CHARGEBACK_MS_MAX = 100;
const WINDOW_DAYS = 29n;
const WARM_UPS = 3;
const LOAD_CONNECTIONS = 6;
/** It has no totals: every call of the window is read. */
const WITHOUT_TOTALS = 'api_key_hash';

const flags = readFlags(
  { rows: 10_000_000, requests: 30, seed: Date.now() % 1_000_000 },
  { 'no-gate': false },
);

interface Bench {
  port: number;
  organization: BenchOrganization;
}

async function timeRequests({ port, organization }: Bench, path: string, count: number): Promise<number[]> {
  const connection = await HttpConnection.open(port);
  const times: number[] = [];
  for (let turn = -WARM_UPS; turn < count; turn += 1) {
    const started = performance.now();
    const answer = await connection.get(path, organization.key);
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.body}`);
    if (turn >= 0) times.push(performance.now() - started);
  }
  connection.close();
  return times;
}

async function benchChargeback(bench: Bench): Promise<boolean> {
  let isGood = true;
  for (const dimension of CHARGEBACK_DIMENSIONS) {
    const hasTotals = dimension !== WITHOUT_TOTALS;
    const path = `/api/v1/reports/chargeback?period=30d&dimension=${dimension}`;
    const times = await timeRequests(bench, path, hasTotals ? flags.requests : 1);
    const ratio = median(times) / CHARGEBACK_MS_MAX;
    if (hasTotals) isGood &&= ratio <= 1;
    process.stdout.write(
      `chargeback by ${dimension} of ${formatCount(flags.rows)} events, 30 days: ${median(times).toFixed(1)} ms, ` +
        `p99 ${quantile(times, 0.99).toFixed(1)} ms${hasTotals ? `, target at most ${CHARGEBACK_MS_MAX} ms, ratio=${ratio.toFixed(2)}` : ''}\n`,
    );
  }
  return isGood;
}

async function main(): Promise<boolean> {
  const cluster = await startBenchCluster();
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const database = openBenchDatabase(url, LOAD_CONNECTIONS);
    stops.push(() => database.close());
    const [organization] = (await makeOrganizations(database, 1)) as [BenchOrganization];
    const api = await startProgram({ name: 'api', url, folder: cluster.folder });
    stops.push(() => api.stop());
    process.stdout.write(
      `bench:reports, Postgres ${cluster.version} with its own settings, seed ${flags.seed}\n`,
    );
    const toMicros = BigInt(Date.now()) * 1000n;
    const window = { fromMicros: toMicros - WINDOW_DAYS * MICROS_PER_DAY, toMicros };
    await loadRows(database, organization, flags.rows, window, flags.seed);
    await vacuum(url);
    const results = [await benchChargeback({ port: api.port, organization })];
    return results.every((isGood) => isGood);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:reports: a target is missed\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
