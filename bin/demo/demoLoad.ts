import { setTimeout as sleep } from 'node:timers/promises';
import { Renderer } from '../../adapters/typst/renderer.js';
import { DAY_COUNT } from '../../lab/demo/calendar.js';
import type { Demo, DemoContractRate } from '../../lab/demo/generateDemo.js';
import { renderDemoInvoice } from '../../lab/demo/renderInvoice.js';
import { StartError } from '../../platform/startError.js';
import type { Screen } from '../terminal/terminal.js';

/** Calls of one request, and requests in progress at once. */
const EVENTS_PER_REQUEST = 1_500;
const REQUESTS_AT_ONCE = 3;

/** Result of a load, with the gap run that followed. */
export interface LoadedDemo {
  events: number;
  /** Calls that were stored before. */
  duplicates: number;
  // biome-ignore lint/suspicious/noExplicitAny: a run as the API presents it
  run: any;
  // biome-ignore lint/suspicious/noExplicitAny: savings as the API presents them
  savings: any;
}

/**
 * Loads a demo through the public API, as a customer's data arrive: first contract, keys and policies, by which calls
 * are judged at ingest; then calls and bills in parallel; then one gap run and one savings run over all of it. A repeat
 * changes nothing.
 * @throws StartError with the API's message when a request is refused.
 */
export async function loadDemo(client: ServiceClient, demo: Demo, screen: Screen): Promise<LoadedDemo> {
  await screen.step('contract, keys, policies', addAgreements(client, demo));
  const count = demo.events.length.toLocaleString('en-US');
  const [calls] = await Promise.all([
    screen.step(`${count} calls`, addEvents(client, demo, screen)),
    screen.step(`${demo.files.length} bills of 2 providers`, addBills(client, demo)),
  ]);
  await screen.step(`${demo.invoices.length} invoices`, addInvoices(client, demo));
  const [run, savings] = await Promise.all([
    screen.step('90 days compared', runGaps(client)),
    screen.step(`${demo.rules.length} rules modeled`, modelRules(client, demo)),
  ]);
  return { ...calls, run, savings };
}

/** Contract, key registry and policies. */
export async function addAgreements(client: ServiceClient, demo: Demo): Promise<void> {
  for (const rate of demo.contractRates) await addContractRate(client, rate);
  const items = demo.providerKeys;
  bodyOf(await ask(client, 'PUT', '/api/v1/provider-keys', { items }), 'PUT /provider-keys', [200]);
  for (const { type, body } of demo.policies) {
    const path = `/api/v1/policies/${type}`;
    bodyOf(await ask(client, 'PUT', path, body), `PUT ${path}`, [200, 201]);
  }
}

/** Entries are only added, never changed: an existing one is not sent again. */
async function addContractRate(client: ServiceClient, rate: DemoContractRate): Promise<void> {
  const path = '/api/v1/pricing/contract-rates';
  const { contract_rates: known } = bodyOf(await ask(client, 'GET', path), `GET ${path}`, [200]);
  const isKnown = (known as Record<string, unknown>[]).some(
    (entry) =>
      entry.provider === rate.provider &&
      entry.model === rate.model &&
      entry.discount_percent === rate.discount_percent &&
      entry.effective_from === rate.effective_from,
  );
  if (!isKnown) bodyOf(await ask(client, 'POST', path, rate), `POST ${path}`, [201]);
}

/** Sends every reported call. */
export async function addEvents(
  client: ServiceClient,
  { events }: Pick<Demo, 'events'>,
  screen: Screen,
): Promise<{ events: number; duplicates: number }> {
  const parts: object[][] = [];
  for (let at = 0; at < events.length; at += EVENTS_PER_REQUEST)
    parts.push(events.slice(at, at + EVENTS_PER_REQUEST));
  let [done, duplicates] = [0, 0];
  const send = async () => {
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      const path = '/api/v1/ingest/events';
      const body = bodyOf(await ask(client, 'POST', path, { events: part }), `POST ${path}`, [202]);
      done += body.accepted;
      duplicates += body.duplicates;
      if (Math.floor(done / 15_000) > Math.floor((done - part.length) / 15_000) && done < events.length)
        screen.note(`${done.toLocaleString('en-US')} of ${events.length.toLocaleString('en-US')} calls`);
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, send));
  return { events: done, duplicates };
}

/** Uploads files one after the other, so that the later copy of a day is the latest; workers read them in parallel. */
async function addBills(client: ServiceClient, { files }: Demo): Promise<void> {
  const imports: Promise<unknown>[] = [];
  for (const { provider, account, name, text } of files) {
    const form = new FormData();
    form.append('provider', provider);
    form.append('account', account);
    form.append('file', new Blob([text]), name);
    const path = '/api/v1/billing-imports';
    const { status_url } = bodyOf(await ask(client, 'POST', path, form), `the bill ${name}`, [202]);
    const read = waitForRun(client, status_url, `reading ${name}`);
    // A failure is thrown below, when all have been uploaded.
    read.catch(() => undefined);
    imports.push(read);
  }
  await Promise.all(imports);
}

const READ: ReadonlySet<string> = new Set(['reconciled', 'needs_review', 'failed']);

/** Uploads invoices as PDFs; those that contradict a bill wait for a person. */
async function addInvoices(client: ServiceClient, { invoices, files }: Demo): Promise<void> {
  const path = '/api/v1/reconciliation/invoice';
  const renderer = new Renderer();
  for (const invoice of invoices) {
    const { provider, name } = invoice;
    const account = files.find((file) => file.provider === provider)?.account ?? '';
    const form = new FormData();
    form.append('provider', provider);
    form.append('account', account);
    form.append('file', new Blob([new Uint8Array(await renderDemoInvoice(renderer, invoice))]), name);
    const { status_url } = bodyOf(await ask(client, 'POST', path, form), `the invoice ${name}`, [200, 202]);
    for (let status = ''; !READ.has(status); await sleep(POLL_MS))
      status = bodyOf(await ask(client, 'GET', status_url), `GET ${status_url}`, [200]).status;
  }
}

/** Creates enforcement rules, and models their savings over all days. An existing rule is not created again. */
async function modelRules(client: ServiceClient, { rules, calendar, endDay }: Demo): Promise<unknown> {
  const path = '/api/v1/enforcement-rules';
  const { enforcement_rules: known } = bodyOf(await ask(client, 'GET', path), `GET ${path}`, [200]);
  const names = new Set((known as { name: string | null }[]).map(({ name }) => name));
  for (const rule of rules)
    if (!names.has(rule.name)) bodyOf(await ask(client, 'POST', path, rule), `POST ${path}`, [201]);
  // A call that ended on the first day may have begun the day before.
  const period = { from: calendar.dayText(-DAY_COUNT), to: endDay };
  const savings = '/api/v1/enforcement/savings';
  const started = await ask(client, 'POST', `${savings}/runs`, period);
  const { status_url } = bodyOf(started, `POST ${savings}/runs`, [202]);
  await waitForRun(client, status_url, 'the model of savings');
  const query = new URLSearchParams(period).toString();
  return bodyOf(await ask(client, 'GET', `${savings}?${query}`), `GET ${savings}`, [200]);
}

async function runGaps(client: ServiceClient): Promise<unknown> {
  const path = '/api/v1/reconciliation/gap-explorer/run?period=90d';
  const { status_url } = bodyOf(await ask(client, 'POST', path), 'the gap run', [202]);
  return waitForRun(client, status_url, 'the gap run');
}

/** One organization's access to a running API, as a customer's program has it. */
export interface ServiceClient {
  /** Address of the API, without a path. */
  base: string;
  key: string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are the API's own, whose schemas its tests hold
type Json = any;

export interface Answer {
  status: number;
  body: Json;
}

const REQUEST_LIMIT_MS = 120_000;
/** Statuses after which a retry may succeed. */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503]);
const TRIES_MAX = 20;
const RETRY_MS = 500;
const POLL_MS = 300;
const OVER: ReadonlySet<string> = new Set(['succeeded', 'partial', 'failed', 'cancelled']);

/** Sends a request, and retries temporary refusals. */
export async function ask(
  client: ServiceClient,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: object | FormData,
): Promise<Answer> {
  const isForm = body instanceof FormData;
  const init = {
    method,
    headers: {
      authorization: `Bearer ${client.key}`,
      ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  };
  for (let tries = 1; ; tries += 1) {
    const signal = AbortSignal.timeout(REQUEST_LIMIT_MS);
    const response = await fetch(client.base + path, { ...init, signal });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    const answer = { status: response.status, body: isJson && text !== '' ? JSON.parse(text) : text };
    if (!PASSING.has(answer.status) || tries === TRIES_MAX) return answer;
    await sleep(RETRY_MS);
  }
}

/**
 * The answer's body.
 * @throws StartError with the API's message when the status is not in `wanted`.
 */
export function bodyOf(answer: Answer, what: string, wanted: readonly number[]): Json {
  if (wanted.includes(answer.status)) return answer.body;
  const said = answer.body?.detail ?? answer.body?.title ?? '';
  throw new StartError(`${what} was answered with ${answer.status}: ${said || 'no reason was given'}`);
}

/**
 * Polls until a run has ended; `onProgress` receives its progress.
 * @throws StartError when it failed.
 */
async function waitForRun(
  client: ServiceClient,
  statusUrl: string,
  what: string,
  onProgress: (done: number, total: number) => void = () => undefined,
): Promise<Json> {
  for (;;) {
    const run = bodyOf(await ask(client, 'GET', statusUrl), what, [200]);
    if (OVER.has(run.status)) {
      if (run.status !== 'succeeded')
        throw new StartError(`${what} ended ${run.status}: ${run.error?.message ?? 'no reason was given'}`);
      return run;
    }
    onProgress(Number(run.progress?.done ?? 0), Number(run.progress?.total ?? 0));
    await sleep(POLL_MS);
  }
}
