import { afterEach, describe, expect, it } from 'vitest';
import type { ProviderAccess, ReportChunk } from '../../../../adapters/billing/connector.js';
import { createBillingConnectors } from '../../../../adapters/billing/connectors.js';
import type { BilledRow } from '../../../../domain/billing/billedRow.js';
import type { ConnectionSettings } from '../../../../domain/billing/connections.js';
import { microsOfDay } from '../../../../domain/period.js';
import { type AwsFake, startCostExplorer } from '../../../fakes/billing/costExplorer.js';
import { AWS_KEYS, AWS_MEMBER, AWS_PAYER, awsTruth, sumsOf } from '../../../support/awsBills.js';

import { readBill } from '../../../support/readBill.js';
import { fetchChunk } from '../support/connections.js';
import { readAwsPages } from '../support/readAwsPages.js';

const DAYS = ['2026-09-01', '2026-09-02', '2026-09-03'];
const NOW_MICROS = microsOfDay('2026-09-04') + 1n;
const CHUNK: ReportChunk = {
  report: 'cost_and_usage',
  feed: 'cost',
  bucketWidth: '1d',
  startMicros: microsOfDay('2026-09-01'),
  endMicros: microsOfDay('2026-09-04'),
};

let fake: AwsFake;
afterEach(() => fake?.close());

async function place(over: object = {}) {
  fake = await startCostExplorer({
    truth: { ...awsTruth(DAYS, '2026-09-03'), ...over },
    nowSeconds: () => Number(NOW_MICROS / 1_000_000n),
  });
  const nowhere = 'http://127.0.0.1:1';
  return createBillingConnectors(
    {
      openai: nowhere,
      anthropic: nowhere,
      azureManagement: nowhere,
      azureLogin: nowhere,
      awsCostExplorer: fake.origin,
    },
    { nowMicros: () => NOW_MICROS, nowMs: () => performance.now(), requestGapMs: 0 },
  ).aws_bedrock;
}

const accessOf = (settings: ConnectionSettings = {}, credentials: object = {}): ProviderAccess => ({
  credentials: { ...AWS_KEYS, ...credentials },
  settings,
  signal: new AbortController().signal,
});

async function fetchAll(connector: Awaited<ReturnType<typeof place>>, access = accessOf()) {
  const pages = await fetchChunk(connector, access, CHUNK);
  return { pages, rows: await readAwsPages(connector, pages) };
}

function totals(rows: readonly BilledRow[]): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const { chargeCategory, amountPico } of rows)
    sums[chargeCategory] = (sums[chargeCategory] ?? 0n) + (amountPico ?? 0n);
  return sums;
}

describe('Cost Explorer', () => {
  it('returns everything that Bedrock bills, by category to the last digit, and nothing else', async () => {
    const { rows } = await fetchAll(await place());
    expect(totals(rows)).toEqual(sumsOf(awsTruth(DAYS, '').charges));
    const first = rows.filter(({ day }) => day === '2026-09-01');
    expect(first.find(({ project, model }) => project === AWS_MEMBER && model !== null)).toMatchObject({
      model: 'amazon.nova-pro-v1:0',
      tokenClass: 'input',
      quantity: 3_125_000n * 10n ** 12n,
      quantityUnit: 'tokens',
      isFinal: true,
    });
    expect(first.find(({ lineItem }) => lineItem.includes('-MP:'))).toMatchObject({
      model: 'us.anthropic.claude-sonnet-4-6',
      quantity: 1_000_000n * 10n ** 12n,
    });
    expect(first.find(({ lineItem }) => lineItem === 'USE1-Mystery-Thing')).toMatchObject({
      model: null,
      tokenClass: 'other',
    });
    expect(first.find(({ netPico }) => netPico === 1_100_000_000_000n)).toBeDefined();
    expect(rows.filter(({ day }) => day === '2026-09-03').every(({ isFinal }) => isFinal === false)).toBe(
      true,
    );
  });

  it('is asked with two groups at most, a query for each category, at a cent each', async () => {
    await fetchAll(await place());
    const queries = fake.requests.filter(({ action }) => action === 'GetCostAndUsage');
    expect(queries).toHaveLength(7);
    expect(queries.every(({ body }) => body.GroupBy.length === 2 && body.Granularity === 'DAILY')).toBe(true);
    const types = queries.map(({ body }) => {
      const [, filter] = body.Filter.And;
      return (filter.Not ? 'not ' : '') + (filter.Not ?? filter).Dimensions.Values[0];
    });
    expect(types).toEqual(['Usage', 'Usage', 'Tax', 'Credit', 'Refund', 'Fee', 'not Usage']);
    expect(fake.costUsd()).toBeCloseTo(0.08);
  });

  it('returns the same in small pages, each day once and whole', async () => {
    const connector = await place();
    const whole = await fetchAll(connector);
    fake.limitGroups(2);
    const { rows, pages } = await fetchAll(connector);
    expect(pages.length).toBeGreaterThan(10);
    expect(totals(rows)).toEqual(totals(whole.rows));
    for (const told of [whole.pages, pages])
      expect(told.flatMap(({ buckets }) => buckets).map(({ startMicros }) => startMicros)).toEqual(
        DAYS.map(microsOfDay),
      );
  });

  it('is narrowed to linked accounts', async () => {
    const { rows } = await fetchAll(await place(), accessOf({ scope: { accounts: [AWS_MEMBER] } }));
    expect(totals(rows)).toEqual({ usage: 7_500_000_000_000n });
  });

  it('names the account of the costs where there is one, and asks for it where there are several', async () => {
    const connector = await place();
    expect(await connector.identify(accessOf())).toEqual({ accountId: null, name: null });
    const truth = awsTruth(DAYS, '');
    fake.setTruth({ ...truth, charges: truth.charges.filter(({ account }) => account === AWS_PAYER) });
    expect(await connector.identify(accessOf())).toEqual({ accountId: AWS_PAYER, name: null });
    expect(await connector.test(accessOf())).toMatchObject([{ ok: true }, { ok: true }]);
  });

  it('answers temporary credentials', async () => {
    const connector = await place({ sessionToken: 'S'.repeat(40) });
    const { rows } = await fetchAll(connector, accessOf({}, { session_token: 'S'.repeat(40) }));
    expect(rows.length).toBeGreaterThan(0);
    await expect(connector.identify(accessOf())).rejects.toMatchObject({ code: 'credentials_refused' });
  });

  it.each([
    ['AccessDeniedException', 'credentials_refused', 'ce:GetCostAndUsage'],
    ['UnrecognizedClientException', 'credentials_refused', 'the access key is not valid'],
    ['LimitExceededException', 'provider_rate_limited', '429'],
    ['DataUnavailableException', 'provider_unavailable', '503'],
    ['InvalidNextTokenException', 'provider_paging_changed', 'from its beginning', 'usage||x'],
    ['ValidationException', 'provider_answer_unreadable', 'not what it expects'],
  ])('refusing with %s is %s', async (type, code, words, cursor?: string) => {
    const connector = await place();
    await connector.identify(accessOf());
    await connector.fetchPage(accessOf(), CHUNK, null);
    fake.failNext(type);
    const failure = await connector
      .fetchPage(accessOf(), CHUNK, cursor ?? null)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code, message: expect.stringContaining(words) });
    expect(String((failure as Error).message)).not.toContain(AWS_KEYS.secret_access_key);
  });

  it('refuses a request that is signed with another key', async () => {
    const connector = await place();
    await expect(
      connector.identify(accessOf({}, { secret_access_key: 'x'.repeat(40) })),
    ).rejects.toMatchObject({
      code: 'credentials_refused',
    });
    await expect(connector.identify(accessOf({}, { access_key_id: 'a b' }))).rejects.toThrow(
      'access_key_id is not one of AWS',
    );
    expect(fake.requests).toHaveLength(1);
  });

  it('is not asked for more than its thirteen months of history', async () => {
    const connector = await place();
    const plan = connector.plan({ fromDay: '2024-01-01', toDay: '2026-09-04' }, NOW_MICROS);
    expect(plan.at(-1)?.startMicros).toBe(microsOfDay('2025-08-05'));
    expect(plan.length).toBeLessThanOrEqual(5);
    await connector.fetchPage(accessOf(), plan.at(-1) as ReportChunk, null);
    expect(connector.plan({ fromDay: '2020-01-01', toDay: '2021-01-01' }, NOW_MICROS)).toEqual([]);
  });
});

describe('a saved answer', () => {
  const read = async (...documents: object[]) => {
    const text = documents.map((document) => JSON.stringify(document)).join('\n');
    return (await readBill(text, { provider: 'aws_bedrock' })).rows;
  };
  const answer = (keys: string[], group: object) => ({
    GroupDefinitions: keys.map((Key) => ({ Type: 'DIMENSION', Key })),
    ResultsByTime: [
      { TimePeriod: { Start: '2026-09-01', End: '2026-09-02' }, Total: {}, Groups: [group], Estimated: true },
    ],
  });
  const Metrics = {
    UnblendedCost: { Amount: '12.3456', Unit: 'USD' },
    UsageQuantity: { Amount: '37411.2', Unit: 'N/A' },
  };

  it('that is grouped by record type is read by the names of its groups, in whatever order', async () => {
    const rows = await read(
      answer(['RECORD_TYPE', 'USAGE_TYPE'], { Keys: ['Usage', 'USE1-Nova2.0Lite-input-tokens'], Metrics }),
    );
    expect(rows).toMatchObject([
      {
        chargeCategory: 'usage',
        model: 'us.amazon.nova-2-lite-v1:0',
        quantity: 37_411_200n * 10n ** 12n,
        isFinal: false,
      },
    ]);
  });

  it('without its record type is refused with what to do', async () => {
    await expect(read(answer(['USAGE_TYPE'], { Keys: ['x'], Metrics }))).rejects.toThrow(
      'group it by RECORD_TYPE',
    );
  });

  it('that is uploaded twice is refused, and counts once', async () => {
    const page = answer(['RECORD_TYPE', 'USAGE_TYPE'], { Keys: ['Usage', 'x'], Metrics });
    await expect(read(page, page)).rejects.toThrow(
      'a group of 2026-09-01 occurs twice; give each page of an answer once',
    );
    const other = answer(['RECORD_TYPE', 'USAGE_TYPE'], { Keys: ['Tax', 'x'], Metrics });
    expect(await read(page, other)).toHaveLength(2);
  });

  it('of months or without groups is refused', async () => {
    const monthly = answer(['RECORD_TYPE'], { Keys: ['Usage'], Metrics });
    (monthly.ResultsByTime[0] as { TimePeriod: object }).TimePeriod = {
      Start: '2026-09-01',
      End: '2026-10-01',
    };
    await expect(read(monthly)).rejects.toThrow('Granularity DAILY');
  });
});
