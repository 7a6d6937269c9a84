import { readBackendCpu, spentBetween } from './backendCpu.js';
import type { LoadResult, ReportPlan } from './loadClient.js';
import type { BenchOrganization } from './organizations.js';
import { readCpuSeconds } from './processCpu.js';
import { type BenchProgram, type LoadProcess, readProcessMetrics } from './programs.js';
import type { PromptPlan } from './promptTexts.js';

export const USERS = 10_000;
export const REPEAT_PERCENT = 10;

export interface Measured extends LoadResult {
  /** New committed and acknowledged events per second. */
  rate: number;
  /** CPU seconds by program. */
  cpuSecondsOf: Map<string, number>;
}

/** The deployment that a run measures. */
export interface IngestBench {
  api: BenchProgram;
  load: LoadProcess;
  organizations: BenchOrganization[];
  url: string;
  connections: number;
  rssBytes: number[];
  /** The worker, where its CPU time counts. */
  worker?: BenchProgram;
}

export interface IngestRun {
  spansPerRequest: number;
  seconds: number;
  seed: number;
  prompts?: PromptPlan | undefined;
  /** Organizations that send, from the first one on; absent: all. */
  organizations?: number;
  /** Absent: those of the bench. */
  connections?: number;
  /** Absent: REPEAT_PERCENT. */
  repeatPercent?: number;
  /** Absent: each call is reported once. */
  reports?: ReportPlan;
}

/** Sends traces to the product for some time; counts committed events and CPU time. */
export async function measureProduct(
  bench: IngestBench,
  { spansPerRequest, seconds, seed, prompts, organizations, connections, repeatPercent, reports }: IngestRun,
): Promise<Measured> {
  const { port } = bench.api;
  const senders = bench.organizations.slice(0, organizations);
  const before = await readProcessMetrics(port);
  const workerBefore = readCpuSeconds(bench.worker?.pid);
  const backendsBefore = await readBackendCpu(bench.url);
  const result = await bench.load.run({
    port,
    keys: senders.map(({ key }) => key),
    connections: connections ?? bench.connections,
    users: USERS,
    spansPerRequest,
    seconds,
    repeatPercent: repeatPercent ?? REPEAT_PERCENT,
    reports,
    seed,
    prompts,
  });
  const after = await readProcessMetrics(port);
  const backends = await readBackendCpu(bench.url);
  bench.rssBytes.push(after.rssBytes);
  return {
    ...result,
    rate: (result.accepted - result.duplicates) / result.seconds,
    cpuSecondsOf: new Map([
      ['api', after.cpuSeconds - before.cpuSeconds],
      ['worker', readCpuSeconds(bench.worker?.pid) - workerBefore],
      ['client', result.cpuSeconds],
      ...spentBetween(backendsBefore, backends).map(([name, seconds]): [string, number] => [
        `Postgres ${name}`,
        seconds,
      ]),
    ]),
  };
}

/** Committed events for one CPU second of all servers. */
export function eventsOfCpuSecond({ rate, seconds, cpuSecondsOf }: Measured): number {
  const servers = [...cpuSecondsOf].filter(([name]) => name !== 'client');
  return (rate * seconds) / servers.reduce((sum, [, spent]) => sum + spent, 0);
}

/** CPU time of each program per event, including repeated ones; programs below a microsecond are left out. */
export function whereTheTimeWent(runs: readonly Measured[]): string {
  const events = runs.reduce((sum, run) => sum + run.accepted, 0);
  const names = new Set(runs.flatMap((run) => [...run.cpuSecondsOf.keys()]));
  const shares = [...names].map((name) => {
    const seconds = runs.reduce((sum, run) => sum + (run.cpuSecondsOf.get(name) ?? 0), 0);
    return { name, micros: Math.round((seconds / events) * 1e6) };
  });
  const shown = shares.filter(({ micros }) => micros > 0).map(({ name, micros }) => `${name} ${micros}`);
  return `${shares.reduce((sum, { micros }) => sum + micros, 0)} (${shown.join(', ')})`;
}
