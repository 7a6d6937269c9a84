import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decimalFromPico, picoFromDecimal } from '../../domain/money.js';
import { closePeriod } from '../../usecases/billing/periods.js';
import { ingestMany } from '../api/support/requests.js';
import type { TestApi, TestOrganization } from '../support/api.js';
import { eventsOf, type GeneratedBills, generateBills } from '../support/billGenerator.js';
import { importBill, importGenerated, runGaps } from '../support/bills.js';
import { startTypeScript } from '../support/childProgram.js';
import { type BillTotals, sumCostPages } from '../support/independentBillReader.js';
import { expectSameUnexplained } from '../support/sameUnexplained.js';
import { startWorkingApi } from '../support/workingApi.js';

const SEED = Number(process.env.RUN_SEED ?? 20_261_121);
const DAYS = 45;
const DAY_MS = 86_400_000;
const STATEMENT = '/api/v1/reconciliation/statement';
const AUDIT = '/api/v1/reconciliation/audit';

/** The last whole month; the bills go to its end. */
const monthEnd = new Date(`${new Date().toISOString().slice(0, 7)}-01T00:00:00Z`).getTime() - DAY_MS;
const lastDay = new Date(monthEnd).toISOString().slice(0, 10);
const MONTH = lastDay.slice(0, 7);

let api: TestApi;
let bills: GeneratedBills;
let stranger: TestOrganization;

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

beforeAll(async () => {
  console.info(`statement and audit: seed ${SEED} (RUN_SEED=${SEED} repeats it), ${DAYS} days to ${lastDay}`);
  api = await startWorkingApi();
  stranger = await api.addOrganization();
  bills = generateBills({ seed: SEED, lastDay, days: DAYS, callsPerHour: 1 });
  await ingestMany(api, eventsOf(bills.calls));
  await importGenerated(api, bills, ['openaiRestated']);
}, 120_000);

afterAll(() => api?.close());

/** Totals of an independent reader from the raw pages. */
function rawTotals(): BillTotals {
  const { openaiCosts, openaiRestated, anthropicCosts } = bills.files;
  return sumCostPages([
    { account: 'default', provider: 'openai', text: openaiCosts },
    { account: 'default', provider: 'openai', text: openaiRestated },
    { account: 'default', provider: 'anthropic', text: anthropicCosts },
  ]);
}

function rawSum(matches: (provider: string, day: string, category: string) => boolean): bigint {
  let sum = 0n;
  for (const [key, pico] of rawTotals()) {
    const [place = '', day = '', category = ''] = key.split('|');
    if (matches(place.split('/')[0] ?? '', day, category)) sum += pico;
  }
  return sum;
}

const pico = (text: string | undefined) => picoFromDecimal(text ?? '') as bigint;
const total = (values: Iterable<bigint>) => [...values].reduce((sum, value) => sum + value, 0n);
/** Rows of a CSV without quoted cells, by column. */
function readCsv(text: string): Record<string, string>[] {
  const [header = '', ...lines] = text.trimEnd().split('\r\n');
  const names = header.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, at) => [names[at], cell])));
}

async function statementRows(month = MONTH): Promise<Record<string, string>[]> {
  const { status, body } = await api.get(`${STATEMENT}?period=${month}&format=csv`);
  expect(status).toBe(200);
  return readCsv(body);
}

const amountOf = (rows: Record<string, string>[], provider: string, section: string, line: string) => {
  const row = rows.find(
    (one) =>
      one.provider === provider && one.account === '(all)' && one.section === section && one.line === line,
  );
  return pico(row?.amount_usd);
};

describe('the audit of generated bills', () => {
  const wrongTotal = () => total(bills.planted.wrongRatePico.values());

  it('finds the wrong rate to the cent over exactly its days, and lists nothing else', async () => {
    const { body } = await api.get(`${AUDIT}?provider=anthropic`);
    const { wrongRateDays } = bills.planted;
    expect(body.differences).toHaveLength(1);
    expect(body.differences[0]).toMatchObject({
      model: 'claude-opus-5',
      token_class: 'output',
      first_day: wrongRateDays[0],
      last_day: wrongRateDays[2],
      days: 3,
      billed_per_mtok: 30,
      agreed_per_mtok: 25,
      list_per_mtok: 25,
      difference_usd_exact: decimalFromPico(wrongTotal()),
      looks_like: [],
      agreement: 'agree',
      disputed: false,
    });
    expect(body.totals.difference_usd_exact).toBe(decimalFromPico(wrongTotal()));
    expect(body.not_judged).toMatchObject([
      { label: 'Web Search Usage', reason: 'not_observable', days: DAYS },
    ]);
    expect([body.from, body.to, body.days, body.missing]).toEqual([bills.days[0], lastDay, DAYS, []]);
  });

  it('lists nothing of bills that are right, mixtures of batch, priority and long requests included', async () => {
    const { body } = await api.get(`${AUDIT}?provider=openai`);
    expect(body.differences).toEqual([]);
    expect(body.not_judged.map((line: Json) => line.label)).toEqual(['web search tool calls']);
    const kinds = new Set(
      body.as_agreed.map((line: Json) =>
        [line.model, line.service_tier, line.long_context, line.mixture].join('|'),
      ),
    );
    expect([...kinds].sort()).toEqual([
      'gpt-4o|standard|false|false',
      'gpt-5-mini|standard|false|true',
      'gpt-6-sol|priority|false|false',
      'gpt-6-sol|standard|false|false',
      'gpt-6-sol|standard|true|false',
    ]);
  });

  it.each(['openai', 'anthropic'])(
    'of %s foots in its CSV to what is billed for usage, exactly',
    async (provider) => {
      const { body, headers } = await api.get(`${AUDIT}?provider=${provider}&format=csv`);
      expect(headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
      expect(headers.get('content-disposition')).toBe(
        `attachment; filename="audit-${provider}-${bills.days[0]}-${lastDay}.csv"`,
      );
      const rows = readCsv(body);
      const last = rows.pop();
      expect(last?.verdict).toBe('total');
      const billed = total(rows.map((row) => pico(row.billed_usd)));
      expect(billed).toBe(rawSum((of, _, category) => of === provider && category === 'usage'));
      expect(pico(last?.billed_usd)).toBe(billed);
      const differences = rows.filter((row) => row.difference_usd !== '');
      expect(total(differences.map((row) => pico(row.billed_usd) - pico(row.agreed_usd)))).toBe(
        pico(last?.difference_usd),
      );
    },
  );

  it('narrows to a range, and a day in it that no bill covers is named', async () => {
    const day = bills.planted.wrongRateDays[1] as string;
    const { body } = await api.get(`${AUDIT}?provider=anthropic&from=${day}&to=${day}`);
    expect(body.differences).toMatchObject([{ first_day: day, last_day: day, days: 1 }]);
    const before = new Date(Date.parse(`${bills.days[0]}T00:00:00Z`) - 2 * DAY_MS).toISOString().slice(0, 10);
    const wide = await api.get(`${AUDIT}?provider=anthropic&from=${before}&to=${bills.days[1]}`);
    expect(wide.body.missing).toMatchObject([{ provider_account_id: 'default', first_day: before, days: 2 }]);
  });

  it('without bills, or of another organization, states that there are none', async () => {
    for (const [provider, key] of [
      ['xai', api.adminKey],
      ['anthropic', stranger.adminKey],
    ]) {
      const { status, body } = await api.get(`${AUDIT}?provider=${provider}`, key);
      expect(status).toBe(200);
      expect(body).toMatchObject({ status: 'no_billing_data', days: 0, differences: [], as_agreed: [] });
    }
  });

  it.each([
    ['', 'missing_parameter'],
    ['?provider=nobody', 'invalid_parameter'],
    ['?provider=openai&from=yesterday', 'invalid_parameter'],
    ['?provider=openai&from=2026-01-01T12:00:00Z', 'invalid_parameter'],
    ['?provider=openai&from=2026-02-01&to=2026-01-01', 'invalid_range'],
    ['?provider=openai&from=2024-01-01&to=2026-01-01', 'invalid_range'],
    ['?provider=openai&format=pdf', 'invalid_parameter'],
  ])('refuses what cannot be audited: %s', async (query, code) => {
    const { status, body } = await api.get(`${AUDIT}${query}`);
    expect([status, body.code]).toEqual([400, code]);
  });
});

describe('./trueup audit', () => {
  async function run(args: readonly string[]) {
    const program = startTypeScript('bin/trueup.ts', ['audit', ...args], {
      ...api.database.environment,
    });
    const code = await program.ended();
    return { code, text: program.stdout(), all: program.output() };
  }
  const org = () => ['--org', `org_${api.orgId.replaceAll('-', '')}`];

  it('prints a table that fits a terminal, with the error, its days and its dollars', async () => {
    const { code, text } = await run(['--provider', 'anthropic', ...org()]);
    expect(code).toBe(0);
    const { wrongRateDays, wrongRatePico } = bills.planted;
    const cents = (Number(total(wrongRatePico.values())) / 1e12).toFixed(2);
    expect(text).toMatch(
      new RegExp(
        `claude-opus-5 +output +${wrongRateDays[0]} +${wrongRateDays[2]} +3 +[\\d.]+ +30\\.0000 +25\\.0000 +25\\.0000 +${cents}\\n`,
      ),
    );
    expect(text).toContain('Not judged');
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
    expect(text).not.toContain('\u001b');
  });

  it('prints the same as the API in JSON and CSV', async () => {
    const json = JSON.parse((await run(['--provider', 'anthropic', '--format', 'json', ...org()])).text);
    expect(json).toEqual((await api.get(`${AUDIT}?provider=anthropic`)).body);
    const csv = (await run(['--provider', 'anthropic', '--format', 'csv', ...org()])).text;
    expect(csv).toBe((await api.get(`${AUDIT}?provider=anthropic&format=csv`)).body);
  });

  it('ends with 1 for a script that asks, only where something differs', async () => {
    expect((await run(['--provider', 'anthropic', '--fail-on-difference', ...org()])).code).toBe(1);
    expect((await run(['--provider', 'openai', '--fail-on-difference', ...org()])).code).toBe(0);
  });

  it('without bills prints what to do', async () => {
    const { code, text } = await run(['--provider', 'xai', ...org()]);
    expect(code).toBe(0);
    expect(text).toContain('./trueup import bills --provider xai FILE');
    expect(text).toContain('docs/connections.md');
  });

  it.each([
    [['--provider', 'nobody'], '--provider is nobody'],
    [[], '--provider is missing'],
    [['--provider', 'openai', '--format', 'xml'], '--format is xml'],
    [['--provider', 'openai', '--from', 'may'], '--from is may'],
  ])('refuses %j in a sentence', async (args, sentence) => {
    const { code, all } = await run(args);
    expect(code).toBe(2);
    expect(all).toContain(sentence);
    expect(all).not.toContain('    at ');
  });
});

describe('the statement of a month', () => {
  it('before any run: nothing is compared, and everything foots to the raw pages', async () => {
    const rows = await statementRows();
    expect(amountOf(rows, '(all)', 'verification', 'not_compared_usd')).toBe(
      rawSum((_, day, category) => day.startsWith(MONTH) && category === 'usage'),
    );
    expectFooted(rows);
  });

  it('by provider and category sums to what an independent reader finds, to the pico-dollar', async () => {
    const rows = await statementRows();
    for (const provider of ['openai', 'anthropic']) {
      const raw = (category: string) =>
        rawSum((of, day, kind) => of === provider && day.startsWith(MONTH) && kind === category);
      expect(amountOf(rows, provider, 'invoice', 'billed_usage_usd')).toBe(raw('usage'));
      expect(amountOf(rows, provider, 'invoice', 'credits_usd')).toBe(raw('credit'));
      expect(amountOf(rows, provider, 'invoice', 'invoice_total_usd')).toBe(
        rawSum((of, day) => of === provider && day.startsWith(MONTH)),
      );
    }
    expect(amountOf(rows, 'openai', 'invoice', 'credits_usd')).toBe(pico(bills.planted.creditUsd));
  });

  it('has list price, what was charged above it, and the fees that have none', async () => {
    const rows = await statementRows();
    const wrong = total(bills.planted.wrongRatePico.values());
    expect(amountOf(rows, 'anthropic', 'usage', 'rate_difference_usd')).toBe(wrong);
    expect(amountOf(rows, 'openai', 'usage', 'rate_difference_usd')).toBe(0n);
    const calls = bills.calls.filter(
      (call) =>
        call.provider === 'openai' && new Date(call.endSeconds * 1_000).toISOString().startsWith(MONTH),
    );
    expect(amountOf(rows, 'openai', 'usage', 'list_usd')).toBe(total(calls.map((call) => call.pico)));
    const named = rows.filter((row) => row.section === 'not_priced');
    expect(named.map((row) => [row.provider, row.line]).sort()).toEqual([
      ['anthropic', 'Web Search Usage / other (not_observable)'],
      ['openai', 'web search tool calls / other (not_observable)'],
    ]);
    expect(total(named.map((row) => pico(row.amount_usd)))).toBe(
      amountOf(rows, '(all)', 'usage', 'not_priced_usd'),
    );
  });

  it('after a run: verified by grade, fees not observable, and not matched exactly what was planted', async () => {
    const run = await runGaps(api, '?period=90d', 120_000);
    expect(run.status).toBe('succeeded');
    const rows = await statementRows();
    const amount = (line: string) => amountOf(rows, '(all)', 'verification', line);
    const missing = total(bills.planted.missingPico.values());
    const wrong = total(bills.planted.wrongRatePico.values());
    expect(amount('not_matched_by_calls_usd')).toBe(missing + wrong);
    expect(amount('not_matched_rate_usd')).toBe(wrong);
    // The wrong rate matches no known mistake; the missing calls are findings.
    const cent = 10_000_000_000n;
    expect(amount('unexplained_usd')).toBe(((wrong + cent / 2n) / cent) * cent);
    expect(amount('explained_by_findings_usd')).toBe(missing + wrong - amount('unexplained_usd'));
    // Findings of missing calls exclude the usual share.
    expect(amount('in_findings_usd')).toBeLessThanOrEqual(missing);
    expect(amount('in_findings_usd')).toBeGreaterThan((missing * 9n) / 10n);
    await expectSameUnexplained(api, MONTH);
    expect(amount('not_observable_usd')).toBe(amountOf(rows, '(all)', 'usage', 'not_priced_usd'));
    expect(amount('not_compared_usd')).toBe(0n);
    expect(amount('not_yet_observed_usd')).toBe(0n);
    expect(amount('verified_high_usd')).toBeGreaterThan(0n);
    expectFooted(rows);
    const { body } = await api.get(`${STATEMENT}?period=${MONTH}`);
    const isFinal = Date.now() >= monthEnd + 2 * DAY_MS;
    expect(body).toMatchObject({
      period: MONTH,
      status: isFinal ? 'final' : 'provisional',
      final_from: new Date(monthEnd + 2 * DAY_MS).toISOString().slice(0, 10),
      coverage: { complete: true, missing: [] },
    });
    const { total: all } = body;
    expect(all.list_usd - all.discounts_usd + all.not_priced_usd).toBeCloseTo(all.billed_usage_usd, 6);
    expect(all.discounts_usd).toBeCloseTo(-Number(decimalFromPico(wrong)), 9);
  });

  it('counts a day as compared only while its bill is the one that was compared', async () => {
    const { adminKey } = await api.addOrganization();
    const csv = (amount: string) =>
      `date,model,token_class,quantity,amount_usd\n${MONTH}-05,gpt-6-sol,input,1000000,${amount}\n`;
    await importBill(api, csv('2'), { provider: 'openai' }, adminKey);
    await runGaps(api, '?period=90d', 60_000, adminKey);
    const figures = async () => (await api.get(`${STATEMENT}?period=${MONTH}`, adminKey)).body.total;
    expect(await figures()).toMatchObject({ not_compared_usd: 0, not_yet_observed_usd: 2 });
    await importBill(api, csv('3'), { provider: 'openai' }, adminKey);
    expect(await figures()).toMatchObject({ not_compared_usd: 3, not_yet_observed_usd: 0 });
  });

  it('once closed keeps its figures; a restatement is an adjustment, listed there and in the month in which it came', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const csv = (amount: string) =>
      `date,model,token_class,quantity,amount_usd\n${MONTH}-05,gpt-4o-2024-11-20,input,1000000,${amount}\n`;
    await importBill(api, csv('2.5'), { provider: 'openai' }, adminKey);
    const nowMicros = BigInt(Date.now()) * 1_000n;
    await closePeriod(api.database.database, orgId, { month: MONTH, closedBy: 'key_x', nowMicros });
    await importBill(api, csv('4'), { provider: 'openai' }, adminKey);
    const { body } = await api.get(`${STATEMENT}?period=${MONTH}`, adminKey);
    const thisMonth = new Date().toISOString().slice(0, 7);
    expect(body).toMatchObject({
      total: {
        list_usd: 2.5,
        rate_difference_usd: 1.5,
        restated_since_closing_usd: -1.5,
        billed_usage_usd: 2.5,
      },
      closing: {
        closed_by: 'key_x',
        adjustments: [{ day: `${MONTH}-05`, charge_category: 'usage', amount_usd: 1.5, settled: false }],
        adjustments_usd: 1.5,
      },
      booked_adjustments: [],
    });
    const open = await api.get(`${STATEMENT}?period=${thisMonth}`, adminKey);
    expect(open.body).toMatchObject({
      closing: null,
      booked_adjustments: [{ day: `${MONTH}-05`, amount_usd: 1.5 }],
      booked_adjustments_usd: 1.5,
      total: { billed_usage_usd: 0 },
    });
    const rows = readCsv((await api.get(`${STATEMENT}?period=${MONTH}&format=csv`, adminKey)).body);
    expect(rows.find((row) => row.section === 'adjustments_since_closing')).toMatchObject({
      amount_usd: '1.5',
      kind: 'memo',
    });
    expectFooted(rows, 9);
  });

  it('takes the list price that the bill names, and names a connection as the source of what it fetched', async () => {
    const { adminKey, orgId } = await api.addOrganization();
    const csv = `date,model,token_class,quantity,amount_usd,line_item\n${MONTH}-05,,other,,8,provisioned units\n`;
    const { import_id: id } = await importBill(api, csv, { provider: 'azure_openai' }, adminKey);
    const statement = async () => (await api.get(`${STATEMENT}?period=${MONTH}`, adminKey)).body;
    expect(await statement()).toMatchObject({
      total: { list_usd: 0, not_priced_usd: 8 },
      sources: [{ kind: 'file', source_id: id, name: 'bill.json', first_day: `${MONTH}-05`, days: 1 }],
    });
    const connection = '01990000-0000-7000-8000-000000000001';
    const { superuser } = api.database;
    await superuser.query('update billing_rows set list_amount_usd = 10 where org_id = $1', [orgId]);
    await superuser.query(
      `insert into billing_connections (org_id, id, provider, name, status, provider_account_id, backfill_from)
       values ($1, $2, 'azure_openai', 'Azure of finance', 'active', 'default', '2026-01-01')`,
      [orgId, connection],
    );
    await superuser.query(`update billing_sources set kind = 'api', connection_id = $2 where org_id = $1`, [
      orgId,
      connection,
    ]);
    await superuser.query(`update billing_days set confirmed_at = '2999-01-01' where org_id = $1`, [orgId]);
    expect(await statement()).toMatchObject({
      total: {
        list_usd: 10,
        other_discount_usd: 2,
        discounts_usd: 2,
        not_priced_usd: 0,
        billed_usage_usd: 8,
      },
      sources: [
        {
          kind: 'api',
          source_id: `con_${connection.replaceAll('-', '')}`,
          name: 'Azure of finance',
          told_at: '2999-01-01T00:00:00Z',
        },
      ],
    });
  });

  it('names missing days, sources, and copies that differ', async () => {
    const { body } = await api.get(`${STATEMENT}?period=${bills.days[0]?.slice(0, 7)}`);
    expect(body.coverage.complete).toBe(false);
    expect(body.coverage.missing).toHaveLength(2);
    expect(body.coverage.missing[0]).toMatchObject({ first_day: `${bills.days[0]?.slice(0, 7)}-01` });
    expect(body.sources.map((source: Json) => source.provider).sort()).toEqual([
      'anthropic',
      'openai',
      'openai',
    ]);
    expect(body.source_differences).toMatchObject([
      { provider: 'openai', day: bills.planted.restatedDay, charge_category: 'usage' },
    ]);
  });

  it('without bills, or of another organization, has no rows and states it', async () => {
    for (const [month, key] of [
      ['2020-02', api.adminKey],
      [MONTH, stranger.adminKey],
    ]) {
      const { status, body } = await api.get(`${STATEMENT}?period=${month}`, key);
      expect(status).toBe(200);
      expect(body).toMatchObject({ status: 'no_billing_data', accounts: [], providers: [], sources: [] });
      expect(body.total).toMatchObject({ billed_usage_usd: 0, invoice_total_usd: 0 });
    }
    const csv = await api.get(`${STATEMENT}?period=2020-02&format=csv`);
    expect(csv.body).toBe('period,status,provider,account,section,line,kind,amount_usd,share\r\n');
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="statement-2020-02.csv"');
  });

  it.each([
    ['', 'missing_parameter'],
    ['?period=2026-13', 'invalid_parameter'],
    ['?period=2026-1', 'invalid_parameter'],
    ['?period=0000-01', 'invalid_parameter'],
    ['?period=2999-01', 'invalid_parameter'],
    [`?period=${MONTH}&format=pdf`, 'invalid_parameter'],
  ])('refuses what is no month of ours: %s', async (query, code) => {
    const { status, body } = await api.get(`${STATEMENT}${query}`);
    expect([status, body.code]).toEqual([400, code]);
  });

  it.each([STATEMENT, AUDIT])('%s needs reconciliation:read', async (path) => {
    const query = `?period=${MONTH}&provider=openai`;
    const status = async (key: string) => (await api.get(`${path}${query}`, key)).status;
    expect(await status(api.ingestKey)).toBe(403);
    expect(await status('tu_live_nothing')).toBe(401);
    for (const role of ['auditor', 'member'] as const)
      expect(await status(await api.addKey(api.orgId, role))).toBe(200);
  });
});

/** Every section's items sum to its footing, for each account, provider and the total. */
function expectFooted(rows: readonly Record<string, string>[], sections = 15): void {
  const sums = new Map<string, bigint>();
  const footings = new Map<string, bigint>();
  for (const row of rows) {
    const key = [row.provider, row.account, row.section].join('|');
    if (row.kind === 'item') sums.set(key, (sums.get(key) ?? 0n) + pico(row.amount_usd));
    if (row.kind === 'footing') footings.set(key, pico(row.amount_usd));
  }
  expect(footings.size).toBe(sections);
  expect([...sums].sort()).toEqual([...footings].sort());
}
