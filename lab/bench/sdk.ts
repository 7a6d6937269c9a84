/**
 * `npm run bench:sdk`: overhead of a call that the packages for JavaScript and Python observe, with rules on, and in
 * JavaScript with `policyVerdicts` too; and 10,000 calls while the service is away. `PYTHON` names another interpreter
 * than `python3`. Ends with 1 when a limit is broken.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OpenAI } from 'openai';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { OpenCall, ServiceRecorder } from '../../sdk/js/src/calls.js';
import { Trueup, withLabels } from '../../sdk/js/src/node.js';

const CALLS = 10_000;
const WARM_UP_CALLS = 3_000;
const ROUNDS = 9;
const OVERHEAD_US_MAX = 50;
const MEMORY_BYTES_MAX = 20_000_000;

const ANSWER = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-4o-mini',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'word '.repeat(100) }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 500, completion_tokens: 100, total_tokens: 600 },
});
const HEADERS = { 'content-type': 'application/json' };
const MESSAGES = [
  { role: 'system' as const, content: 'You are brief. '.repeat(20) },
  { role: 'user' as const, content: 'Please summarise this text. '.repeat(60) },
];
const NO_SCOPE = { team_id: null, feature: null, model: null };
/** One rule of each type, none of which stops a call of the bench. */
const RULES = [
  ['token_ceiling', { max_tokens: 1_000_000 }, NO_SCOPE],
  ['session_budget_usd', { budget_usd: 1_000_000 }, NO_SCOPE],
  ['duplicate_window_seconds', { window_seconds: 1 }, { ...NO_SCOPE, feature: 'other' }],
  ['max_tool_calls', { max_tool_calls: 100_000 }, NO_SCOPE],
  ['model_downgrade', { to_model: 'gpt-4o-mini' }, { ...NO_SCOPE, model: 'gpt-4o' }],
].map(([type, config, scope], index) => ({
  id: `r${index}`,
  name: null,
  type,
  mode: 'block',
  config,
  scope,
}));
const PRICES = {
  'gpt-4o-mini': { in_per_mtok: 0.15, out_per_mtok: 0.6, cache_read: 0.075, cache_creation: 0.15 },
};

/** Banned patterns as the service serves them. */
const PATTERNS: object = JSON.parse(
  readFileSync(new URL('../../sdk/patternCases.json', import.meta.url), 'utf8'),
).lists.find((list: { name: string }) => list.name === 'counted characters').served;

let problems = 0;

function check(name: string, value: number, limit: number, unit: string): void {
  const isKept = value <= limit;
  if (!isKept) problems += 1;
  console.log(`${isKept ? 'ok  ' : 'FAIL'} ${name}: ${value} ${unit} (limit ${limit})`);
}

/** A client whose provider answers at once, without a network. */
function aClient(): OpenAI {
  return new OpenAI({ apiKey: 'sk-bench', fetch: async () => new Response(ANSWER, { headers: HEADERS }) });
}

/** The service: rules and prices, and it takes every event. */
function startService(): Promise<{ url: string; received: () => number; close: () => void }> {
  let received = 0;
  const server = createServer(async (request, response) => {
    for await (const _ of request) received += 0;
    const answer = request.url?.includes('config')
      ? { version: '1', poll_seconds: 60, rules: RULES }
      : request.url?.includes('pricing')
        ? { version: '1', pricing: PRICES }
        : request.url?.includes('patterns')
          ? PATTERNS
          : { accepted: 1 };
    if (request.method === 'POST') received += 1;
    response.writeHead(200, HEADERS).end(JSON.stringify(answer));
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () =>
      resolve({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        received: () => received,
        close: () => server.closeAllConnections() ?? server.close(),
      }),
    );
  });
}

async function timeCalls(client: OpenAI, calls: number): Promise<Float64Array> {
  const times = new Float64Array(calls);
  for (let index = 0; index < calls; index += 1) {
    const began = performance.now();
    await client.chat.completions.create({ model: 'gpt-4o-mini', messages: MESSAGES, max_tokens: 100 });
    times[index] = (performance.now() - began) * 1_000;
  }
  return times.sort();
}

const quantile = (sorted: Float64Array, share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
const round = (value: number) => Math.round(value * 10) / 10;

/** Times what the package itself does in each call: before the request is sent, and when its answer is read. */
function timePackage(): () => Float64Array {
  const times: number[] = [];
  const { begin } = ServiceRecorder.prototype;
  const { end } = OpenCall.prototype;
  const beginUs = new WeakMap<OpenCall, number>();
  ServiceRecorder.prototype.begin = function (request) {
    const began = performance.now();
    const call = begin.call(this, request);
    beginUs.set(call, (performance.now() - began) * 1_000);
    return call;
  };
  OpenCall.prototype.end = function (...args) {
    const began = performance.now();
    end.apply(this, args);
    times.push((beginUs.get(this) ?? 0) + (performance.now() - began) * 1_000);
  };
  return () => {
    ServiceRecorder.prototype.begin = begin;
    OpenCall.prototype.end = end;
    return Float64Array.from(times).sort();
  };
}

/**
 * Whole calls are compared by their medians, in alternating rounds: the far end of their times is garbage collection and
 * the machine's other work, with and without the package. The far end of the package's own work is measured inside it.
 */
async function benchOverhead(policyVerdicts: boolean): Promise<void> {
  const service = await startService();
  const trueup = new Trueup({
    url: service.url,
    apiKey: 'tru_bench',
    flushAtExit: false,
    policyVerdicts,
  });
  if (!(await trueup.ready())) throw new Error('no rules');
  const plain = aClient();
  const observed = trueup.observe(aClient());
  await timeCalls(plain, WARM_UP_CALLS);
  await withLabels({ session: 'warm', team: 'a' }, () => timeCalls(observed, WARM_UP_CALLS));
  await trueup.flush();
  const differences: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const without = await timeCalls(plain, CALLS / ROUNDS);
    const within = await withLabels({ session: `s-${round}`, team: 'a' }, () =>
      timeCalls(observed, CALLS / ROUNDS),
    );
    differences.push(quantile(within, 0.5) - quantile(without, 0.5));
    await trueup.flush();
  }
  // Other work of the machine only adds: the best of some rounds is the package's own.
  let own = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round += 1) {
    const finish = timePackage();
    await withLabels({ session: 's', team: 'a' }, () => timeCalls(observed, CALLS));
    own = Math.min(own, quantile(finish(), 0.99));
    await trueup.flush();
  }
  const median = differences.sort((left, right) => left - right)[Math.floor(ROUNDS / 2)] ?? 0;
  const withRules = policyVerdicts ? 'with rules and policyVerdicts' : 'with rules';
  check(`${withRules}: a whole call, median, more than without`, round(median), OVERHEAD_US_MAX, 'µs');
  check(`${withRules}: the package's own work in a call, p99`, round(own), OVERHEAD_US_MAX, 'µs');
  await trueup.close();
  service.close();
}

async function benchAway(spool: string | undefined): Promise<void> {
  const name = spool === undefined ? 'service away' : 'service away, with a spool';
  const trueup = new Trueup({
    url: 'http://127.0.0.1:9',
    apiKey: 'tru_bench',
    flushAtExit: false,
    ...(spool === undefined ? {} : { spool }),
  });
  const client = trueup.observe(aClient());
  await timeCalls(aClient(), WARM_UP_CALLS);
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  let answers = 0;
  for (let index = 0; index < CALLS; index += 1) {
    const answer = await client.chat.completions.create({ model: 'gpt-4o-mini', messages: MESSAGES });
    if (answer.choices.length === 1) answers += 1;
  }
  globalThis.gc?.();
  check(`${name}: answers lost`, CALLS - answers, 0, 'calls');
  if (globalThis.gc)
    check(`${name}: memory`, process.memoryUsage().heapUsed - before, MEMORY_BYTES_MAX, 'bytes');
  check(`${name}: bytes in the queue`, trueup.stats.waitingBytes, MEMORY_BYTES_MAX, 'bytes');
  check(`${name}: events dropped`, trueup.stats.dropped, 0, 'events');
  await trueup.close(1);
}

/** The events of a spool arrive with the next process. */
async function benchSpool(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'trueup-spool-'));
  try {
    await benchAway(folder);
    let arrived = 0;
    const next = new Trueup({
      url: 'http://service.example',
      apiKey: 'tru_bench',
      flushAtExit: false,
      enforcement: false,
      spool: folder,
      fetch: async (_input, init) => {
        const bytes = new Uint8Array(init?.body as Uint8Array<ArrayBuffer>);
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
        arrived += ((await new Response(stream).json()) as { events: unknown[] }).events.length;
        return new Response('{}');
      },
    });
    await next.flush(60_000);
    await next.close();
    check('with a spool: events lost', CALLS - arrived, 0, 'events');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Runs the program of the Python package beside a service that answers it, and checks what it measures. */
async function benchPython(): Promise<void> {
  const service = await startService();
  const child = spawn(process.env.PYTHON ?? 'python3', [join(PROJECT_ROOT, 'lab/bench/sdk.py')], {
    env: {
      ...process.env,
      PYTHONPATH: join(PROJECT_ROOT, 'sdk/python/src'),
      PYTHONDONTWRITEBYTECODE: '1',
      SERVICE_URL: service.url,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8');
  });
  const status = await new Promise((resolve) => {
    child.on('close', resolve);
    child.on('error', (error) => resolve(error.message));
  });
  service.close();
  for (const line of output.split('\n').filter((one) => one !== '')) {
    const { name, value, limit, unit } = JSON.parse(line);
    check(`Python: ${name}`, value, limit, unit);
  }
  check(`Python: the program has ended with ${status}`, status === 0 ? 0 : 1, 0, 'failures');
}

await benchOverhead(false);
await benchOverhead(true);
await benchAway(undefined);
await benchSpool();
await benchPython();
process.exit(problems === 0 ? 0 : 1);
