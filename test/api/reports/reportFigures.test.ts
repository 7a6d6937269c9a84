import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { footCents } from '../../../domain/footing.js';
import { picoFromNumber } from '../../../domain/money.js';
import { dayOf, shiftDay } from '../../../domain/period.js';
import { POLICY_TYPES } from '../../../domain/policies/policy.js';
import { type ClaimedDemo, startClaimedDemo } from '../../support/claimedDemo.js';
import { pdfTextOf } from '../../support/pdfText.js';
import { REPORTS_PATH } from '../../support/reports.js';
import { anEvent, ingest, send, sendJson } from '../support/requests.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

/** Every number of a report is compared with the API's answers for the same days, which are rounded here by other code. */
let demo: ClaimedDemo;
let lines: string[];
let days: { from: string; to: string };
let before: { from: string; to: string };
/** Every amount that the API gives, as a report shows it. */
const known = new Set<string>();

const get = async (path: string): Promise<Json> => {
  const { status, body } = await demo.api.get(`/api/v1${path}`, demo.organization.adminKey);
  expect(status, path).toBe(200);
  return body;
};

const money = (cents: bigint): string => {
  const digits = (cents < 0n ? -cents : cents).toString().padStart(3, '0');
  const text = `$${Number(digits.slice(0, -2)).toLocaleString('en-US')}.${digits.slice(-2)}`;
  known.add(text);
  return `${cents < 0n ? '−' : ''}${text}`;
};
const count = (value: number): string => value.toLocaleString('en-US');
const percent = (part: bigint, whole: bigint): string =>
  `${((Number(part) * 100) / Number(whole)).toFixed(1)}%`;
const centsOf = (usd: number): bigint => BigInt(Math.round(usd * 100));
/** Cents of exact amounts that add up to their rounded sum. */
const footed = (usd: readonly number[]): bigint[] =>
  footCents(usd.map((one) => picoFromNumber(one) ?? 0n)).partsPico.map((pico) => pico / 10_000_000_000n);
const tokensOf = (item: Json): number =>
  item.input_tokens + item.output_tokens + item.cache_read + item.cache_creation;
const sum = (items: readonly Json[], of: (item: Json) => number): number =>
  items.reduce((total, item) => total + of(item), 0);

/** A line of the report that consists of these cells. */
function expectRow(...cells: string[]): void {
  const row = cells.join('').replace(/\s+/g, '');
  expect(lines, cells.join(' | ')).toContain(row);
}

beforeAll(async () => {
  demo = await startClaimedDemo();
  const { adminKey: key, ingestKey } = demo.organization;
  const today = dayOf(BigInt(Date.now()) * 1_000n);
  days = { from: shiftDay(today, -29), to: today };
  before = { from: shiftDay(today, -59), to: shiftDay(today, -30) };
  const put = (path: string, json: object) =>
    sendJson(demo.api, { method: 'PUT', path: `/api/v1${path}`, key, json });
  await put('/policies/approved_models', { config: { models: ['gpt-5-mini'] } });
  await put('/policies/approval_required_threshold_cents', { config: { threshold_cents: 1 } });
  const calls = Array.from({ length: 7 }, (_, at) =>
    anEvent({
      model: 'gpt-4o',
      team_id: `late-${at % 3}`,
      input_tokens: 1_000 * (at + 1),
      output_tokens: 777,
    }),
  );
  const blocked = [0.333333, 1.005, 2.4].map((usd) =>
    anEvent({
      ...{ status: 'blocked', blocked_rule_id: 'rul_unknown', prevented_usd: usd },
      ...{ input_tokens: undefined, output_tokens: undefined },
    }),
  );
  await ingest(demo.api, [...calls, ...blocked], ingestKey);
  const made = await send(demo.api, {
    ...{ method: 'POST', path: `${REPORTS_PATH}/management`, key },
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(days),
  });
  expect(made.status).toBe(200);
  const { pages } = await pdfTextOf(made.bytes);
  lines = pages.flatMap((page) => page.lines.map(({ text }) => text.replace(/\s+/g, '')));
}, 300_000);
afterAll(() => demo?.close());

const inWindow = (window: { from: string; to: string }, names = ['from', 'to']) =>
  `${names[0]}=${window.from}&${names[1]}=${window.to}`;

describe('the numbers of a report', () => {
  it('are those of usage/summary, by model', async () => {
    const now = await get(`/usage/summary?${inWindow(days)}`);
    const then = await get(`/usage/summary?${inWindow(before)}`);
    const total = centsOf(now.total_cost_usd);
    const cents = footed(now.breakdown.map((item: Json) => item.cost_usd));
    expect(now.breakdown.length).toBeGreaterThan(5);
    for (const [at, item] of now.breakdown.entries()) {
      const old = then.breakdown.find(({ key }: Json) => key === item.key)?.cost_usd ?? 0;
      const change = centsOf(item.cost_usd) - centsOf(old);
      const sign = change < 0n ? '−' : '+';
      const changed =
        old === 0
          ? 'new'
          : change === 0n
            ? '0.0%'
            : `${sign}${percent(change < 0n ? -change : change, centsOf(old))}`;
      expectRow(
        item.key,
        count(item.call_count),
        count(tokensOf(item)),
        money(cents[at] ?? 0n),
        percent(cents[at] ?? 0n, total),
        changed,
      );
    }
    expectRow(
      'Calls',
      count(now.call_count),
      count(then.call_count),
      changeOf(now.call_count, then.call_count),
    );
    expectRow(
      'Spend on calls',
      money(total),
      money(centsOf(then.total_cost_usd)),
      changeOf(Number(total), Number(centsOf(then.total_cost_usd))),
    );
    money(total - centsOf(then.total_cost_usd));
  });

  it('are those of dashboard/breakdown/day', async () => {
    const { items, total_cost_usd } = await get(
      `/dashboard/breakdown/day?${inWindow(days, ['since', 'until'])}`,
    );
    const ordered = [...items].sort((a: Json, b: Json) => (a.key < b.key ? -1 : 1));
    const cents = footed(ordered.map((item: Json) => item.cost_usd));
    expect(ordered.length).toBeGreaterThan(25);
    for (const [at, item] of ordered.entries()) {
      const [year, month, day] = item.key.split('-');
      const name = `${Number(day)} ${new Date(`${year}-${month}-01T00:00:00Z`).toLocaleString('en-GB', { month: 'short', timeZone: 'UTC' }).slice(0, 3)} ${year}`;
      expectRow(
        name,
        count(item.call_count),
        money(cents[at] ?? 0n),
        percent(cents[at] ?? 0n, centsOf(total_cost_usd)),
      );
    }
  });

  it('are those of reports/chargeback by team', async () => {
    const { buckets, total_cost_cents } = await get(
      `/reports/chargeback?dimension=team_id&${inWindow(days, ['start_date', 'end_date'])}`,
    );
    expect(buckets.length).toBeGreaterThan(5);
    for (const { bucket, cost_cents, tokens, rows } of buckets)
      expectRow(
        bucket,
        count(rows),
        count(tokens),
        money(BigInt(cost_cents)),
        percent(BigInt(cost_cents), BigInt(total_cost_cents)),
      );
    expectRow(
      'Total',
      count(sum(buckets, ({ rows }) => rows)),
      count(sum(buckets, ({ tokens }) => tokens)),
      money(BigInt(total_cost_cents)),
      '100.0%',
    );
  });

  it('are those of the feed of alerts', async () => {
    const { alerts, has_more } = await get(`/alerts?limit=1000&${inWindow(days, ['since', 'until'])}`);
    expect([has_more, alerts.length > 20]).toEqual([false, true]);
    const ofType = (type: string) => alerts.filter(({ policy_type }: Json) => policy_type === type);
    const types = POLICY_TYPES;
    const names = [
      ...['Approved models', 'Banned patterns'],
      ...['Production keys in other environments', 'Calls above the approval threshold'],
    ];
    const costs = types.map((type) => sum(ofType(type), ({ cost_usd }) => cost_usd ?? 0));
    const cents = footed(costs);
    for (const [at, type] of types.entries()) {
      const of = ofType(type);
      expectRow(
        names[at] ?? '',
        'on',
        count(of.length),
        count(of.filter(({ severity }: Json) => severity === 'high').length),
        count(of.filter(({ status }: Json) => status === 'open').length),
        money(cents[at] ?? 0n),
      );
    }
    const text = lines.join('');
    expect(text).toContain(`${count(alerts.length)}alertswereraised`);
    money(cents.reduce((all, one) => all + one, 0n));
  });

  it('are those of enforcement/savings', async () => {
    const now = await get(`/enforcement/savings?${inWindow(days)}`);
    const then = await get(`/enforcement/savings?${inWindow(before)}`);
    expect(now.prevented.calls).toBeGreaterThan(0);
    for (const { rule_id, calls, prevented_usd } of now.prevented.by_rule)
      expectRow(rule_id ?? 'No rule named', count(calls), money(centsOf(prevented_usd)));
    expectRow('Total', count(now.prevented.calls), money(centsOf(now.prevented_usd)));
    expectRow(
      'Prevented by enforcement',
      money(centsOf(now.prevented_usd)),
      money(centsOf(then.prevented_usd)),
      changeOf(now.prevented_usd, then.prevented_usd),
    );
  });

  it('are those of financial/summary, the matches and the claims', async () => {
    const financial = await get(`/financial/summary?${inWindow(days)}`);
    const confirmed = centsOf(financial.recoverable_confirmed_usd);
    const review = centsOf(financial.recoverable_review_usd);
    expect(confirmed + review).toBeGreaterThan(0n);
    expectRow('Recoverable, confirmed', money(confirmed));
    expectRow('Recoverable, in review', money(review));
    money(confirmed + review);
    const unexplained =
      centsOf(financial.unexplained_critical_usd) + centsOf(financial.unexplained_review_usd);
    expectRow('Unexplained on bills', money(unexplained));
    expectRow('Total', money(confirmed), money(review), money(unexplained));
    for (const one of financial.breakdown)
      for (const usd of [one.recoverable_confirmed_usd, one.recoverable_review_usd]) money(centsOf(usd));
    const grades = { HIGH: 'high', MEDIUM: 'medium', LOW: 'low', UNVERIFIED: 'unverified' } as const;
    const matched: number[] = [];
    const shown: string[] = [];
    let unmatched = 0;
    for (const grade of Object.keys(grades) as (keyof typeof grades)[]) {
      const { totals } = await get(`/reconciliation/matches?confidence=${grade}&${inWindow(days)}&limit=1`);
      unmatched += totals.unmatched_usd;
      if (totals.matched_usd === 0) continue;
      matched.push(totals.matched_usd);
      shown.push(`Matched, ${grades[grade]}${grade === 'UNVERIFIED' ? '' : ' confidence'}`);
    }
    const cents = footed([...matched, unmatched]);
    const billed = cents.reduce((all, one) => all + one, 0n);
    for (const [at, name] of shown.entries())
      expectRow(name, money(cents[at] ?? 0n), percent(cents[at] ?? 0n, billed));
    expectRow('Not matched by calls', money(cents.at(-1) ?? 0n), percent(cents.at(-1) ?? 0n, billed));
    expectRow('Billed', money(billed), '100.0%');
    money(billed - (cents.at(-1) ?? 0n));
    const { claims } = await get('/claims?limit=1000');
    const over = claims.filter((one: Json) => one.period_end >= days.from && one.period_start <= days.to);
    expectRow(
      'Open claims',
      money(BigInt(sum(over, ({ total_recoverable_cents }) => total_recoverable_cents))),
    );
  });

  it('contain no amount besides, axes of charts aside', () => {
    known.add('$0.00');
    const amounts = lines.flatMap((line) => line.match(/\$[\d,]+\.\d\d/g) ?? []);
    expect(amounts.length).toBeGreaterThan(60);
    expect([...new Set(amounts)].filter((amount) => !known.has(amount))).toEqual([]);
  });
});

function changeOf(now: number, then: number): string {
  if (now === then) return '0.0%';
  if (then === 0) return 'new';
  const share = ((Math.abs(now - then) * 100) / then).toFixed(1);
  return `${now < then ? '−' : '+'}${Number(share).toLocaleString('en-US', { minimumFractionDigits: 1 })}%`;
}
