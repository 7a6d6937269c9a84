/**
 * bench:invoices --speed — measures the time from upload to reconciliation of an invoice, and its effect on
 * ingest. docs/benchmarks.md explains the measurement and the figures.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { createInvoiceExtractor } from '../../adapters/invoices/extractor.js';
import { findUuid } from '../../domain/ids.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { loadConfig } from '../../platform/config.js';
import { startTemporal } from '../../platform/embedded/temporal.js';
import { findTemporalProgram } from '../../platform/embedded/temporalProgram.js';
import { watchChildMemory } from '../invoices/childMemory.js';
import { scanInvoice } from '../invoices/scan.js';
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { type IngestBench, measureProduct } from './support/ingestRuns.js';
import { billOfDocument, invoiceOfTwoPages } from './support/invoiceDocument.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { type BenchProgram, LoadProcess, startProgram } from './support/programs.js';
import { formatCount, formatMebibytes, median } from './support/statistics.js';

const TARGET_SECONDS = { digital: 0.8, scan: 4 };
type Kind = keyof typeof TARGET_SECONDS;
/** Minimum share of its rate that ingest keeps during uploads. */
const INGEST_TARGET = 0.8;
const CHILD_PEAK_BYTES_MAX = 400e6;
const SCAN_DPI = 200;
/** Organizations that upload concurrently. */
const UPLOADERS = 10;
const INGEST_ORGANIZATIONS = 20;
const INGEST_SPANS = 20;
const POLL_MS = 10;
/** Ten clients that poll faster would measure the load of their own requests on ingest. */
const CLIENT_POLL_MS = 1_000;
const ENDED = ['reconciled', 'needs_review', 'failed'];

const flags = readFlags(
  { rounds: 7, 'ingest-rounds': 3, seconds: 8, connections: 50, seed: 1 },
  { speed: true, stages: false, 'no-gate': false },
);

interface Bench {
  api: BenchProgram;
  worker: BenchProgram;
  client: Client;
  uploaders: BenchOrganization[];
  ingest: IngestBench;
  /** Number of documents so far; each has its own number and account. */
  documents: number;
}

interface Uploadable {
  pdf: Uint8Array;
  account: string;
  organization: BenchOrganization;
}

interface Answer {
  status: string;
  status_url: string;
  run: { id: string } | null;
  review_reasons?: string[];
  failure_code?: string | null;
}

async function ask(bench: Bench, path: string, key: string, form?: FormData): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${bench.api.port}${path}`, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${key}` },
    ...(form ? { body: form } : {}),
  });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Answer;
}

async function send(bench: Bench, path: string, file: Uint8Array, { account, organization }: Uploadable) {
  const form = new FormData();
  form.set('provider', 'anthropic');
  form.set('account', account);
  form.set('file', new Blob([new Uint8Array(file)]), 'bench.pdf');
  return ask(bench, path, organization.key, form);
}

/** Makes a document and imports its bill for a separate account. */
async function prepare(bench: Bench, kind: Kind, organization: BenchOrganization): Promise<Uploadable> {
  bench.documents += 1;
  const name = `BENCH-${String(bench.documents).padStart(4, '0')}`;
  const digital = await invoiceOfTwoPages(name);
  const pdf =
    kind === 'digital'
      ? digital
      : await scanInvoice(digital, { dpi: SCAN_DPI, seed: flags.seed * 1_000 + bench.documents });
  const uploadable = { pdf, account: name.toLowerCase(), organization };
  const bill = new TextEncoder().encode(billOfDocument());
  const { status_url } = await send(bench, '/api/v1/billing-imports', bill, uploadable);
  for (;;) {
    const { status } = await ask(bench, status_url, organization.key);
    if (status === 'succeeded') return uploadable;
    if (status === 'failed') throw new Error('the bill was not imported');
    await sleep(POLL_MS);
  }
}

async function untilEnded(bench: Bench, path: string, key: string, pollMs = POLL_MS): Promise<Answer> {
  for (;;) {
    const invoice = await ask(bench, path, key);
    if (ENDED.includes(invoice.status)) return invoice;
    await sleep(pollMs);
  }
}

const upload = (bench: Bench, document: Uploadable) =>
  send(bench, '/api/v1/reconciliation/invoice', document.pdf, document);

interface Measured {
  seconds: number;
  /** Time to read the document in a new process, without the pipeline. */
  aloneSeconds: number;
  status: string;
  stages: string;
}

async function measureOne(bench: Bench, kind: Kind): Promise<Measured> {
  const organization = bench.uploaders[0] as BenchOrganization;
  const document = await prepare(bench, kind, organization);
  const aloneStarted = performance.now();
  await createInvoiceExtractor({ engines: ['text', 'tesseract'] }).extract(new Uint8Array(document.pdf));
  const aloneSeconds = (performance.now() - aloneStarted) / 1_000;
  const started = performance.now();
  const { status_url } = await upload(bench, document);
  const invoice = await untilEnded(bench, status_url, organization.key);
  const seconds = (performance.now() - started) / 1_000;
  const status =
    invoice.status === 'reconciled'
      ? 'reconciled'
      : `${invoice.status} ${invoice.failure_code ?? invoice.review_reasons?.join(' ')}`;
  return {
    seconds,
    aloneSeconds,
    status,
    stages: flags.stages ? await stagesOf(bench, organization, invoice) : '',
  };
}

/**
 * The times at which each activity of a run was scheduled, started and completed, in milliseconds from the start
 * of its workflow.
 */
async function stagesOf({ client }: Bench, { orgId }: BenchOrganization, { run }: Answer): Promise<string> {
  const workflowId = runWorkflowId('invoice_run', { orgId, id: findUuid('run', run?.id ?? '') ?? '' });
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const msOf = (event: { eventTime?: { seconds?: unknown; nanos?: number | null } | null } | undefined) =>
    Number(event?.eventTime?.seconds) * 1_000 + (event?.eventTime?.nanos ?? 0) / 1e6;
  const begin = msOf(events?.[0]);
  const since = (event: Parameters<typeof msOf>[0]) => Math.round(msOf(event) - begin);
  const stages = (events ?? []).flatMap((event) => {
    const done = event.activityTaskCompletedEventAttributes;
    if (!done) return [];
    const at = (id: unknown) => events?.find(({ eventId }) => String(eventId) === String(id));
    const scheduled = at(done.scheduledEventId);
    const name = scheduled?.activityTaskScheduledEventAttributes?.activityType?.name;
    return [`${name} ${since(scheduled)}-${since(at(done.startedEventId))}-${since(event)}`];
  });
  return `${stages.join(', ')}, end ${since(events?.at(-1))}`;
}

/** Measures seconds from upload to reconciliation, alternating with the reading alone. */
async function measureSpeed(bench: Bench, kind: Kind): Promise<boolean> {
  const runs: Measured[] = [];
  for (let round = 0; round <= flags.rounds; round += 1) {
    const measured = await measureOne(bench, kind);
    // The first measurement does not count, since it compiles code that the others use.
    if (round > 0) runs.push(measured);
    if (flags.stages)
      print(
        `${measured.seconds.toFixed(2)} s, alone ${measured.aloneSeconds.toFixed(2)} s: ${measured.stages}`,
      );
  }
  const seconds = median(runs.map((run) => run.seconds));
  const alone = median(runs.map((run) => run.aloneSeconds));
  const others = runs.filter(({ status }) => status !== 'reconciled').map(({ status }) => status);
  print(
    `${kind}, 2 pages: ${seconds.toFixed(2)} s from upload to reconciled (${range(runs.map((run) => run.seconds))}), ` +
      `reading alone ${alone.toFixed(2)} s${others.length > 0 ? `, NOT RECONCILED: ${others.join(', ')}` : ''}, ` +
      `target ${TARGET_SECONDS[kind].toFixed(2)} s, ratio=${(seconds / alone).toFixed(2)}`,
  );
  return seconds <= TARGET_SECONDS[kind] && others.length === 0;
}

const range = (values: readonly number[]) =>
  `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`;

/** Alternates ingest without uploads and with ten of them, so that other load on the machine affects both. */
async function measureIngest(bench: Bench, kind: Kind): Promise<boolean> {
  const ratios: number[] = [];
  const finished: number[] = [];
  const rate = async (round: number) =>
    (
      await measureProduct(bench.ingest, {
        spansPerRequest: INGEST_SPANS,
        seconds: flags.seconds,
        seed: flags.seed + round,
      })
    ).rate;
  await rate(-1);
  for (let round = 0; round < flags['ingest-rounds']; round += 1) {
    const documents: Uploadable[] = [];
    for (const organization of bench.uploaders) documents.push(await prepare(bench, kind, organization));
    const before = await rate(round * 3);
    const started = performance.now();
    const uploads = Promise.all(
      documents.map(async (document) => {
        const { status_url } = await upload(bench, document);
        await untilEnded(bench, status_url, document.organization.key, CLIENT_POLL_MS);
        return (performance.now() - started) / 1_000;
      }),
    );
    const beside = await rate(round * 3 + 1);
    const times = await uploads;
    const after = await rate(round * 3 + 2);
    ratios.push(beside / ((before + after) / 2));
    finished.push(Math.max(...times));
    print(
      `round ${round + 1}: ingest ${formatCount(before)}/s, beside ${UPLOADERS} uploads ${formatCount(beside)}/s, again without ${formatCount(after)}/s; ` +
        `invoices done after ${range(times)} s`,
    );
  }
  const ratio = median(ratios);
  print(
    `ingest beside ${UPLOADERS} uploads of ${kind === 'scan' ? 'scans' : 'digital invoices'} at once: all done after ${median(finished).toFixed(1)} s, target ${INGEST_TARGET.toFixed(2)}, ratio=${ratio.toFixed(2)}`,
  );
  return ratio >= INGEST_TARGET;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function measureAll(bench: Bench): Promise<boolean> {
  const memory = watchChildMemory(bench.worker.pid);
  const verdicts = [await measureSpeed(bench, 'digital'), await measureSpeed(bench, 'scan')];
  if (flags['ingest-rounds'] > 0)
    verdicts.push(await measureIngest(bench, 'digital'), await measureIngest(bench, 'scan'));
  const peak = memory.stop();
  print(
    `memory of a child at its highest ${formatMebibytes(peak)}, target ${formatMebibytes(CHILD_PEAK_BYTES_MAX)}, ratio=${(peak / CHILD_PEAK_BYTES_MAX).toFixed(2)}`,
  );
  return verdicts.every(Boolean) && peak <= CHILD_PEAK_BYTES_MAX;
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
    const uploaders = await makeOrganizations(database, UPLOADERS);
    const organizations = await makeOrganizations(database, INGEST_ORGANIZATIONS);
    await database.close();
    const namespace = config.temporalNamespace;
    const engine = await startTemporal({ program, dataDir: cluster.folder, namespace });
    stops.push(() => engine.stop());
    const common = { url, folder: cluster.folder, engineAddress: engine.address };
    const worker = await startProgram({ name: 'worker', ...common });
    stops.push(() => worker.stop());
    // The same message as from the supervisor of `npm start`.
    const api = await startProgram({ name: 'api', ...common, onOutbox: () => worker.tell('outbox') });
    stops.push(() => api.stop());
    const load = new LoadProcess();
    stops.push(() => load.stop());
    const connection = await Connection.connect({ address: engine.address });
    stops.push(() => connection.close());
    const client = new Client({ connection, namespace });
    print(
      `bench:invoices --speed, Temporal ${engine.version} on SQLite, Postgres ${cluster.version}, ${flags.rounds} rounds, seed ${flags.seed}`,
    );
    const ingest = { api, load, organizations, url, connections: flags.connections, rssBytes: [] };
    return await measureAll({ api, worker, client, uploaders, ingest, documents: 0 });
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:invoices: a target is missed\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
