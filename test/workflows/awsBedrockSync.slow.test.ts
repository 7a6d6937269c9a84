import { afterEach, describe, expect, it } from 'vitest';
import { listSourceDifferences } from '../../db/billing/billCoverage.js';
import { listBilledAccounts, listBilledTotals } from '../../db/billing/billingRows.js';
import { microsFromDate } from '../../domain/period.js';
import { type AwsFake, startCostExplorer } from '../fakes/billing/costExplorer.js';
import type { TestApi } from '../support/api.js';
import { AWS_KEYS, AWS_PAYER, awsTruth, chargesOf, curOf, sumsOf } from '../support/awsBills.js';
import { importBill, pollToEnd } from '../support/bills.js';
import { testConnectors } from '../support/connectors.js';
import { CONNECTIONS, daysAgo, FAST } from '../support/fetchedBills.js';
import { startWorkingApi } from '../support/workingApi.js';

const LIMIT_MS = 180_000;
const ALL = { provider: null, fromDay: '2000-01-01', toDay: '2100-01-01' };
/** Days that Amazon bills: three are closed long since, two are of this month. */
const DAYS = [80, 79, 78, 2, 1].map(daysAgo);

let api: TestApi;
let fake: AwsFake;
afterEach(async () => {
  await api?.close();
  await fake?.close();
});

async function startPlace() {
  fake = await startCostExplorer({
    truth: awsTruth(DAYS, daysAgo(60)),
    nowSeconds: () => Math.floor(Date.now() / 1_000),
  });
  const connectors = testConnectors({ awsCostExplorer: fake.origin });
  api = await startWorkingApi({
    connectors,
    syncPace: FAST,
    nowMicros: () => microsFromDate(new Date()),
  });
}

async function connect(more: object = {}) {
  const { status, body } = await api.post(CONNECTIONS, {
    provider: 'aws_bedrock',
    credentials: AWS_KEYS,
    settings: { account: AWS_PAYER, region: 'us-east-1', ...more },
  });
  return { status, body };
}

/** Counted dollars by category. */
async function counted(): Promise<Record<string, bigint>> {
  const sums: Record<string, bigint> = {};
  for (const { chargeCategory, amountPico } of await listBilledTotals(api.orgDb, {
    ...ALL,
    provider: 'aws_bedrock',
  }))
    if (amountPico !== 0n) sums[chargeCategory] = (sums[chargeCategory] ?? 0n) + amountPico;
  return sums;
}

const ended = (run: { status_url: string }) => pollToEnd(api, run.status_url, LIMIT_MS);
const changesOf = (day: string) => chargesOf(day, DAYS.indexOf(day));

describe('a connection to AWS', () => {
  it('fetches what Bedrock bills, for cents, and counts it together with a Cost and Usage Report once', {
    timeout: 300_000,
  }, async () => {
    await startPlace();
    const { status, body } = await connect();
    expect(body, JSON.stringify(body)).toMatchObject({
      provider: 'aws_bedrock',
      provider_account_id: AWS_PAYER,
      settings: { account: AWS_PAYER, region: 'us-east-1' },
    });
    expect(status).toBe(201);
    const run = await ended(body.sync);
    expect(run, JSON.stringify(run.error)).toMatchObject({
      status: 'succeeded',
      result: { missing: [], restated: [] },
    });
    const all = DAYS.flatMap(changesOf);
    expect(await counted()).toEqual(sumsOf(all));
    expect(fake.costUsd()).toBeLessThan(0.2);
    const [closed] = await listBilledAccounts(api.orgDb, { provider: 'aws_bedrock', day: DAYS[0] as string });
    const [open] = await listBilledAccounts(api.orgDb, { provider: 'aws_bedrock', day: DAYS[4] as string });
    expect(closed?.provisionalDays).toBe(0);
    expect(open?.provisionalDays).toBeGreaterThan(7);

    // The report of an open month is one copy among others: Cost Explorer's answer precedes it.
    const early = await importBill(api, curOf(changesOf(DAYS[4] as string).slice(0, 2), ''), {
      provider: 'aws_bedrock',
    });
    expect(early).toMatchObject({ status: 'succeeded', format: 'aws_cur2', provider_account_id: AWS_PAYER });
    expect(await counted()).toEqual(sumsOf(all));

    // The closed report counts in its place, once, and where the two differ it is shown.
    const invoice = changesOf(DAYS[0] as string).map((charge) =>
      charge.recordType === 'Tax' ? { ...charge, cost: '0.41' } : charge,
    );
    const cur = await importBill(api, curOf(invoice, '2026-1'), { provider: 'aws_bedrock' });
    expect(cur).toMatchObject({
      status: 'succeeded',
      rows: invoice.length - 1,
      left_out: [{ charge_category: 'usage', currency: 'USD', rows: 1, amount: 99 }],
      unconverted: [],
    });
    expect(await counted()).toEqual(sumsOf([...invoice, ...DAYS.slice(1).flatMap(changesOf)]));
    expect(await listSourceDifferences(api.orgDb, { ...ALL, limit: 20 })).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          day: DAYS[0],
          countedKind: 'file',
          otherKind: 'api',
          accountId: AWS_PAYER,
        }),
      ]),
    );
  });

  it('learns from AWS that a day is final, and counts it as settled from then on', {
    timeout: 300_000,
  }, async () => {
    await startPlace();
    const { body } = await connect();
    await ended(body.sync);
    const isFinal = async () =>
      (await listBilledAccounts(api.orgDb, { provider: 'aws_bedrock', day: DAYS[4] as string }))[0]
        ?.provisionalDays === 0;
    expect(await isFinal()).toBe(false);
    fake.setTruth(awsTruth(DAYS, daysAgo(0)));
    const again = await api.post(`${CONNECTIONS}/${body.id}/sync`, {});
    const run = await ended(again.body);
    expect(run).toMatchObject({ status: 'succeeded', result: { changed_days: 0, restated: [] } });
    expect(await isFinal()).toBe(true);
  });

  it('asks whose bill it is where the key sees several accounts, and refuses a wrong key with what to grant', {
    timeout: 300_000,
  }, async () => {
    await startPlace();
    const unnamed = await api.post(CONNECTIONS, { provider: 'aws_bedrock', credentials: AWS_KEYS });
    expect(unnamed.status).toBe(400);
    expect(JSON.stringify(unnamed.body)).toContain('settings.account');
    const wrong = await api.post(CONNECTIONS, {
      provider: 'bedrock',
      credentials: { ...AWS_KEYS, secret_access_key: 'x'.repeat(40) },
      settings: { account: AWS_PAYER },
    });
    expect(wrong.status).toBe(400);
    expect(JSON.stringify(wrong.body)).toContain('ce:GetCostAndUsage');
    expect(JSON.stringify(wrong.body)).not.toContain('x'.repeat(40));
    const { body: unknown } = await api.post(CONNECTIONS, {
      provider: 'aws_bedrock',
      credentials: { ...AWS_KEYS, profile: 'default' },
      settings: { account: AWS_PAYER },
    });
    expect(JSON.stringify(unknown)).toContain('session_token');
  });
});
