/** A claim from an overcharging bill to its credit, through the API alone. */

import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { findUuid } from '../../domain/ids.js';
import { shiftDay } from '../../domain/period.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import type { BucketResults } from '../../lab/bills/pages.js';
import { send } from '../api/support/requests.js';
import { startOpenAiBilling } from '../fakes/billing/openAiBilling.js';
import type { BillingFake } from '../fakes/billing/reportServer.js';
import type { ProviderTruth } from '../fakes/billing/truth.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { pollToEnd } from '../support/bills.js';
import { untilMoved } from '../support/claimsPlace.js';
import { testConnectors } from '../support/connectors.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import {
  ADMIN_KEYS,
  CONNECTIONS,
  DAY_SECONDS,
  dayText,
  FAST,
  todaySeconds,
} from '../support/fetchedBills.js';
import { TEST_NAMESPACE } from '../support/temporal.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const ACCOUNT = 'org-overcharged';
const MODEL = 'gpt-4o-mini-2024-07-18';
/** OpenAI's list prices of the model, dollars per million tokens, and its charge for cached input on the wrong days. */
const RATES = { input: 0.15, cached: 0.075, output: 0.6 };
const WRONG_CACHED = 0.15;
/** Twelve days of the last month, the last six of them charged wrongly; the provider no longer restates them. */
const MONTH = shiftDay(`${dayText(todaySeconds()).slice(0, 7)}-01`, -1).slice(0, 7);
const DAYS = Array.from({ length: 12 }, (_, at) => `${MONTH}-${String(at + 5).padStart(2, '0')}`);
const isWrong = (day: string) => day >= `${MONTH}-11`;
/** Calls of a day, and tokens of each; cached ones are input too. */
const CALLS_A_DAY = 5;
const TOKENS = { input: 20_000_000, cached: 60_000_000, output: 10_000_000 };
/** 6 days × 5 calls × 60M cached tokens × $0.075 too much. */
const OVERCHARGED_CENTS = 13_500;
const TICKET = 'OAI-48213';

const secondsOf = (day: string) => Date.parse(`${day}T00:00:00Z`) / 1_000;

function costsOf(day: string): BucketResults {
  const cached = isWrong(day) ? WRONG_CACHED : RATES.cached;
  const line = (label: string, tokens: number, rate: number) =>
    cost(`${MODEL}, ${label}`, ((tokens * CALLS_A_DAY) / 1e6) * rate, tokens * CALLS_A_DAY);
  return bucketOf(day, [
    line('input', TOKENS.input, RATES.input),
    line('cached input', TOKENS.cached, cached),
    line('output', TOKENS.output, RATES.output),
  ]);
}

function cost(label: string, usd: number, tokens?: number): object {
  return {
    object: 'organization.costs.result',
    amount: { value: { $number: usd.toFixed(6) }, currency: 'usd' },
    line_item: label,
    project_id: 'proj_shop',
    organization_id: ACCOUNT,
    ...(tokens === undefined ? {} : { quantity: tokens, quantity_unit: 'tokens' }),
  };
}

const bucketOf = (day: string, results: object[]): BucketResults => ({
  startSeconds: secondsOf(day),
  endSeconds: secondsOf(day) + DAY_SECONDS,
  results,
});

function truth(): ProviderTruth {
  const usage = DAYS.map((day) => ({
    startSeconds: secondsOf(day) + 10 * 3_600,
    endSeconds: secondsOf(day) + 11 * 3_600,
    results: [
      {
        object: 'organization.usage.completions.result',
        input_tokens: (TOKENS.input + TOKENS.cached) * CALLS_A_DAY,
        input_cached_tokens: TOKENS.cached * CALLS_A_DAY,
        output_tokens: TOKENS.output * CALLS_A_DAY,
        num_model_requests: CALLS_A_DAY,
        project_id: 'proj_shop',
        api_key_id: 'key_1',
        model: MODEL,
        batch: false,
        service_tier: 'default',
      },
    ],
  }));
  return { accountId: ACCOUNT, reports: { costs: DAYS.map(costsOf), completions: usage } };
}

function callOf(day: string, number: number): object {
  const at = `${day}T10:${String(number * 10).padStart(2, '0')}:00Z`;
  return {
    provider: 'openai',
    provider_account_id: ACCOUNT,
    model: MODEL,
    request_id: `req_${day}_${number}`,
    timestamp: at,
    end_at: at,
    status: 'ok',
    is_batch: false,
    _service: { name: 'shop' },
    input_tokens: TOKENS.input + TOKENS.cached,
    cache_read: TOKENS.cached,
    output_tokens: TOKENS.output,
  };
}

let provider: BillingFake;
let api: TestApi;
let engine: TestEngine;
let connection: Connection;
let client: Client;

beforeAll(async () => {
  provider = await startOpenAiBilling({ truth: truth(), adminKey: ADMIN_KEYS.openai });
  const connectors = testConnectors({ openai: provider.origin });
  api = await startTestApi({
    connectors,
    moveClaim: (input, command) => engine.orchestrator.moveClaim(input, command),
  });
  engine = await startTestEngine(api.database.database, { connectors, syncPace: FAST });
  await engine.startWorker();
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace: TEST_NAMESPACE });
}, 300_000);

afterAll(async () => {
  await engine?.close();
  await connection?.close();
  await api?.close();
  await provider?.close();
});

const get = async (path: string): Promise<Json> => {
  const { status, body } = await api.get(path);
  expect(status, `${path}: ${JSON.stringify(body)}`).toBe(200);
  return body;
};

async function post(path: string, body: object, expected: number): Promise<Json> {
  const answer = await untilMoved(() => api.post(path, body));
  expect(answer.status, `${path}: ${JSON.stringify(answer.body)}`).toBe(expected);
  return answer.body;
}

async function patch(path: string, body: object): Promise<Json> {
  const headers = { 'content-type': 'application/json' };
  const answer = await untilMoved(() =>
    send(api, { method: 'PATCH', path, headers, body: JSON.stringify(body) }),
  );
  expect(answer.status, `${path}: ${JSON.stringify(answer.body)}`).toBe(200);
  return answer.body;
}

/** Waits until a run, including its steps after the publication, has ended. */
async function runEnded(id: string): Promise<Json> {
  const runId = findUuid('run', id) ?? '';
  const statusUrl = `/api/v1/reconciliation/gap-explorer/runs/${id}`;
  await pollToEnd(api, statusUrl);
  await client.workflow.getHandle(runWorkflowId('gap_run', { orgId: api.orgId, id: runId })).result();
  const run = await get(statusUrl);
  expect(run.status, JSON.stringify(run)).toBe('succeeded');
  return run;
}

/** Compares the bills. */
async function compare(): Promise<Json> {
  const { run_id } = await post('/api/v1/reconciliation/gap-explorer/run?period=90d', {}, 202);
  return runEnded(run_id);
}

/** Waits for the end of a sync, and of the gap run that it starts. */
async function syncEnded({ status_url }: Json): Promise<void> {
  const done = await pollToEnd(api, status_url);
  expect(done.status, JSON.stringify(done)).toBe('succeeded');
  // It is noted on a sync after its end, where that has changed anything.
  const { result } = await until(
    'the run after the sync',
    () => get(status_url),
    (sync) => sync.result.changed_days === 0 || sync.result.gap_run_id !== null,
  );
  if (result.gap_run_id !== null) await runEnded(result.gap_run_id);
}

const sync = async (connectionId: string): Promise<void> =>
  syncEnded(await post(`${CONNECTIONS}/${connectionId}/sync`, {}, 202));

const recoverable = async (): Promise<number> =>
  (await get('/api/v1/financial/summary')).recoverable_confirmed_usd;
const credited = async (): Promise<number> =>
  (await get(`/api/v1/reconciliation/statement?period=${MONTH}`)).total.credited_usd;

it('gets an overcharge back, to the cent and once', { timeout: 600_000 }, async () => {
  // The organization sends its calls and connects the provider's bill, which charges cached input too much on six days.
  const events = DAYS.flatMap((day) => Array.from({ length: CALLS_A_DAY }, (_, at) => callOf(day, at)));
  const told = await api.post('/api/v1/ingest/events', { events }, api.ingestKey);
  expect([told.status, told.body.accepted]).toEqual([202, events.length]);
  const connected = await post(
    CONNECTIONS,
    { provider: 'openai', name: 'OpenAI', credentials: { admin_key: ADMIN_KEYS.openai } },
    201,
  );
  await syncEnded(connected.sync);

  // A run finds it, a person confirms it, the next run drafts the claim.
  await compare();
  const queue = await get('/api/v1/financial/review-queue');
  expect(queue.items).toMatchObject([
    { kind: 'cache_read_rate_mismatch', model: 'gpt-4o-mini', confidence: 'HIGH', impact_usd: 135 },
  ]);
  const dispute = await post(`/api/v1/financial/review-queue/${queue.items[0].id}/confirm`, {}, 201);
  expect(dispute.amount_cents).toBe(OVERCHARGED_CENTS);
  const drafting = await compare();
  expect(drafting.result.claims_drafted, JSON.stringify(drafting)).toHaveLength(1);
  const [claimId] = drafting.result.claims_drafted;
  const path = `/api/v1/claims/${claimId}`;
  const draft = await get(path);
  expect(draft).toMatchObject({
    status: 'draft',
    total_recoverable_cents: OVERCHARGED_CENTS,
    dispute_ids: [dispute.id],
    proposed_credits: [],
    proposed_move: null,
  });
  expect(await recoverable()).toBe(135);

  // Its evidence shows every line, and the requests behind it.
  const evidence = await get(`${path}/evidence.json`);
  expect(evidence.totals.recoverable_cents).toBe(OVERCHARGED_CENTS);
  expect(evidence.samples.length).toBeGreaterThanOrEqual(20);
  expect(evidence.source_pages.length).toBeGreaterThan(0);

  // It is sent, acknowledged, and escalated where nothing comes of it.
  expect((await post(`${path}/submit`, {}, 200)).status).toBe('submitted_to_provider');
  await patch(`${path}/status`, { status: 'provider_acknowledged', external_ticket_id: TICKET });
  expect((await api.get(`${path}/ticket-draft`)).status).toBe(409);
  await patch(`${path}/status`, { status: 'escalated' });
  const ticket = await post(`${path}/ticket-draft`, {}, 200);
  expect(ticket.subject).toContain('$135.00');
  expect(ticket.suggested_resolution).toBe(`Issue a credit of $135.00 for ${MONTH}-11 to ${MONTH}-16.`);
  for (const part of [TICKET, ACCOUNT, `"${MODEL}, cached input"`, '1,800,000,000 tokens', '$270.00'])
    expect(ticket.body).toContain(part);
  expect(ticket.body.match(/req_/g).length).toBeGreaterThanOrEqual(20);

  // A later bill returns the money, among other rows; the next run proposes it as the answer.
  const filedOn = (await get(path)).submitted_at.slice(0, 10);
  provider.restate(
    'costs',
    bucketOf(filedOn, [cost('Promotional credit', -5), cost('Billing adjustment', -OVERCHARGED_CENTS / 100)]),
  );
  await sync(connected.id);
  await compare();
  const answered = await get(path);
  expect(answered.status).toBe('escalated');
  expect(answered.proposed_credits).toMatchObject([
    {
      source: 'credit_row',
      status: 'proposed',
      amount_cents: OVERCHARGED_CENTS,
      rows: [{ day: filedOn, amount_usd: 135, description: 'Billing adjustment' }],
      move: { status: 'credit_issued', credit_issued_cents: OVERCHARGED_CENTS },
    },
  ]);
  const notices = async () =>
    (await get('/api/v1/alerts?kind=notice')).alerts.filter(
      ({ notice }: Json) => notice === 'claim_credit_proposed',
    );
  expect(await notices()).toMatchObject([{ subject: { type: 'claim', id: claimId } }]);

  // A person accepts it, and all follows.
  const ended = await patch(`${path}/status`, answered.proposed_move);
  expect(ended).toMatchObject({
    status: 'credit_issued',
    credit_issued_cents: OVERCHARGED_CENTS,
    proposed_credits: [{ status: 'accepted', move: null }],
    proposed_move: null,
    warnings: [],
  });
  expect(await get(`/api/v1/financial/disputes/${dispute.id}`)).toMatchObject({
    status: 'resolved',
    resolution: 'credit_received',
  });
  expect(ended.events.map(({ to_status }: Json) => to_status)).toEqual([
    ...['draft', 'submitted_to_provider', 'provider_acknowledged', 'escalated', 'credit_issued'],
  ]);
  expect(await credited()).toBe(135);
  expect(await recoverable()).toBe(0);

  // Once: the same bill again and another run change nothing.
  await sync(connected.id);
  const again = await compare();
  expect(again.result.claims_drafted).toEqual([]);
  expect(await get(path)).toEqual(ended);
  expect(await notices()).toHaveLength(1);
  expect((await get('/api/v1/claims')).claims).toHaveLength(1);
  expect([await credited(), await recoverable()]).toEqual([135, 0]);
});
