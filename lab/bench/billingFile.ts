/**
 * bench:billing-file — measures a Cost and Usage Report of a gigabyte from its upload to its last row.
 * docs/benchmarks.md explains the measurement and the figures.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { BILLING_IMPORTS } from '../../db/billing/billingSources.js';
import { OrgDb } from '../../db/orgDb.js';
import { findRun } from '../../db/runs/runTable.js';
import { findUuid } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { curFile } from './support/curFile.js';
import { readFlags } from './support/flags.js';
import type { ImportPlan, ImportResult } from './support/importProgram.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { type BenchProgram, startProgram } from './support/programs.js';
import { formatCount, formatMebibytes } from './support/statistics.js';

const TARGETS = { seconds: 180, peakBytes: 400 * 1_048_576 };
const MEGABYTE = 1_000_000;
const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

const flags = readFlags({ megabytes: 1_000, 'bedrock-percent': 20, seed: 1 }, { 'no-gate': false });

interface Bench {
  url: string;
  api: BenchProgram;
  organization: BenchOrganization;
  orgDb: OrgDb;
}

interface Uploaded {
  status: number;
  importId: string;
  seconds: number;
}

const BOUNDARY = 'bench-of-a-billing-file';
const OPENING = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="provider"\r\n\r\naws_bedrock\r\n--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="cur.csv"\r\n\r\n`;

/** Sends each chunk as soon as it is made, like a client that streams a file. */
async function upload({ api, organization }: Bench, chunks: AsyncIterable<Buffer>): Promise<Uploaded> {
  const start = performance.now();
  const outgoing = request({
    host: '127.0.0.1',
    port: api.port,
    path: '/api/v1/billing-imports',
    method: 'POST',
    headers: {
      authorization: `Bearer ${organization.key}`,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
    },
  });
  const answered = once(outgoing, 'response') as Promise<[import('node:http').IncomingMessage]>;
  outgoing.write(OPENING);
  for await (const chunk of chunks) if (!outgoing.write(chunk)) await once(outgoing, 'drain');
  outgoing.end(`\r\n--${BOUNDARY}--\r\n`);
  const [response] = await answered;
  let text = '';
  for await (const part of response) text += String(part);
  if (response.statusCode !== 202 && response.statusCode !== 200)
    throw new Error(`the upload was answered ${response.statusCode}: ${text}`);
  const { import_id: publicId } = JSON.parse(text) as { import_id: string };
  const importId = findUuid('imp', publicId);
  if (importId === undefined) throw new Error(`no import id in ${text}`);
  return { status: response.statusCode ?? 0, importId, seconds: (performance.now() - start) / 1_000 };
}

async function read({ url, organization }: Bench, importId: string): Promise<ImportResult> {
  const child = fork(fileURLToPath(new URL(`./support/importProgram.${EXTENSION}`, import.meta.url)), []);
  const plan: ImportPlan = { url, orgId: organization.orgId, importId };
  const result = once(child, 'message') as Promise<[ImportResult]>;
  const ended = once(child, 'exit').then(([code]) => {
    if (code !== 0) throw new Error(`the import's process ended with ${code}`);
    return undefined as never;
  });
  child.send(plan);
  const [told] = await Promise.race([result, ended]);
  return told;
}

/** Peak memory of a process, bytes; undefined: the system does not report it. */
function peakOf(pid: number): number | undefined {
  try {
    const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
  } catch {
    return undefined;
  }
}

async function countKept({ orgDb }: Bench, importId: string): Promise<number> {
  const [row] = await orgDb.rows<{ n: number }>(
    `select (select count(*) from billing_rows where org_id = $1 and source_id = $2)
       + (select count(*) from billing_days where org_id = $1 and source_id = $2)
       + (select count(*) from billing_pages where org_id = $1 and source_id = $2) as n`,
    [orgDb.orgId, importId],
  );
  return Number(row?.n);
}

/** The whole file: it uploads, imports with the right sums, and changes nothing when imported again. */
async function measureWhole(bench: Bench): Promise<{ seconds: number; peakBytes: number }> {
  const size = {
    bytes: flags.megabytes * MEGABYTE,
    bedrockPercent: flags['bedrock-percent'],
    seed: flags.seed,
  };
  const file = curFile(size);
  const uploaded = await upload(bench, file.chunks());
  const { told } = file;
  process.stdout.write(
    `upload: ${uploaded.seconds.toFixed(1)} s for ${formatCount(told.lines)} lines, ${(told.bytes / MEGABYTE).toFixed(0)} MB\n`,
  );
  const result = await read(bench, uploaded.importId);
  const source = await findRun(bench.orgDb, BILLING_IMPORTS, uploaded.importId);
  if (source?.status !== 'succeeded')
    throw new Error(`the import ended as ${source?.status}: ${source?.errorMessage}`);
  if (source.rowCount !== told.bedrockLines || source.amountPico !== told.bedrockPico)
    throw new Error(
      `the import has ${source.rowCount} rows of ${decimalFromPico(source.amountPico ?? 0n)} USD, the file ${told.bedrockLines} of ${decimalFromPico(told.bedrockPico)}`,
    );
  const apiPeak = peakOf(bench.api.pid);
  process.stdout.write(
    `read: ${result.seconds.toFixed(1)} s, ${formatCount(source.rowCount)} rows kept, ${decimalFromPico(source.amountPico)} USD to the last digit; ` +
      `CPU ${result.cpuSeconds.toFixed(1)} s; memory at its highest ${formatMebibytes(result.peakBytes)} reading, ${apiPeak === undefined ? '?' : formatMebibytes(apiPeak)} receiving\n`,
  );
  const again = await upload(bench, curFile(size).chunks());
  const rows = await countKept(bench, uploaded.importId);
  if (again.importId !== uploaded.importId) throw new Error('the same file became another import');
  process.stdout.write(
    `again: the same import, after ${again.seconds.toFixed(1)} s; it has what it had (${formatCount(rows)} rows, days and chunks)\n`,
  );
  return {
    seconds: uploaded.seconds + result.seconds,
    peakBytes: Math.max(result.peakBytes, apiPeak ?? 0),
  };
}

/** The same file without its end: it is refused, and none of its rows is stored. */
async function measureCut(bench: Bench): Promise<void> {
  const file = curFile({
    bytes: (flags.megabytes * MEGABYTE) / 10,
    bedrockPercent: flags['bedrock-percent'],
    seed: flags.seed + 1,
  });
  async function* cut(): AsyncGenerator<Buffer> {
    let held: Buffer | undefined;
    for await (const chunk of file.chunks()) {
      if (held) yield held;
      held = chunk;
    }
    if (held) yield held.subarray(0, held.length - 400);
  }
  const uploaded = await upload(bench, cut());
  await read(bench, uploaded.importId);
  const source = await findRun(bench.orgDb, BILLING_IMPORTS, uploaded.importId);
  const kept = await countKept(bench, uploaded.importId);
  if (source?.status !== 'failed' || kept !== 0)
    throw new Error(`a cut file ended as ${source?.status} and left ${kept} rows`);
  process.stdout.write(`cut: refused (${source.errorMessage}), nothing is left of it\n`);
}

const cluster = await startBenchCluster();
let exitCode = 0;
try {
  const url = await cluster.makeDatabase('billing_file');
  const database = openBenchDatabase(url, 4);
  const [organization] = await makeOrganizations(database, 1);
  if (!organization) throw new Error('no organization');
  const api = await startProgram({ name: 'api', url, folder: cluster.folder });
  try {
    const bench: Bench = { url, api, organization, orgDb: new OrgDb(database, organization.orgId) };
    const { seconds, peakBytes } = await measureWhole(bench);
    await measureCut(bench);
    const isMet = seconds <= TARGETS.seconds && peakBytes <= TARGETS.peakBytes;
    process.stdout.write(
      `together ${seconds.toFixed(1)} s (at most ${TARGETS.seconds}), memory ${formatMebibytes(peakBytes)} (at most ${formatMebibytes(TARGETS.peakBytes)}): ${isMet ? 'met' : 'not met'}\n`,
    );
    if (!isMet && !flags['no-gate']) exitCode = 1;
  } finally {
    await api.stop();
    await database.close();
  }
} finally {
  await cluster.stop();
}
process.exitCode = exitCode;
