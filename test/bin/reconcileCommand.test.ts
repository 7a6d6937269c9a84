import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decimalFromPico, picoFromDecimal } from '../../domain/money.js';
import { StartError } from '../../platform/startError.js';
import { ingestMany } from '../api/support/requests.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { eventsOf, type GeneratedBills, generateBills } from '../support/billGenerator.js';
import { importGenerated, runGaps } from '../support/bills.js';
import { startTypeScript } from '../support/childProgram.js';
import { startTestEngine, type TestEngine } from '../support/engine.js';
import { runTrueup } from '../support/trueup.js';

/** `./trueup reconcile` on bills with planted mistakes, while no worker runs. */

const SEED = Number(process.env.RUN_SEED ?? 20_261_122);
const DAYS = 30;
const lastDay = new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10);

// biome-ignore lint/suspicious/noExplicitAny: the output that is being tested
type Json = any;

let api: TestApi;
let engine: TestEngine | undefined;
let bills: GeneratedBills;
let before: string;

beforeAll(async () => {
  console.info(`reconcile: seed ${SEED} (RUN_SEED=${SEED} repeats it), ${DAYS} days to ${lastDay}`);
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  await engine.startWorker();
  bills = generateBills({ seed: SEED, lastDay, days: DAYS, callsPerHour: 1, withWrongReads: true });
  await ingestMany(api, eventsOf(bills.calls));
  await importGenerated(api, bills);
  await runGaps(api, '?period=90d', 180_000);
  await engine.close();
  engine = undefined;
  before = await everyRow();
}, 300_000);

afterAll(async () => {
  await engine?.close();
  await api?.close();
});

/** All rows that a run could change. */
async function everyRow(): Promise<string> {
  const { rows } = await api.database.superuser.query(
    `select (select count(*) from gap_runs) as runs, (select count(*) from gap_buckets) as buckets, (select count(*) from findings) as findings,
       (select count(*) from outbox) as messages, (select count(*) from audit_log) as actions, (select sum(calls) from billing_cells) as calls`,
  );
  return JSON.stringify(rows);
}

/** The command as a program. */
async function run(...args: string[]) {
  const program = startTypeScript('bin/trueup.ts', ['reconcile', ...args], { ...api.database.environment });
  const code = await program.ended();
  return { code, text: program.stdout(), all: program.output() };
}

const org = () => ['--org', `org_${api.orgId.replaceAll('-', '')}`];

/** The same command within this process. */
const text = async (...args: string[]): Promise<string> =>
  (await runTrueup(['reconcile', ...args, ...org()], { environment: api.database.environment })).output;
const json = async (...args: string[]): Promise<Json> => JSON.parse(await text(...args, '--json'));

const sumOf = (byDay: Map<string, bigint>) =>
  decimalFromPico([...byDay.values()].reduce((sum, pico) => sum + pico, 0n));

describe('./trueup reconcile', () => {
  it('finds the wrong rate on its days, to the pico-dollar, and prints what to do', async () => {
    const { findings, provider, status, days } = await json('--provider', 'anthropic');
    expect([provider, status, days]).toEqual(['anthropic', 'reconciled', DAYS]);
    const { wrongReadDays, wrongReadPico } = bills.planted;
    const found = findings.filter((finding: Json) => finding.blame === 'provider');
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({
      kind: 'cache_read_rate_mismatch',
      model: 'claude-haiku-4-5',
      direction: 'overcharge',
      period_start: wrongReadDays[0],
      period_end: wrongReadDays.at(-1),
      impact_usd_exact: sumOf(wrongReadPico),
    });
    expect(found[0].reason).not.toBe('');
    expect(found[0].advice).not.toEqual([]);
  });

  it('reports a rate that matches no known mistake to the pico-dollar too, and blames neither side', async () => {
    const { findings } = await json('--provider', 'anthropic');
    const { wrongRateDays, wrongRatePico } = bills.planted;
    const found = findings.filter((finding: Json) => finding.model === 'claude-opus-5');
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({
      kind: 'unexplained',
      direction: 'overcharge',
      blame: 'none',
      claimable: false,
      period_start: wrongRateDays[0],
      period_end: wrongRateDays.at(-1),
      impact_usd_exact: sumOf(wrongRatePico),
      parts: { rate_usd_exact: sumOf(wrongRatePico) },
    });
    expect(found[0].advice[0]).toContain('Ask the provider which rate was charged');
  });

  it('parts, days and impact of a finding are the same money', async () => {
    for (const provider of ['anthropic', 'openai']) {
      for (const finding of (await json('--provider', provider)).findings) {
        const sum = (texts: string[]) =>
          decimalFromPico(texts.reduce((total, text) => total + (picoFromDecimal(text) ?? 0n), 0n));
        expect(sum(Object.values(finding.parts))).toBe(finding.impact_usd_exact);
        expect(sum(finding.days.map((day: Json) => day.impact_usd_exact))).toBe(finding.impact_usd_exact);
      }
    }
  });

  it('prints the result of the run that the service has published', async () => {
    const command = (await json('--provider', 'anthropic')).findings.map(
      (one: Json) => `${one.kind} ${one.model} ${one.period_start} ${one.impact_usd_exact} ${one.confidence}`,
    );
    const { body } = await api.get('/api/v1/financial/findings?provider=anthropic&limit=1000');
    const published = body.findings.map(
      (one: Json) => `${one.kind} ${one.model} ${one.period_start} ${one.impact_usd_exact} ${one.confidence}`,
    );
    expect(command.sort()).toEqual(published.sort());
  });

  it('covers what the API covers', async () => {
    const { coverage } = await json('--provider', 'openai');
    const { groups, totals } = (
      await api.get(
        `/api/v1/reconciliation/coverage?provider=openai&group_by=model&from=${bills.days[0]}&limit=1000`,
      )
    ).body;
    expect(coverage.totals).toEqual(totals);
    const plain = (one: Json) => ({
      model: one.model,
      token_share: one.token_share,
      billed_usd: one.billed_usd,
      explained_usd: one.explained_usd,
    });
    expect(coverage.models.map(plain)).toEqual(groups.map(plain));
  });

  it('prints a table that fits a terminal', async () => {
    const { code, text: table } = await run('--provider', 'anthropic', ...org());
    expect(code).toBe(0);
    expect(table).toContain(
      `Bills of anthropic and the calls of ${bills.days[0]} to ${lastDay}: ${DAYS} days with a bill.`,
    );
    expect(table).toMatch(/over +claude-opus-5 +/);
    expect(table).toContain('unexplained, charged too much');
    expect(table).toContain('How much of what was billed was observed');
    expect(Math.max(...table.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
    expect(table).not.toContain('\u001b');
  });

  it('writes a CSV with a row for each finding and a total', async () => {
    const { findings } = await json('--provider', 'anthropic');
    const csv = await text('--provider', 'anthropic', '--format', 'csv');
    const rows = csv.trimEnd().split('\r\n');
    expect(rows[0]).toMatch(/^provider,account,kind,variant,direction,blame,/);
    expect(rows).toHaveLength(findings.length + 2);
    expect(rows.at(-1)).toMatch(/^anthropic,,total,/);
  });

  it('is the same every time, and for days of its options', async () => {
    const whole = await json('--provider', 'anthropic');
    expect(await json('--provider', 'anthropic')).toEqual(whole);
    const { wrongRateDays } = bills.planted;
    const some = await json(
      '--provider',
      'Anthropic',
      '--from',
      wrongRateDays[0] ?? '',
      '--to',
      wrongRateDays[1] ?? '',
    );
    expect([some.days, some.from, some.to]).toEqual([2, wrongRateDays[0], wrongRateDays[1]]);
  });

  it('ends with 1 for a script that asks, where there is something to do', async () => {
    expect((await run('--provider', 'anthropic', '--fail-on-finding', ...org())).code).toBe(1);
    expect((await run('--provider', 'xai', '--fail-on-finding', ...org())).code).toBe(0);
  });

  it('without bills, or without bills in these days, prints what to do', async () => {
    expect(await text('--provider', 'xai')).toContain('./trueup import bills --provider xai FILE');
    expect(await text('--provider', 'openai', '--from', '2020-01-01', '--to', '2020-02-01')).toContain(
      `the bills go from ${bills.days[0]} to ${lastDay}`,
    );
    expect((await json('--provider', 'xai')).status).toBe('no_billing_data');
  });

  it.each([
    [['--provider', 'nobody'], '--provider is nobody'],
    [[], '--provider is missing'],
    [['--provider', 'openai', '--format', 'xml'], '--format is xml'],
    [['--provider', 'openai', '--from', 'may'], '--from is may'],
    [
      ['--provider', 'openai', '--from', '2026-02-02', '--to', '2026-02-01'],
      '2026-02-02 lies after 2026-02-01',
    ],
    [
      ['--provider', 'openai', '--from', '2024-01-01', '--to', '2026-02-01'],
      'a reconciliation spans at most 366 days',
    ],
    [['--provider', 'openai', '--from', '2026-02-30'], '--from is 2026-02-30'],
    [['--provider', 'openai', 'more'], 'Usage: trueup reconcile'],
  ])('refuses %j in a sentence', async (args, sentence) => {
    const refused = (async () => text(...args))();
    await expect(refused).rejects.toThrow(StartError);
    await expect(refused).rejects.toThrow(sentence);
  });

  it('reports an error of its command line without a stack trace', async () => {
    const { code, all } = await run('--provider', 'openai', '--org', 'nobody');
    expect([code, all]).toEqual([1, expect.stringContaining('There is no organization nobody')]);
    expect(all).not.toContain('    at ');
  });

  it('has changed nothing', async () => {
    expect(await everyRow()).toBe(before);
  });
});
