import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readBillingFile } from '../../../adapters/billing/file.js';
import { OrgDb } from '../../../db/orgDb.js';
import { readImport } from '../../../usecases/billing/readImport.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { importBill, runGaps } from '../../support/bills.js';
import { startTestEngine, type TestEngine } from '../../support/engine.js';
import { yesterday } from '../../support/plantedFaults.js';

let api: TestApi;
let engine: TestEngine;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  await engine.startWorker(() => ({
    readBillingImport: ({ orgId, importId }) =>
      readImport(
        { database: api.database.database, readBillingFile: readFaultily },
        new OrgDb(api.database.database, orgId),
        importId,
        new AbortController().signal,
      ),
  }));
});

/** Reads a bill as the product does, with an amount that exceeds its column for the model `beyond`. */
async function* readFaultily(
  ...given: Parameters<typeof readBillingFile>
): ReturnType<typeof readBillingFile> {
  const reader = readBillingFile(...given);
  for (;;) {
    const next = await reader.next();
    if (next.done) return next.value;
    yield next.value.map((tagged) =>
      tagged.row.model === 'beyond' ? { ...tagged, row: { ...tagged.row, amountPico: 10n ** 30n } } : tagged,
    );
  }
}

afterAll(async () => {
  await engine?.close();
  await api?.close();
});

const HEADER = 'date,model,token_class,quantity,amount_usd,currency\n';
const line = (quantity: string, amount: string, currency = '') =>
  `${yesterday},gpt-6-sol,input,${quantity},${amount},${currency}\n`;
const WHOLE = HEADER + line('10', '1').repeat(3_000);
const CUR = (id: string) =>
  `${id},1,Usage,2026-09-01T00:00:00Z,AmazonBedrock,USE1-NovaPro-input-tokens,1,0.1\n`;
const CUR_HEADER =
  'identity_line_item_id,bill_payer_account_id,line_item_line_item_type,line_item_usage_start_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_unblended_cost\n';
const CUR_LINES = Array.from({ length: 2_500 }, (_, at) => CUR(`id${at}`)).join('');

describe('a bill that cannot be read', () => {
  it.each<[name: string, provider: string, bytes: Buffer | string, told: RegExp]>([
    [
      'a fault behind thousands of lines',
      'openai',
      `${WHOLE}oops`,
      /^line 3002, column 2: the line has 1 cells/,
    ],
    [
      'cut in its packing',
      'openai',
      gzipSync(WHOLE).subarray(0, -9),
      /^byte \d+ of the unpacked file: the gzip/,
    ],
    [
      'a line twice',
      'aws_bedrock',
      CUR_HEADER + CUR_LINES + CUR('id7'),
      /^line 2502, column 1: the same charge/,
    ],
    ['a ZIP archive', 'google', Buffer.from('PK\x03\x04 and so on'), /^byte 1: this is a ZIP archive/],
    ['UTF-16', 'azure_openai', Buffer.from(WHOLE, 'utf16le'), /^byte 1: the text is UTF-16/],
    ['a header alone', 'cohere', HEADER, /^line 1, column 1: a plain CSV without a single charge/],
    [
      'a sum that no day has',
      'openai',
      HEADER + line('1', '1e9').repeat(11),
      /sum to more than 10,000,000,000 dollars/,
    ],
    [
      'a value that the database refuses',
      'openai',
      WHOLE + line('1', '1').replace('gpt-6-sol', 'beyond'),
      /^the bill holds a value that cannot be stored: .*numeric field overflow/,
    ],
    [
      'tokens that no day has',
      'openai',
      HEADER + line('5e13', '1').repeat(3),
      /for more than 100,000,000,000,000 tokens/,
    ],
  ])('fails with its reason, and nothing of it is kept: %s', async (_name, provider, bytes, told) => {
    const { adminKey, orgId } = await api.addOrganization();
    const done = await importBill(api, bytes, { provider }, adminKey);
    expect(done).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_billing_file', message: expect.stringMatching(told) },
    });
    for (const table of ['billing_rows', 'billing_days', 'billing_pages']) {
      const { rows } = await api.database.superuser.query(
        `select count(*)::int as count from ${table} where org_id = $1`,
        [orgId],
      );
      expect([table, rows[0].count]).toEqual([table, 0]);
    }
  });
});

describe('a bill at the bounds of what is taken', () => {
  it('is compared and exported like any other', async () => {
    const { adminKey } = await api.addOrganization();
    const most = HEADER + line('99999999999990', '1e9') + line('10', '-1e9') + line('0', '-0', 'EUR');
    const done = await importBill(api, most, { provider: 'openai' }, adminKey);
    expect(done).toMatchObject({
      status: 'succeeded',
      rows: 3,
      unconverted: [{ currency: 'EUR', rows: 1, amount: 0 }],
    });
    const run = await runGaps(api, '?period=7d', undefined, adminKey);
    expect(run).toMatchObject({ status: 'succeeded', error: null });
    const month = yesterday.slice(0, 7);
    for (const path of ['gap-explorer?period=7d', `statement?period=${month}`, 'summary', 'matches'])
      expect([path, (await api.get(`/api/v1/reconciliation/${path}`, adminKey)).status]).toEqual([path, 200]);
    const focus = await fetch(`${api.baseUrl}/api/v1/reconciliation/focus?period=${month}`, {
      headers: { authorization: `Bearer ${adminKey}` },
    });
    expect([focus.status, (await focus.text()).trim().split('\n').length]).toEqual([200, 4]);
  });

  it('may have control characters in every text', async () => {
    const { adminKey } = await api.addOrganization();
    const nul = '\\u0000\\ud800';
    const costs = `{"object":"page","data":[{"object":"bucket","start_time":1730419200,"end_time":1730505600,"results":[{"object":"organization.costs.result","amount":{"value":1,"currency":"usd"},"line_item":"x${nul}","project_id":"p${nul}","api_key_id":"k${nul}","organization_id":"o${nul}","quantity":1,"quantity_unit":"u${nul}"}]}]}`;
    expect(await importBill(api, costs, { provider: 'openai' }, adminKey)).toMatchObject({
      status: 'succeeded',
    });
    const query = `{"properties":{"columns":[{"name":"Cost"},{"name":"UsageDate"},{"name":"Meter"},{"name":"ResourceId"},{"name":"Currency"}],"rows":[[1,20260901,"m${nul}","/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/r${nul}/providers/x/y/z${nul}","USD"]]}}`;
    expect(await importBill(api, query, { provider: 'azure_openai' }, adminKey)).toMatchObject({
      status: 'succeeded',
    });
    const focus = `{"BilledCost":"1","BillingAccountId":"a${nul}","BillingCurrency":"USD","ChargeCategory":"Usage","ChargePeriodStart":"2026-09-01T00:00:00Z","ChargeDescription":"d${nul}","ServiceName":"s${nul}","ProviderName":"Mistral","SubAccountId":"s${nul}","SkuMeter":"Input Tokens","SkuPriceDetails":"{\\"x_Model\\":\\"m\\\\u0000\\",\\"x_Tier\\":\\"t\\\\u0000\\",\\"x_Region\\":\\"r\\\\u0000\\"}","x_ProviderKeyId":"k${nul}","ConsumedUnit":"c${nul}","ConsumedQuantity":"1"}`;
    expect(await importBill(api, focus, { provider: 'mistral' }, adminKey)).toMatchObject({
      status: 'succeeded',
    });
  });
});
