/**
 * bench:reports — what reports cost over ten million events.
 * docs/benchmarks.md says what is measured and what the figures mean.
 */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, fontPaths } from '../../adapters/typst/renderer.js';
import { compile, type RenderJob } from '../../adapters/typst/renderProgram.js';
import { renderReportPdf } from '../../adapters/typst/reportPdf.js';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';
import { dayOf, MICROS_PER_DAY, shiftDay } from '../../domain/period.js';
import { REPORT_SECTIONS, type ReportPeriod } from '../../domain/reports/report.js';
import { reportDocument } from '../../domain/reports/reportDocument.js';
import { CHARGEBACK_DIMENSIONS } from '../../domain/usage/chargeback.js';
import { gatherFigures } from '../../usecases/reports/gatherFigures.js';
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
const REPORT_MS_MAX = 1_000;
const TYPESETTING_MS_MAX = 150;
/** Organizations whose reports are made at once. */
const AT_ONCE = 10;
/** Resident memory of the API and its typesetters while it makes them. */
const MEMORY_MB_MAX = 1_024;
const ROWS_OF_OTHERS = 20_000;
const REPORTS = 5;
const MEMORY_LOOK_MS = 50;
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

async function makeReport(port: number, key: string, days: { from: string; to: string }): Promise<number> {
  const started = performance.now();
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/reports/management`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(days),
  });
  const bytes = await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`a report answered ${answer.status}: ${Buffer.from(bytes)}`);
  return performance.now() - started;
}

/** Of a process and its children, megabytes. */
function residentMegabytes(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const own = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const below = children.filter((text) => text !== '').map((text) => residentOrNone(Number(text)));
  return Number(own ?? 0) / 1_024 + below.reduce((sum, one) => sum + one, 0);
}

/** A child may have ended between the two reads. */
function residentOrNone(pid: number): number {
  try {
    return residentMegabytes(pid);
  } catch {
    return 0;
  }
}

/** The time in which the typesetter sets one report, without the start of its process. */
async function timeTypesetting(database: Database, orgId: string, period: ReportPeriod): Promise<number[]> {
  const figures = await gatherFigures(new OrgDb(database, orgId), period, BigInt(Date.now()) * 1_000n);
  const branding = { orgName: 'Bench', brandColor: '#1F4FD8', footerText: 'Bench' };
  const document = reportDocument(figures, REPORT_SECTIONS, branding);
  const jobs: RenderJob[] = [];
  const capture = async ({ data, ...rest }: Document) => {
    const workspace = mkdtempSync(join(tmpdir(), 'bench-report-'));
    jobs.push({ standard: 'ua-1', ...rest, data: JSON.stringify(data), fontPaths: fontPaths(), workspace });
    return Buffer.alloc(0);
  };
  await renderReportPdf({ render: capture }, document, {
    logo: undefined,
    generatedAt: '2026-01-01T00:00:00Z',
  });
  const [job] = jobs as [RenderJob];
  return Array.from({ length: REPORTS }, () => {
    const started = performance.now();
    compile(job, false);
    return performance.now() - started;
  });
}

async function benchReports(
  database: Database,
  { port, pid, organizations }: { port: number; pid: number; organizations: readonly BenchOrganization[] },
): Promise<boolean> {
  const toDay = dayOf(BigInt(Date.now()) * 1_000n);
  const period = { fromDay: shiftDay(toDay, -29), toDay };
  const days = { from: period.fromDay, to: period.toDay };
  const [organization] = organizations as [BenchOrganization];
  const typesetting = await timeTypesetting(database, organization.orgId, period);
  const alone: number[] = [];
  for (let turn = 0; turn < REPORTS; turn += 1) alone.push(await makeReport(port, organization.key, days));
  let megabytes = 0;
  const looking = setInterval(() => {
    megabytes = Math.max(megabytes, residentOrNone(pid));
  }, MEMORY_LOOK_MS);
  const together = await Promise.all(organizations.map(({ key }) => makeReport(port, key, days)));
  clearInterval(looking);
  process.stdout.write(
    `report over 30 days of ${formatCount(flags.rows)} events: ${median(alone).toFixed(0)} ms in all, target at most ${REPORT_MS_MAX} ms, ratio=${(median(alone) / REPORT_MS_MAX).toFixed(2)}\n` +
      `typesetting: ${median(typesetting).toFixed(0)} ms, target at most ${TYPESETTING_MS_MAX} ms, ratio=${(median(typesetting) / TYPESETTING_MS_MAX).toFixed(2)}\n` +
      `${AT_ONCE} reports of ${AT_ONCE} organizations at once: ${Math.max(...together).toFixed(0)} ms the last one, ${megabytes.toFixed(0)} MB, target at most ${MEMORY_MB_MAX} MB\n`,
  );
  return (
    median(alone) <= REPORT_MS_MAX && median(typesetting) <= TYPESETTING_MS_MAX && megabytes <= MEMORY_MB_MAX
  );
}

async function main(): Promise<boolean> {
  const cluster = await startBenchCluster();
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const database = openBenchDatabase(url, LOAD_CONNECTIONS);
    stops.push(() => database.close());
    const organizations = await makeOrganizations(database, AT_ONCE);
    const [organization] = organizations as [BenchOrganization];
    const api = await startProgram({ name: 'api', url, folder: cluster.folder });
    stops.push(() => api.stop());
    process.stdout.write(
      `bench:reports, Postgres ${cluster.version} with its own settings, seed ${flags.seed}\n`,
    );
    const toMicros = BigInt(Date.now()) * 1000n;
    const window = { fromMicros: toMicros - WINDOW_DAYS * MICROS_PER_DAY, toMicros };
    await loadRows(database, url, organization, flags.rows, window, flags.seed);
    for (const other of organizations.slice(1))
      await loadRows(database, url, other, ROWS_OF_OTHERS, window, flags.seed);
    await vacuum(url);
    const results = [
      await benchChargeback({ port: api.port, organization }),
      await benchReports(database, { port: api.port, pid: api.pid, organizations }),
    ];
    return results.every((isGood) => isGood);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:reports: a target is missed\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
