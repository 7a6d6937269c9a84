import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GAP_RUNS } from '../../db/reconciliation/gapRuns.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { insertRun } from '../../db/runs/runTable.js';
import { publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { MICROS_PER_DAY, microsOfDay } from '../../domain/period.js';
import { type Finding, linesToText, reasonOf } from '../../domain/reconciliation/engine/index.js';

import { reconcile } from '../../lab/bench/reconciliation/benchmark.js';
import { priceListOf } from '../../lab/bench/reconciliation/books.js';
import { judgeWorld } from '../../lab/bench/reconciliation/judge.js';
import { generateFirst } from '../../lab/generators/first/generateFirst.js';
import type { GeneratedWorld, ToldCall } from '../../lab/generators/world.js';
import { seedPrices } from '../../usecases/pricing/priceSeed.js';
import { ingestMany } from '../api/support/requests.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { importBill, pollToEnd } from '../support/bills.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startTestEngine, type TestEngine } from '../support/engine.js';

const SIZE = { series: 12, days: 18, callsPerDay: 6 };
const RUN_ID = '00000000-0000-4000-8000-00000000e2e0';

let database: TestDatabase;
let api: TestApi;
let engine: TestEngine;
let world: GeneratedWorld;

beforeAll(async () => {
  world = generateFirst({ seed: 5, size: SIZE });
  database = await createTestDatabase();
  await givePrices();
  api = await startTestApi({ database });
  engine = await startTestEngine(database.database, {
    nowMicros: () => BigInt(world.readAtSeconds) * 1_000_000n,
  });
  await engine.startWorker();
  await sendKeys();
  for (const contract of world.contracts) {
    const { status, body } = await api.post('/api/v1/pricing/contract-rates', contract);
    if (status !== 201) throw new Error(`the contract: ${JSON.stringify(body)}`);
  }
  await ingestMany(api, world.calls.map(eventOf));
  for (const { provider, accountId, text } of world.bills.V3) {
    const done = await importBill(api, text, { provider, account: accountId });
    if (done.status !== 'succeeded') throw new Error(`the bill: ${JSON.stringify(done)}`);
  }
  await runGapsOfWorld();
}, 300_000);

afterAll(async () => {
  await engine?.close();
  await api?.close();
  await database?.close();
});

/** The price list of the world, in the place of the shipped one. */
async function givePrices(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'trueup-prices-'));
  try {
    const path = join(folder, 'prices.json');
    // A list with an older date than the stored one is left alone.
    writeFileSync(path, JSON.stringify({ ...priceListOf(world), as_of: '2999-01-01' }));
    await seedPrices(database.database, path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function sendKeys(): Promise<void> {
  const items = world.keys.map((key) => ({
    provider: key.provider,
    provider_key_id: key.keyId,
    provider_account_id: key.accountId,
    name: key.keyId,
    status: key.revokedAtSeconds === null ? 'active' : 'revoked',
    revoked_at: key.revokedAtSeconds === null ? null : rfc3339(key.revokedAtSeconds),
  }));
  const response = await fetch(`${api.baseUrl}/api/v1/provider-keys`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${api.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ items }),
  });
  if (response.status !== 200) throw new Error(`the keys: ${await response.text()}`);
}

const rfc3339 = (seconds: number) => new Date(seconds * 1_000).toISOString();

function eventOf(call: ToldCall, index: number): object {
  const cached = {
    cache_read: call.cacheRead,
    cache_creation: call.cacheWrite5m + call.cacheWrite1h,
    cache_creation_5m: call.cacheWrite5m,
    cache_creation_1h: call.cacheWrite1h,
  };
  return {
    provider: call.provider,
    model: call.model,
    request_id: `req-${index}`,
    timestamp: rfc3339(call.endSeconds),
    end_at: rfc3339(call.endSeconds),
    status: call.status,
    is_batch: call.isBatch,
    ...(call.serviceTier === null ? {} : { service_tier: call.serviceTier }),
    ...(call.accountId === null ? {} : { provider_account_id: call.accountId }),
    provider_key_id: call.keyId,
    _service: { name: call.serviceName },
    input_tokens: call.input,
    output_tokens: call.output,
    reasoning_tok: call.reasoning,
    ...(call.lacksCache ? {} : cached),
  };
}

/** A run over the world's days, whenever the test is run. */
async function runGapsOfWorld(): Promise<void> {
  await api.orgDb.transaction(async (inside) => {
    await insertRun(inside, GAP_RUNS, {
      id: RUN_ID,
      period: '90d',
      provider: null,
      windowStartMicros: microsOfDay(world.firstDay),
      windowEndMicros: microsOfDay(world.lastDay) + MICROS_PER_DAY,
    });
    await insertOutboxMessage(inside, 'gap_run.start', RUN_ID);
  });
  const run = await pollToEnd(
    api,
    `/api/v1/reconciliation/gap-explorer/runs/${publicId('run', RUN_ID)}`,
    120_000,
  );
  if (run.status !== 'succeeded') throw new Error(`the run: ${JSON.stringify(run)}`);
}

/** All stored columns of a finding. */
function asStored(finding: Finding): object {
  return {
    provider: finding.provider,
    provider_account_id: finding.accountId,
    model: finding.model,
    kind: finding.kind,
    variant: finding.variant,
    direction: finding.direction,
    blame: finding.blame,
    claimable: finding.claimable,
    grade: finding.grade,
    probability: finding.probability,
    match_probability: finding.matchProbability,
    visibility: finding.visibility,
    provisional: finding.provisional,
    critical: finding.critical,
    missing_gates: finding.missing,
    next_best: finding.next,
    lines: linesToText(finding.lines),
    waterfall: finding.waterfall,
    reason: reasonOf(finding, finding.days),
    advice: finding.advice,
    days: finding.days.map((one) => ({
      day: one.day,
      billed: usd(one.billedPico),
      expected: usd(one.expectedPico),
      rate: usd(one.ratePico),
      volume: usd(one.volumePico),
      own: usd(one.ownPricingPico),
      probability: one.probability,
    })),
  };
}

const usd = (pico: bigint) => Number(decimalFromPico(pico)).toFixed(12);

async function storedFindings(): Promise<object[]> {
  const { rows } = await database.superuser.query(
    `select f.*, (select jsonb_agg(jsonb_build_object('day', d.day, 'billed', d.billed_usd::text, 'expected', d.expected_usd::text,
         'rate', d.rate_usd::text, 'volume', d.volume_usd::text, 'own', d.own_pricing_usd::text, 'probability', d.probability) order by d.day)
       from finding_days d where d.org_id = f.org_id and d.finding_id = f.id) as days
     from findings f where f.org_id = $1`,
    [api.orgId],
  );
  return rows.map((row) => ({
    ...row,
    days: row.days.map((day: Record<string, string>) => ({
      ...day,
      ...Object.fromEntries(
        ['billed', 'expected', 'rate', 'volume', 'own'].map((name) => [name, Number(day[name]).toFixed(12)]),
      ),
    })),
  }));
}

interface Keyed {
  provider: string;
  provider_account_id: string;
  model: string;
  kind: string;
  direction: string;
  days: { day: string }[];
}

function keyOf(finding: object): string {
  const { provider, provider_account_id, model, kind, direction, days } = finding as Keyed;
  return JSON.stringify([provider, provider_account_id, model, kind, direction, days[0]?.day]);
}

const sorted = (findings: object[]) => [...findings].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));

describe('bills and calls that come in through the API, and are compared by a gap run', () => {
  it('yield the findings that the benchmark judges', async () => {
    const judged = await judgeWorld(world, world.bills.V3, reconcile);
    const expected = sorted(judged.findings.map(asStored));
    const stored = sorted(await storedFindings());
    expect(expected.length).toBeGreaterThan(3);
    expect(stored.map(keyOf)).toEqual(expected.map(keyOf));
    for (const [at, finding] of expected.entries()) expect(stored[at], keyOf(finding)).toMatchObject(finding);
  });
});
