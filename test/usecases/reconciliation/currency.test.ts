import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { GRADES } from '../../../domain/reconciliation/matching/cells.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import { reconcileBills } from '../../../usecases/reconciliation/reconcileBills.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { readBill } from '../../support/readBill.js';
import { storeBill } from '../../support/storedBill.js';

const SUBSCRIPTION = 'aaaaaaaa-0000-4000-8000-000000000001';
const MODEL = 'gpt-5.4-mini';
const TOKENS = 400_000_000;
/** Input tokens at 0.75 dollars for a million. */
const DOLLARS = 300;
/** Dollars for a euro. */
const RATE = '1.0842';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

async function addCalls(org: TestOrganization, days: readonly string[]): Promise<void> {
  await api.database.superuser.query(
    `insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, provider_account_id, model, response_model,
       api_key_hash, api_key_id, session_id, is_batch, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cached_tok,
       unmetered, cost_usd, computed_cost_usd, cost_source, usage_source, input_semantics, told_classes, biller_from_host, duration_ms,
       stop_reason, service_name, scope_name)
     select $1, day::timestamptz + interval '10 hours', id, day::timestamptz + interval '10 hours 1 second', 'otel_span', 'ok', 'azure_openai',
       'azure_openai', $2, $3, $3, id::text, 'key_test', '', false, $4, 0, 0, 0, 0, 0, false, $5, $5, 'computed', 'otel', 'inclusive', 3, true,
       1000, 'stop', 'shop', 'test'
     from (select day, gen_random_uuid() as id from unnest($6::text[]) day) calls`,
    [org.orgId, SUBSCRIPTION, MODEL, TOKENS, DOLLARS, days],
  );
}

const HEADER =
  'SubscriptionId,Date,MeterCategory,MeterSubCategory,MeterName,UnitOfMeasure,Quantity,CostInBillingCurrency,ChargeType,BillingCurrencyCode';
/** 300 dollars at the rate, rounded to the tenth digit as Azure rounds. */
const EUROS = '276.7017155506';
const line = (day: string, cost: string, currency: string) =>
  `${SUBSCRIPTION},${day},Foundry Models,Azure OpenAI GPT5,5.4 mini Inp Gl 1M Tokens,1M,400,${cost},Usage,${currency}`;

async function reconciled(org: TestOrganization) {
  const book = await loadPriceBook(api.database.database);
  return reconcileBills(
    org.orgDb,
    {
      provider: 'azure_openai',
      fromDay: null,
      toDay: null,
      nowMicros: BigInt(Date.parse('2026-10-20T12:00:00Z')) * 1_000n,
    },
    { agreed: book, list: book.list },
    DEFAULT_WEIGHTS,
  );
}

const DAYS = ['2026-06-01', '2026-06-02', '2026-06-03'];

describe('a bill that is not in dollars', () => {
  it('is compared when it is converted: a month in euros, to the cent', async () => {
    const org = await api.addOrganization();
    await addCalls(org, DAYS);
    const bill = [HEADER, ...DAYS.map((day) => line(day, EUROS, 'EUR'))].join('\n');
    await storeBill(
      api,
      org,
      'azure_openai',
      await readBill(bill, { provider: 'azure_openai', fxRate: RATE }),
    );
    const { buckets, findings } = await reconciled(org);
    expect(findings).toEqual([]);
    expect(buckets.map(({ matchStatus, reason }) => [matchStatus, reason])).toEqual(
      DAYS.map(() => ['matched', null]),
    );
    for (const { providerCostPico } of buckets)
      expect(Number(providerCostPico) / 1e12).toBeCloseTo(DOLLARS, 8);
  });

  it('without a rate is kept in its currency: never above LOW, never flagged, and nothing is found in it', async () => {
    const org = await api.addOrganization();
    await addCalls(org, DAYS);
    const bill = [HEADER, ...DAYS.map((day) => line(day, EUROS, 'EUR'))].join('\n');
    const read = await readBill(bill, { provider: 'azure_openai' });
    expect(read.summary.unconverted).toEqual([
      { currency: 'EUR', rows: 3, amount: 3n * 276_701_715_550_600n },
    ]);
    await storeBill(api, org, 'azure_openai', read);
    const { buckets, findings } = await reconciled(org);
    expect(findings).toEqual([]);
    expect(buckets).toHaveLength(3);
    for (const bucket of buckets) {
      expect(bucket).toMatchObject({ reason: 'unconverted', flagged: false, providerCostPico: 0n });
      expect(GRADES.indexOf(bucket.grade)).toBeGreaterThanOrEqual(GRADES.indexOf('LOW'));
    }
    const { rows } = await api.database.superuser.query(
      `select distinct currency, original_amount::text as amount, amount_usd from billing_rows where org_id = $1`,
      [org.orgId],
    );
    expect(rows).toEqual([{ currency: 'EUR', amount: '276.701715550600', amount_usd: null }]);
  });

  it('a day of which only a part can be converted is not judged by that part', async () => {
    const org = await api.addOrganization();
    await addCalls(org, ['2026-06-01']);
    const bill = [HEADER, line('2026-06-01', '150', 'USD'), line('2026-06-01', '138', 'EUR')].join('\n');
    await storeBill(api, org, 'azure_openai', await readBill(bill, { provider: 'azure_openai' }));
    const { buckets, findings } = await reconciled(org);
    expect(findings).toEqual([]);
    expect(buckets).toEqual([
      expect.objectContaining({
        reason: 'unconverted',
        flagged: false,
        providerCostPico: 150_000_000_000_000n,
      }),
    ]);
    expect(GRADES.indexOf(buckets[0]?.grade ?? 'HIGH')).toBeGreaterThanOrEqual(GRADES.indexOf('LOW'));
  });
});
