/**
 * bench:web — how quickly the dashboard loads, scrolls and pages in a real browser.
 * docs/benchmarks.md says what is measured and what the figures mean.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import chromiumPackage from '@sparticuz/chromium';
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';
import { processEnvironment } from '../../platform/config.js';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { openBenchDatabase, startBenchCluster, vacuum } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { loadRows } from './support/loadRows.js';
import { type BenchOrganization, makeOrganizations } from './support/organizations.js';
import { startProgram } from './support/programs.js';
import { formatCount, median } from './support/statistics.js';
import { frameTimes, type TraceEvent } from './support/trace.js';

const TARGETS = {
  firstLoadBytes: 250 * 1024,
  overviewMs: 1_000,
  taskMs: 50,
  /** Script and layout in one frame. */
  frameMs: 8,
  pageMs: 200,
};
/** As a phone of the middle class against this machine. */
const CPU_SLOWDOWN = 4;
const MODELS = 40;
const DAYS = 90;
const WINDOW_DAYS = 29n;
const MICROS_PER_DAY = 86_400_000_000n;
const SCROLL_STEPS = 90;
const TRACED = [
  'devtools.timeline',
  'disabled-by-default-devtools.timeline',
  'disabled-by-default-devtools.timeline.frame',
].join(',');
const LOAD_CONNECTIONS = 6;
const START_MS_MAX = 180_000;

const flags = readFlags({ rows: 1_000_000, rounds: 5, seed: 42 }, { 'no-gate': false });

const stops: (() => Promise<void>)[] = [];

/** The whole service with the demo's data, as a user starts it. */
async function startDemo(): Promise<{ baseUrl: string; key: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'trueup-bench-web-'));
  const port = await findFreePort();
  const service: ChildProcess = spawn(process.execPath, [join(PROJECT_ROOT, 'dist/bin/trueup.js'), 'start'], {
    env: { ...processEnvironment(), DATA_DIR: folder, PORT: String(port), DEMO: '1' },
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => service.once('exit', resolve));
  stops.push(async () => {
    service.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const baseUrl = `http://localhost:${port}`;
  for (const until = Date.now() + START_MS_MAX; ; await sleep(500)) {
    if (service.exitCode !== null) throw new Error(`the service ended with ${service.exitCode}`);
    if (Date.now() > until) throw new Error('the demo was not loaded in time');
    const key = demoKey(folder);
    if (key !== undefined && (await hasGaps(baseUrl, key))) return { baseUrl, key };
  }
}

function demoKey(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'demo-key'), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** The comparison of the demo is its last step. */
async function hasGaps(baseUrl: string, key: string): Promise<boolean> {
  try {
    const headers = { Authorization: `Bearer ${key}` };
    const answer = await fetch(`${baseUrl}/api/v1/reconciliation/gap-explorer?period=90d`, { headers });
    return answer.ok && ((await answer.json()) as { total: number }).total > 0;
  } catch {
    return false;
  }
}

/** A signed-in page with an empty cache. */
async function openPage(
  browser: Browser,
  baseUrl: string,
  key: string,
): Promise<{ page: Page; cdp: CDPSession }> {
  const context = await browser.newContext({ baseURL: baseUrl, viewport: { width: 1440, height: 900 } });
  const answer = await context.request.post('/api/v1/session', {
    data: { api_key: key },
    headers: { Origin: baseUrl, 'X-Requested-With': 'dashboard' },
  });
  if (answer.status() !== 204) throw new Error(`the sign-in answered ${answer.status()}`);
  const page = await context.newPage();
  return { page, cdp: await context.newCDPSession(page) };
}

/** The heading is there and nothing waits for its first answer. */
function isUsable(): boolean {
  const { document } = globalThis as unknown as PageGlobals;
  return document.querySelector('h1') !== null && document.querySelector('[data-loading]') === null;
}

/** The parts of a browser's globals that run in the page. */
interface PageGlobals {
  document: { querySelector(selector: string): { innerText: string } | null };
}

async function benchFirstLoad(browser: Browser, baseUrl: string, key: string): Promise<boolean> {
  const { page, cdp } = await openPage(browser, baseUrl, key);
  let bytes = 0;
  const kinds = new Map<string, string>();
  await cdp.send('Network.enable');
  cdp.on('Network.responseReceived', ({ requestId, type }) => kinds.set(requestId, type));
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (/^(?:Document|Script|Stylesheet|Font|Image|Other)$/.test(kinds.get(requestId) ?? ''))
      bytes += encodedDataLength;
  });
  await page.goto('/');
  await page.waitForFunction(isUsable);
  await page.context().close();
  const ratio = bytes / TARGETS.firstLoadBytes;
  process.stdout.write(
    `first load of the overview, without data: ${(bytes / 1024).toFixed(0)} KiB compressed, target at most ${TARGETS.firstLoadBytes / 1024}, ratio=${ratio.toFixed(2)}\n`,
  );
  return ratio <= 1;
}

async function benchOverview(browser: Browser, baseUrl: string, key: string): Promise<boolean> {
  const times: number[] = [];
  for (let round = 0; round < flags.rounds; round += 1) {
    const { page, cdp } = await openPage(browser, baseUrl, key);
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
    await page.goto('/', { waitUntil: 'commit' });
    await page.waitForFunction(isUsable, undefined, { polling: 'raf' });
    times.push(await page.evaluate(() => performance.now()));
    await page.context().close();
  }
  const ratio = median(times) / TARGETS.overviewMs;
  process.stdout.write(
    `overview usable at ${CPU_SLOWDOWN} × slowdown: ${median(times).toFixed(0)} ms (${times.map((time) => time.toFixed(0)).join(', ')}), target at most ${TARGETS.overviewMs}, ratio=${ratio.toFixed(2)}\n`,
  );
  return ratio <= 1;
}

/** An answer of the gap explorer with a bucket for each of 40 models on each of 90 days. */
function manyGaps(): object {
  const start = Date.UTC(2026, 0, 1);
  const gaps = Array.from({ length: MODELS * DAYS }, (_, at) => {
    const day = at % DAYS;
    const isFlagged = (at * 7919) % 13 === 0;
    return {
      bucket: new Date(start + day * 86_400_000).toISOString(),
      provider: 'openai',
      provider_account_id: 'org-1',
      model: `model-${String(Math.floor(at / DAYS)).padStart(2, '0')}`,
      match_status: isFlagged ? 'unmatched' : 'matched',
      confidence_score: isFlagged ? null : 0.97,
      gap_minutes: 0,
      provider_cost_usd: (at % 97) + 1,
      our_cost_usd: at % 97,
      invoice_period_start: null,
      invoice_period_end: null,
      invoice_aligned: false,
      flagged_gap: isFlagged,
    };
  });
  const period = {
    start: new Date(start).toISOString(),
    end: new Date(start + DAYS * 86_400_000).toISOString(),
  };
  return { period, total: gaps.length, flagged: gaps.filter((gap) => gap.flagged_gap).length, gaps };
}

async function benchScrolling(browser: Browser, baseUrl: string, key: string): Promise<boolean> {
  const { page, cdp } = await openPage(browser, baseUrl, key);
  await page.route('**/api/v1/reconciliation/gap-explorer?*', async (route) => {
    const real = (await (await route.fetch()).json()) as { gaps: object[] };
    const made = manyGaps() as { gaps: object[] };
    const [first = {}] = real.gaps;
    await route.fulfill({ json: { ...real, ...made, gaps: made.gaps.map((gap) => ({ ...first, ...gap })) } });
  });
  // Narrow enough that the days scroll too.
  await page.setViewportSize({ width: 1024, height: 900 });
  await page.goto('/gaps?period=90d');
  await page.locator('[role="grid"]').waitFor();
  await page.waitForLoadState('networkidle');
  const events: TraceEvent[] = [];
  cdp.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  const collected = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve));
  await page.mouse.move(700, 500);
  await cdp.send('Tracing.start', { categories: TRACED } as never);
  for (let step = 0; step < SCROLL_STEPS; step += 1) {
    const direction = step % 30 < 15 ? 1 : -1;
    await page.mouse.wheel(step % 2 === 0 ? direction * 60 : 0, direction * 60);
    await sleep(16);
  }
  await cdp.send('Tracing.end');
  await collected;
  await page.context().close();
  const { longestTaskMs, longestFrameMs, frames } = frameTimes(events);
  process.stdout.write(
    `scrolling ${DAYS} days × ${MODELS} models: longest task ${longestTaskMs.toFixed(1)} ms of at most ${TARGETS.taskMs}, ` +
      `script and layout of the longest of ${frames} frames ${longestFrameMs.toFixed(1)} ms of at most ${TARGETS.frameMs}\n`,
  );
  return frames > 0 && longestTaskMs <= TARGETS.taskMs && longestFrameMs <= TARGETS.frameMs;
}

/** Time from the press of "Older calls" until other rows are there. */
async function benchPaging(browser: Browser): Promise<boolean> {
  const cluster = await startBenchCluster();
  stops.push(() => cluster.stop());
  const url = await cluster.makeDatabase('product');
  const database = openBenchDatabase(url, LOAD_CONNECTIONS);
  const [organization] = (await makeOrganizations(database, 1)) as [BenchOrganization];
  const toMicros = BigInt(Date.now()) * 1000n;
  const window = { fromMicros: toMicros - WINDOW_DAYS * MICROS_PER_DAY, toMicros };
  await loadRows(database, url, organization, flags.rows, window, flags.seed);
  await database.close();
  await vacuum(url);
  const api = await startProgram({ name: 'api', url, folder: cluster.folder });
  stops.push(() => api.stop());
  const { page } = await openPage(browser, `http://localhost:${api.port}`, organization.key);
  await page.goto('/events');
  await page.locator('tbody tr').first().waitFor();
  const times: number[] = [];
  for (let round = 0; round < flags.rounds; round += 1) {
    const before = await page.locator('tbody tr').first().innerText();
    const started = performance.now();
    await page.getByRole('button', { name: 'Older' }).click();
    await page.waitForFunction(
      (text) => (globalThis as unknown as PageGlobals).document.querySelector('tbody tr')?.innerText !== text,
      before,
      { polling: 'raf' },
    );
    times.push(performance.now() - started);
  }
  await page.context().close();
  const ratio = median(times) / TARGETS.pageMs;
  process.stdout.write(
    `next page of ${formatCount(flags.rows)} events: ${median(times).toFixed(0)} ms, target at most ${TARGETS.pageMs}, ratio=${ratio.toFixed(2)}\n`,
  );
  return ratio <= 1;
}

async function main(): Promise<boolean> {
  try {
    const browser = await chromium.launch({
      executablePath: await chromiumPackage.executablePath(),
      args: ['--no-sandbox', '--disable-gpu'],
    });
    stops.push(() => browser.close());
    const { baseUrl, key } = await startDemo();
    const held = [
      await benchFirstLoad(browser, baseUrl, key),
      await benchOverview(browser, baseUrl, key),
      await benchScrolling(browser, baseUrl, key),
      await benchPaging(browser),
    ];
    return held.every((is) => is);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isHeld = await main();
if (!isHeld && !flags['no-gate']) process.exitCode = 1;
