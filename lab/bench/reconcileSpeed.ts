/**
 * bench:reconciliation:speed — measures gap runs with the Node flags of a worker: a full one, one over four times
 * the data, and one after a changed day. docs/benchmarks.md explains the measurement and the figures.
 */

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import pino from 'pino';
import { OrgDb } from '../../db/orgDb.js';
import { GAP_RUNS } from '../../db/reconciliation/gapRuns.js';
import { findRun, insertRun } from '../../db/runs/runTable.js';
import { gapWindow } from '../../domain/period.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { explainRunAccount, planExplanations } from '../../usecases/reconciliation/explainRun.js';
import { type RunDeps, runWork, takeGapRunTurn } from '../../usecases/reconciliation/gapRunWork.js';
import { planRun } from '../../usecases/reconciliation/planRun.js';
import { matchUnit } from '../../usecases/reconciliation/providerDay.js';
import { publishRun } from '../../usecases/reconciliation/publishRun.js';
import { endRun } from '../../usecases/runs/endRun.js';
import { readServerCpu } from './support/backendCpu.js';
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { foldEverything } from './support/fold.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { runAsWorker } from './support/programs.js';
import { addLateCalls, DAYS, loadReconciliation } from './support/reconciliationData.js';
import { formatCount, formatMebibytes } from './support/statistics.js';

const TARGETS = { fullSeconds: 10, growth: 4.4, changedDaySeconds: 1 };
const ACCOUNTS = 8;
const GROWTH = 4;
const LATE_CALLS = 500;

const flags = readFlags({ events: 1_000_000 }, { 'no-gate': false });

interface RunTimes {
  plan: number;
  match: number;
  explain: number;
  publish: number;
  total: number;
  units: number;
  accounts: number;
  nodeCpu: number;
  backendCpu: number;
  peakBytes: number;
}

interface Bench {
  url: string;
  deps: RunDeps;
}

/** One run from its plan to its end in this process, with the steps that its workflow would call, one at a time. */
async function timeRun({ url, deps }: Bench, orgId: string): Promise<RunTimes> {
  const orgDb = new OrgDb(deps.database, orgId);
  const id = randomUUID();
  const { start, end } = gapWindow('90d', deps.nowMicros());
  await insertRun(orgDb, GAP_RUNS, {
    id,
    period: '90d',
    provider: null,
    windowStartMicros: start,
    windowEndMicros: end,
  });
  await takeGapRunTurn(orgDb, id, 2);
  const work = runWork(deps, { orgId, runId: id });
  global.gc?.();
  let peakBytes = 0;
  const look = () => {
    peakBytes = Math.max(peakBytes, process.memoryUsage().rss);
  };
  const cpu = process.cpuUsage();
  const backendBefore = await readServerCpu(url);
  const marks = [performance.now()];
  const { units } = await planRun(work);
  marks.push(performance.now());
  for (let ordinal = 0; ordinal < units; ordinal += 1) {
    await matchUnit(work, ordinal);
    look();
  }
  marks.push(performance.now());
  const plan = await planExplanations(work);
  const accounts = plan.turn === 'go' ? plan.accounts : 0;
  for (let ordinal = 0; ordinal < accounts; ordinal += 1) {
    await explainRunAccount(work, ordinal);
    look();
  }
  marks.push(performance.now());
  await publishRun(work);
  await endRun(orgDb, 'gap_run', id, { status: 'succeeded' });
  look();
  marks.push(performance.now());
  const used = process.cpuUsage(cpu);
  const run = await findRun(orgDb, GAP_RUNS, id);
  if (run?.status !== 'succeeded') throw new Error(`the run ended as ${run?.status}: ${run?.errorMessage}`);
  const step = (at: number) => ((marks[at + 1] ?? 0) - (marks[at] ?? 0)) / 1_000;
  return {
    plan: step(0),
    match: step(1),
    explain: step(2),
    publish: step(3),
    total: ((marks[4] ?? 0) - (marks[0] ?? 0)) / 1_000,
    units,
    accounts,
    nodeCpu: (used.user + used.system) / 1e6,
    backendCpu: (await readServerCpu(url)) - backendBefore,
    peakBytes,
  };
}

const cpuOf = ({ nodeCpu, backendCpu }: RunTimes) => nodeCpu + backendCpu;

/** The time of a run on a single core, where this process and Postgres cannot work in parallel. */
const onOneCore = (times: RunTimes) => Math.max(times.total, cpuOf(times));

function printTimes(name: string, times: RunTimes): void {
  const steps = (['plan', 'match', 'explain', 'publish'] as const)
    .map((step) => `${step} ${times[step].toFixed(2)}`)
    .join(', ');
  process.stdout.write(
    `${name}: ${times.total.toFixed(2)} s (${steps}; ${times.units} provider-days, ${times.accounts} accounts; ` +
      `CPU ${times.nodeCpu.toFixed(2)} s here, ${times.backendCpu.toFixed(2)} s in Postgres, ${cpuOf(times).toFixed(2)} s together; memory at its highest ${formatMebibytes(times.peakBytes)})\n`,
  );
}

async function load(bench: Bench, client: pg.Client, organization: BenchOrganization, share: number) {
  const { database } = bench.deps;
  let foldSeconds = 0;
  const data = await loadReconciliation(client, {
    orgId: organization.orgId,
    events: Math.round(flags.events / share),
    accounts: ACCOUNTS / share,
    book: await bench.deps.prices.freshOf(organization.orgId),
    fold: async () => {
      const started = performance.now();
      await foldEverything(database);
      foldSeconds = (performance.now() - started) / 1_000;
    },
  });
  process.stdout.write(
    `${formatCount(flags.events / share)} events of ${DAYS} days, ${data.series} series, ${formatCount(data.billingRows)} rows of bills; ` +
      `folded in ${foldSeconds.toFixed(1)} s\n`,
  );
  return data;
}

async function measure(bench: Bench, client: pg.Client): Promise<boolean> {
  const [first, small, large] = (await makeOrganizations(bench.deps.database, 3)) as [
    BenchOrganization,
    BenchOrganization,
    BenchOrganization,
  ];
  await load(bench, client, first, ACCOUNTS);
  await load(bench, client, small, GROWTH);
  const { firstDay } = await load(bench, client, large, 1);
  printTimes('an eighth, first of the process', await timeRun(bench, first.orgId));
  const quarter = await timeRun(bench, small.orgId);
  printTimes('a quarter, full run', quarter);
  const full = await timeRun(bench, large.orgId);
  printTimes('full run', full);
  const unchanged = await timeRun(bench, large.orgId);
  printTimes('nothing changed', unchanged);
  await addLateCalls(client, large.orgId, firstDay, LATE_CALLS);
  await foldEverything(bench.deps.database);
  const changed = await timeRun(bench, large.orgId);
  printTimes('one changed day of one account', changed);
  const { rows } = await client.query(
    'select kind, grade, count(*) as count from findings where org_id = $1 group by 1, 2 order by 1, 2',
    [large.orgId],
  );
  process.stdout.write(
    `findings: ${rows.map((row) => `${row.kind} ${row.grade} ${row.count}`).join(', ')}\n`,
  );
  const growth = full.total / quarter.total;
  process.stdout.write(
    `full ${full.total.toFixed(2)} s, ${onOneCore(full).toFixed(2)} s on one core, target below ${TARGETS.fullSeconds}; ${GROWTH}x the data takes ${growth.toFixed(2)}x the time, ` +
      `target at most ${TARGETS.growth}; one changed day ${changed.total.toFixed(2)} s, target below ${TARGETS.changedDaySeconds}\n`,
  );
  return (
    onOneCore(full) < TARGETS.fullSeconds &&
    growth <= TARGETS.growth &&
    changed.total < TARGETS.changedDaySeconds
  );
}

async function main(): Promise<boolean> {
  const cluster = await startBenchCluster();
  const stops: (() => Promise<unknown>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const database = openBenchDatabase(url, 2);
    stops.push(() => database.close());
    const prices = await PriceBookHolder.open(database, {
      nowMs: () => performance.now(),
      onFailure: () => undefined,
    });
    stops.push(() => prices.settle());
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stops.push(() => client.end());
    const deps: RunDeps = {
      database,
      prices,
      nowMicros: () => BigInt(Date.now()) * 1000n,
      logger: pino({ level: 'silent' }),
    };
    return await measure({ url, deps }, client);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

const code = await runAsWorker(import.meta.url);
if (code !== undefined) process.exitCode = code;
else if (!(await main()) && !flags['no-gate']) process.exitCode = 1;
