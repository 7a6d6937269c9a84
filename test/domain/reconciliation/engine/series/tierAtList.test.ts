/**
 * A dearer tier's list rates, without the contract, on lines that hold ordinary and batch calls, some days with long requests
 * and some without: the usage report shows the tier, but not the length.
 */
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';

import type { BilledCell, UsageCell } from '../../../../../domain/reconciliation/matching/cells.js';
import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { aBilledCell, anObservedCell, aUsageCell, BOOK, tokens } from '../../support.js';
import { contractOf } from './contracts.js';
import { daysOf, isBetween, theFinding } from './support.js';

const MODEL = 'gpt-5.5';
/** Cents a million of gpt-5.5: ordinary, of its priority tier, and of requests beyond 272,000 tokens. */
const CENTS = {
  input: { ordinary: 500, priority: 1_250, long: 1_000 },
  cache_read: { ordinary: 50, priority: 125, long: 100 },
  output: { ordinary: 3_000, priority: 7_500, long: 4_500 },
} as const;
type Class = keyof typeof CENTS;
const CLASSES = Object.keys(CENTS) as Class[];
const OFF_PERCENT = 8n;
const DAYS = 24;
const isWrong = (at: number) => isBetween(at, 9, 14);
/** The first and the last wrong day. */
const DEARER = ['2026-10-14', '2026-10-19'] as const;
const hasLong = (at: number) => at % 2 === 0;

/** Tokens of a day's calls: ordinary, batch and long ones. */
const useOf = (at: number, one: Class) => {
  const whole = { input: 900_000, cache_read: 2_400_000, output: 400_000 }[one] + at * 37_000;
  return { ordinary: whole, batch: Math.round(whole / 5), long: hasLong(at) ? Math.round(whole / 3) : 0 };
};

const pico = (count: number, cents: number) => BigInt(count) * BigInt(cents) * 10_000n;
const contracted = (amount: bigint) => (amount * (100n - OFF_PERCENT)) / 100n;

function linesOf(at: number, one: Class): BilledCell[] {
  const { ordinary, batch, long } = useOf(at, one);
  const cents = CENTS[one];
  const usual = contracted(pico(ordinary, cents.ordinary));
  const amountPico =
    (isWrong(at) ? pico(ordinary, cents.priority) : usual) + contracted(pico(batch, cents.ordinary)) / 2n;
  const line = { model: MODEL, tokenClass: one, isBatch: null };
  const short = aBilledCell({ ...line, longContext: false, quantity: tokens(ordinary + batch), amountPico });
  if (long === 0) return [short];
  const amount = contracted(pico(long, cents.long));
  return [short, aBilledCell({ ...line, longContext: true, quantity: tokens(long), amountPico: amount })];
}

/** The report contains tier and batch, but not the length. */
function reportOf(at: number, one: Class): UsageCell[] {
  const { ordinary, batch, long } = useOf(at, one);
  const cell = { model: MODEL, tokenClass: one, longContext: null };
  return [
    aUsageCell({ ...cell, isBatch: false, quantity: tokens(ordinary + long) }),
    aUsageCell({ ...cell, isBatch: true, quantity: tokens(batch) }),
  ];
}

/** Calls that name no tier. */
const callsOf = (at: number) => {
  const of = (use: 'ordinary' | 'batch' | 'long') =>
    Object.fromEntries(CLASSES.map((one) => [one, BigInt(useOf(at, one)[use])]));
  const call = { model: MODEL, serviceTier: '' };
  return [
    anObservedCell({ ...call, calls: 40, tokens: of('ordinary') }),
    anObservedCell({ ...call, calls: 9, isBatch: true, tokens: of('batch') }),
    ...(hasLong(at) ? [anObservedCell({ ...call, calls: 3, contextBand: 272_000, tokens: of('long') })] : []),
  ];
};

function findings(
  bill: (cells: BilledCell[]) => BilledCell[],
  report: (at: number) => UsageCell[],
): Finding[] {
  const days = daysOf(DAYS, (at) => ({
    billed: bill(CLASSES.flatMap((one) => linesOf(at, one))),
    usage: report(at),
    observed: callsOf(at),
  }));
  const agreed = contractOf(OFF_PERCENT, MODEL);
  return reconcileDays('openai', days, { agreed, list: BOOK }, DEFAULT_WEIGHTS, []).findings;
}

const wholeReport = (at: number) => CLASSES.flatMap((one) => reportOf(at, one));

describe('a dearer tier’s list rates on lines of several uses', () => {
  it('is HIGH on all of its days where the usage report counts what is billed, all of it in one tier', () => {
    const finding = theFinding(findings((cells) => cells, wholeReport));
    expect(finding).toMatchObject({ kind: 'service_tier_rate_misapplied', grade: 'HIGH', missing: [] });
    expect(finding.variant).toBe('tier:standard as priority below the long boundary at list');
    expect(finding.days).toHaveLength(6);
  });

  it('is not certainly a mistake of either side where some of that report is of another tier', () => {
    const mixed = (at: number) =>
      wholeReport(at).flatMap((one) => [
        { ...one, quantity: one.quantity / 2n },
        { ...one, quantity: one.quantity - one.quantity / 2n, serviceTier: 'flex' },
      ]);
    const isMeant = ({ day }: { day: string }) => day >= DEARER[0] && day <= DEARER[1];
    const told = findings((cells) => cells, mixed).filter(({ days }) => days.some(isMeant));
    for (const { grade } of told) expect(grade).not.toBe('HIGH');
    expect(told.map(({ kind }) => kind)).toContain('unexplained');
  });

  it('is not certainly a mistake of either side where that report does not count what is billed', () => {
    const half = (at: number) => wholeReport(at).map((one) => ({ ...one, quantity: one.quantity / 2n }));
    for (const finding of findings((cells) => cells, half)) expect(finding.grade).not.toBe('HIGH');
  });

  it('is LOW on all of its days where the bill has amounts alone and its labels name the tier elsewhere', () => {
    const amounts = (cells: BilledCell[]) => cells.map((one) => ({ ...one, quantity: null }));
    const finding = theFinding(findings(amounts, () => []));
    expect(finding).toMatchObject({ kind: 'service_tier_rate_misapplied', blame: 'provider', grade: 'LOW' });
    expect(finding.variant).toBe('unnamed_at_list:priority below the long boundary');
    expect(finding.days).toHaveLength(6);
  });
});
