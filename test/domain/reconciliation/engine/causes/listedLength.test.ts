/** Requests that are counted as longer than they were, on a bill with a discount that is not entered. */
import { describe, expect, it } from 'vitest';
import type { BilledCell } from '../../../../../domain/reconciliation/matching/cells.js';
import { reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { BOOK } from '../../support.js';
import { contractOf } from '../series/contracts.js';
import { daysOf, findingsOfDays, isBetween } from '../series/support.js';
import { said } from './bills.js';
import { type Counts, calls, lines } from './support.js';

const isWrong = (at: number) => isBetween(at, 8, 11);
/** A day without any long request, all of whose requests are counted as long. */
const isWhole = (at: number) => at === 9;

const ordinaryOf = (at: number): Counts => ({
  input: 30_000_000 + ((at * 7_919) % 13) * 1_100_000,
  output: 5_000_000 + ((at * 17) % 11) * 300_000,
});
const longOf = (at: number): Counts => ({ input: 4_000_000 + at * 10_000, output: 700_000 + at * 1_000 });
const half = (counts: Counts): Counts =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Math.round(count / 2)]));

const atDiscount = (billed: readonly BilledCell[]) =>
  billed.map((one) => ({ ...one, amountPico: (one.amountPico * 83n) / 100n }));

/** Lines of one class and length as one. */
function joined(billed: readonly BilledCell[]): BilledCell[] {
  const sums = new Map<string, BilledCell>();
  for (const cell of billed) {
    const key = `${cell.tokenClass} ${cell.longContext}`;
    const known = sums.get(key);
    const amountPico = cell.amountPico + (known?.amountPico ?? 0n);
    const quantity = (cell.quantity ?? 0n) + (known?.quantity ?? 0n);
    sums.set(key, { ...cell, amountPico, quantity });
  }
  return [...sums.values()];
}

function billOf(at: number, day: string): BilledCell[] {
  const [ordinary, long] = [ordinaryOf(at), longOf(at)];
  const asLong = (counts: Counts) => lines(counts, { longContext: true }, {}, { day });
  if (isWhole(at)) return asLong(ordinary);
  if (!isWrong(at))
    return joined([...atDiscount(lines(ordinary, {}, {}, { day })), ...atDiscount(asLong(long))]);
  return joined([
    ...atDiscount(lines(half(ordinary), {}, {}, { day })),
    ...atDiscount(asLong(long)),
    ...asLong(half(ordinary)),
  ]);
}

describe('ordinary requests on the line of long ones at its list price', () => {
  it('are one mistake on all of its days, also where no line of a day shows the discount', () => {
    const findings = findingsOfDays(
      daysOf(20, (at, day) => ({
        observed: [
          calls(ordinaryOf(at), { calls: 900, serviceTier: 'default' }, { day }),
          ...(isWhole(at)
            ? []
            : [calls(longOf(at), { calls: 9, serviceTier: 'default', contextBand: 272_000 }, { day })]),
        ],
        billed: billOf(at, day),
      })),
    );
    const [accused, more] = findings.filter(({ blame }) => blame === 'provider');
    expect(more).toBeUndefined();
    expect(accused && said(accused)).toMatchObject({
      is: 'long_context_rate_misapplied/part_in_long_meter:at list',
      grade: 'HIGH',
    });
    expect(accused?.days).toHaveLength(4);
  });
});

describe('requests of a service that is not seen, all of the long ones and half of the others', () => {
  it('at the list price are charged without the contract, and none is taken for one counted as long', () => {
    const agreed = contractOf(15n);
    // A tenth of the ordinary ones is seen, so that nothing shows that any of them was counted as long.
    const tenth = (counts: Counts): Counts =>
      Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Math.round(count / 10)]));
    const days = daysOf(20, (at, day) => {
      const atList = { day, book: isWrong(at) ? BOOK : agreed };
      return {
        observed: [calls(tenth(ordinaryOf(at)), { calls: 90, serviceTier: 'default' }, { day })],
        billed: joined([
          ...lines(half(ordinaryOf(at)), {}, {}, { day, book: agreed }),
          ...lines(half(ordinaryOf(at)), {}, {}, atList),
          ...lines(longOf(at), { longContext: true }, {}, atList),
        ]),
      };
    });
    const { findings } = reconcileDays('openai', days, { agreed, list: BOOK }, DEFAULT_WEIGHTS, []);
    const accused = findings.filter(({ blame }) => blame === 'provider');
    expect(accused.map((one) => said(one).is)).toEqual(['contract_rate_not_applied/list_price']);
  });
});
