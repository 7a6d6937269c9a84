import type { TestApi, TestOrganization } from './api.js';
import { importBill, runGaps } from './bills.js';

/** The fifth to eighth of the last complete month, and that month. */
export const FOCUS_DAYS = [5, 6, 7, 8].map(dayOfLastMonth) as [string, string, string, string];
const [D1, D2, D3, D4] = FOCUS_DAYS;
export const FOCUS_MONTH = D1.slice(0, 7);

function dayOfLastMonth(day: number): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, day)).toISOString().slice(0, 10);
}

/** gpt-6-sol costs 2 dollars a million input tokens; its label in the second row has a quote and a comma. */
const OPENAI = `date,model,line_item,token_class,quantity,amount_usd,api_key,project
${D1},gpt-6-sol,,input,2000001,4.000002,key_a,proj_1
${D1},gpt-6-sol,"gpt-6-sol, ""input""",input,1000000,2,key_b,proj_2
${D1},gpt-6-sol,,output,1000,0.5,key_a,proj_1
${D2},gpt-6-sol,,input,4000000,8,key_a,proj_1
${D2},,Promotional credit,other,,-250.000000000001,,
${D2},,Sales tax,other,,1.07,,
${D3},,Refund of September,other,,-3.5,,
${D3},,Prepaid top-up,other,,100,,
${D3},mystery-model,,input,77,0.000000000123,,
${D3},,=cmd(),other,,1,,
${D3},gpt-5-mini,,input,250000,0,,
${D3},,2nd correction,other,,-0.25,,
`;
const EURO = `date,model,token_class,quantity,amount_usd,currency
${D4},mistral-large-4,input,3000000,1.87,EUR
`;
/** No rate is set; the second charge is for nothing. */
const KRONER = `date,model,token_class,quantity,amount_usd,currency
${D4},command-r,input,1000000,12.345678901234,DKK
${D4},command-r,output,0,0,DKK
`;
const OTHER_ACCOUNT = `date,model,token_class,quantity,amount_usd
${D1},gpt-6-sol,input,500000,1
`;

const call = (day: string, tokens: number, at: number, more: object = {}) => ({
  provider: 'openai',
  model: 'gpt-6-sol',
  timestamp: `${day}T00:00:00Z`,
  request_id: `${day}-${tokens}-${at}-${JSON.stringify(more)}`,
  input_tokens: tokens,
  output_tokens: 0,
  provider_account_id: 'org-1',
  ...more,
});

/** A month with every kind of charge, of four accounts in three currencies, compared with calls that fit in part. */
export async function loadFocusMonth(api: TestApi): Promise<TestOrganization> {
  const org = await api.addOrganization();
  const events = [
    ...Array.from({ length: 25 }, (_, at) => call(D1, 100_000, at)),
    ...Array.from({ length: 10 }, (_, at) =>
      call(D1, 100_000, at, { model: 'gpt-5-mini', output_tokens: 7 }),
    ),
    ...Array.from({ length: 5 }, (_, at) => call(D1, 100_000, at, { provider_account_id: 'org-2' })),
    ...Array.from({ length: 5 }, (_, at) => call(D2, 100_000, at, { output_tokens: 50 })),
  ];
  const { body } = await api.post('/api/v1/ingest/events', { events }, org.ingestKey);
  if (body.accepted !== events.length) throw new Error(`the calls: ${JSON.stringify(body)}`);
  await importBill(api, OPENAI, { provider: 'openai', account: 'org-1' }, org.adminKey);
  await importBill(api, OTHER_ACCOUNT, { provider: 'openai', account: 'org-2' }, org.adminKey);
  await importBill(api, EURO, { provider: 'mistral', account: 'm-1', fx_rate: '1.123' }, org.adminKey);
  await importBill(api, KRONER, { provider: 'cohere', account: 'c-1' }, org.adminKey);
  const run = await runGaps(api, '?period=90d', undefined, org.adminKey);
  if (run.status !== 'succeeded') throw new Error(`the run: ${JSON.stringify(run)}`);
  return org;
}
