/**
 * bench:read — a 30-day summary at two sizes, the latest events of one organization, and an export against COPY.
 * docs/benchmarks.md says what is measured and what the figures mean.
 */
import pg from 'pg';
import { EVENT_COLUMNS } from '../db/queries/storedEvents.js';
import { microsFromDate } from '../domain/period.js';
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { loadRows } from './support/loadRows.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { type BenchProgram, readProcessMetrics, startProgram } from './support/programs.js';
import { formatCount, formatMebibytes, median, quantile } from './support/statistics.js';

const ORGANIZATIONS = 20;
const DAYS = 30;
const LOAD_CONNECTIONS = 6;
/** Targets: time of the larger size over the smaller, milliseconds, share of COPY's rows a second, memory over its start. */
const SUMMARY_RATIO_MAX = 1.5;
const LATEST_MS_MAX = 5;
const EXPORT_SHARE_MIN = 0.3;
const EXPORT_MEMORY_MAX = 1.5;
const WARM_UPS = 20;

const flags = readFlags({ small: 1_000_000, large: 10_000_000, samples: 200, seed: 1 }, { 'no-gate': false });
const missed: string[] = [];

function tell(text: string, ratio: number, isMet: boolean): void {
  process.stdout.write(`${text}, ratio=${ratio.toFixed(2)}\n`);
  if (!isMet) missed.push(text);
}

/** Milliseconds of each of many requests, one after another, after a warm-up. */
async function timeRequests(
  api: BenchProgram,
  organization: BenchOrganization,
  path: string,
): Promise<number[]> {
  const times: number[] = [];
  for (let sample = -WARM_UPS; sample < flags.samples; sample += 1) {
    const started = performance.now();
    const answer = await fetch(`http://127.0.0.1:${api.port}${path}`, {
      headers: { authorization: `Bearer ${organization.key}` },
    });
    await answer.arrayBuffer();
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`);
    if (sample >= 0) times.push(performance.now() - started);
  }
  return times;
}

/** Rows a second of an export over HTTP, and the largest memory of the API while it ran. */
async function measureExport(
  api: BenchProgram,
  organization: BenchOrganization,
  window: { start: string; end: string },
) {
  const before = (await readProcessMetrics(api.port)).rssBytes;
  let largest = before;
  const watch = setInterval(() => {
    readProcessMetrics(api.port).then(
      ({ rssBytes }) => {
        largest = Math.max(largest, rssBytes);
      },
      () => undefined,
    );
  }, 500);
  const started = performance.now();
  const query = new URLSearchParams({ start: window.start, end: window.end });
  const answer = await fetch(`http://127.0.0.1:${api.port}/api/v1/events/export?${query}`, {
    headers: { authorization: `Bearer ${organization.key}` },
  });
  let rows = 0;
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) rows += 1;
  }
  clearInterval(watch);
  return { rows, rate: rows / ((performance.now() - started) / 1000), before, largest };
}

/** Rows a second of COPY TO STDOUT of the same columns of the same rows, read by a client that throws them away. */
async function measureCopy(url: string, organization: BenchOrganization, rows: number): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const columns = EVENT_COLUMNS.join(', ');
  const started = performance.now();
  await new Promise<void>((resolve, reject) => {
    // The driver has no reader of its own for COPY: it hands the rows over as messages of the connection.
    const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
    connection.on('copyData', () => undefined);
    client.query(
      `copy (select ${columns} from events where org_id = '${organization.orgId}' and superseded_by is null order by timestamp, id) to stdout`,
      (error: Error | null) => (error ? reject(error) : resolve()),
    );
  });
  const rate = rows / ((performance.now() - started) / 1000);
  await client.end();
  return rate;
}

const cluster = await startBenchCluster();
const now = microsFromDate(new Date());
const medians: number[] = [];
try {
  for (const rows of [flags.small, flags.large]) {
    const url = await cluster.makeDatabase(`rows_${rows}`);
    const database = openBenchDatabase(url, LOAD_CONNECTIONS);
    const organizations = await makeOrganizations(database, ORGANIZATIONS);
    const started = performance.now();
    await loadRows(database, { organizations, rows, days: DAYS, endMicros: now, seed: flags.seed });
    const owner = new pg.Client({ connectionString: url });
    await owner.connect();
    await owner.query('vacuum analyze');
    await owner.end();
    await database.close();
    process.stdout.write(
      `${formatCount(rows)} events of ${ORGANIZATIONS} organizations over ${DAYS} days, loaded in ${Math.round((performance.now() - started) / 1000)} s\n`,
    );
    const api = await startProgram({ name: 'api', url, folder: cluster.folder });
    const organization = organizations[0] as BenchOrganization;
    const summary = await timeRequests(api, organization, '/api/v1/usage/summary');
    medians.push(median(summary));
    process.stdout.write(
      `summary of 30 days at ${formatCount(rows)}: ${median(summary).toFixed(2)} ms, p99 ${quantile(summary, 0.99).toFixed(2)} ms\n`,
    );
    if (rows === flags.large) await measureLarge(api, organization, url);
    await api.stop();
  }
  const [small = Number.NaN, large = Number.NaN] = medians;
  const ratio = large / small;
  tell(
    `summary at ${formatCount(flags.large)} over ${formatCount(flags.small)} events, target below ${SUMMARY_RATIO_MAX}`,
    ratio,
    ratio < SUMMARY_RATIO_MAX,
  );
} finally {
  await cluster.stop();
}

async function measureLarge(api: BenchProgram, organization: BenchOrganization, url: string): Promise<void> {
  const latest = await timeRequests(api, organization, '/api/v1/events?limit=100');
  const middle = median(latest);
  tell(
    `latest 100 of one organization: ${middle.toFixed(2)} ms, p99 ${quantile(latest, 0.99).toFixed(2)} ms, target below ${LATEST_MS_MAX} ms`,
    middle / LATEST_MS_MAX,
    middle < LATEST_MS_MAX,
  );
  const window = {
    start: new Date(Number(now / 1000n) - (DAYS + 1) * 86_400_000).toISOString(),
    end: new Date(Number(now / 1000n) + 86_400_000).toISOString(),
  };
  const exported = await measureExport(api, organization, window);
  const copied = await measureCopy(url, organization, exported.rows);
  const share = exported.rate / copied;
  tell(
    `export: ${formatCount(exported.rate)} rows/s of ${formatCount(exported.rows)}, COPY ${formatCount(copied)} rows/s, target ${EXPORT_SHARE_MIN}`,
    share,
    share >= EXPORT_SHARE_MIN,
  );
  const growth = exported.largest / exported.before;
  tell(
    `memory of the API during the export: ${formatMebibytes(exported.before)} before, ${formatMebibytes(exported.largest)} at most`,
    growth,
    growth <= EXPORT_MEMORY_MAX,
  );
}

if (missed.length > 0) {
  process.stdout.write('bench:read: a target is missed\n');
  if (!flags['no-gate']) process.exitCode = 1;
}
