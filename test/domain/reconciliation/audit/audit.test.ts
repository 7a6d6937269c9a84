import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AUDIT_LINES_MAX,
  BillAudit,
  differenceOf,
  OTHER_LABELS,
} from '../../../../domain/reconciliation/audit/audit.js';
import { chargesOfDay, type DayCharge } from '../../../../domain/reconciliation/matching/charges.js';
import { billedCells, usageCells } from '../arbitraries.js';
import { BOOK, DAY, tokens, usd } from '../support.js';

/** A charge of a million tokens at five dollars that should cost four. */
function aCharge(over: Partial<DayCharge> = {}): DayCharge {
  return {
    accountId: 'acct',
    label: 'claude-opus-5',
    tokenClass: 'output',
    serviceTier: 'standard',
    isBatch: false,
    longContext: false,
    region: null,
    quantity: tokens(1_000_000),
    billedPico: usd('5'),
    agreedPico: usd('4'),
    listPico: usd('4'),
    givenListPico: null,
    roundingPico: 1_000n,
    agreedRate: usd('4'),
    listRate: usd('4'),
    verdict: 'differs',
    looksLike: [],
    priceSource: 'list',
    agreement: 'agree',
    disputed: false,
    ...over,
  };
}

const right = (over: Partial<DayCharge> = {}) =>
  aCharge({ billedPico: usd('4'), verdict: 'as_agreed', ...over });

function audit(days: Record<string, readonly DayCharge[]>, linesMax?: number) {
  const one = new BillAudit(linesMax);
  for (const [day, charges] of Object.entries(days).sort(([a], [b]) => (a < b ? -1 : 1)))
    one.addDay(day, charges);
  return one.result();
}

const spans = (result: ReturnType<typeof audit>) =>
  result.differences.map(({ firstDay, lastDay, days }) => [firstDay, lastDay, days]);

describe('days of one error', () => {
  it('are one line with the exact sums', () => {
    const result = audit({ '2026-10-31': [aCharge()], '2026-11-01': [aCharge()], '2026-11-02': [aCharge()] });
    expect(result.differences).toMatchObject([
      {
        firstDay: '2026-10-31',
        lastDay: '2026-11-02',
        days: 3,
        quantity: tokens(3_000_000),
        billedPico: usd('15'),
        agreedPico: usd('12'),
        listPico: usd('12'),
      },
    ]);
    expect(result.totals).toMatchObject({ abovePico: usd('3'), belowPico: 0n, roundingPico: 0n });
  });

  it('stay one line over days without such a charge, and end with a day at the agreed rate', () => {
    expect(spans(audit({ '2026-10-02': [aCharge()], '2026-10-03': [], '2026-10-05': [aCharge()] }))).toEqual([
      ['2026-10-02', '2026-10-05', 2],
    ]);
    expect(
      spans(audit({ '2026-10-02': [aCharge()], '2026-10-03': [right()], '2026-10-04': [aCharge()] })),
    ).toEqual([
      ['2026-10-02', '2026-10-02', 1],
      ['2026-10-04', '2026-10-04', 1],
    ]);
  });

  it('are apart where the ratio, the agreed rate, the list or the place is another', () => {
    for (const over of [
      { billedPico: usd('6') },
      { agreedRate: usd('3') },
      { listRate: usd('5') },
      { isBatch: true },
      { accountId: 'other' },
      { region: 'us' },
    ])
      expect(spans(audit({ '2026-10-01': [aCharge()], '2026-10-02': [aCharge(over)] }))).toHaveLength(2);
  });

  it('differ by the rounding of small amounts and stay one', () => {
    const tiny = aCharge({
      quantity: tokens(1_000),
      billedPico: usd('0.005') + 900n,
      agreedPico: usd('0.004'),
      roundingPico: 50_000n,
    });
    expect(
      spans(audit({ '2026-10-01': [aCharge()], '2026-10-02': [tiny], '2026-10-03': [aCharge()] })),
    ).toEqual([['2026-10-01', '2026-10-03', 3]]);
  });

  it('are one where the mixture moves the ratio and the mistake is exactly the same', () => {
    const mixed = (billed: string, looksLike: DayCharge['looksLike']) =>
      aCharge({ billedPico: usd(billed), agreedRate: null, listRate: null, looksLike });
    const result = audit({
      '2026-10-01': [mixed('5', ['batch_discount_not_applied'])],
      '2026-10-02': [mixed('6', ['batch_discount_not_applied', 'service_tier_rate_misapplied'])],
    });
    expect(result.differences).toMatchObject([{ days: 2, looksLike: ['batch_discount_not_applied'] }]);
  });

  it('keep only what holds on every day as a hint', () => {
    const result = audit({
      '2026-10-01': [aCharge({ looksLike: ['service_tier_rate_misapplied'] })],
      '2026-10-02': [aCharge({ looksLike: [] })],
    });
    expect(result.differences).toMatchObject([{ days: 2, looksLike: [] }]);
  });
});

describe('an audit', () => {
  it('lists what was charged too little like what was charged too much, largest amount first', () => {
    const result = audit({
      '2026-10-01': [aCharge(), aCharge({ label: 'gpt-6-sol', billedPico: usd('1') })],
    });
    expect(result.differences.map(differenceOf)).toEqual([usd('-3'), usd('1')]);
    expect(result.totals).toMatchObject({ abovePico: usd('1'), belowPico: usd('-3') });
  });

  it('lists what is as agreed in one line a place, and why the rest is not judged', () => {
    const result = audit({
      '2026-10-01': [right(), right({ tokenClass: 'input', billedPico: usd('4') + 7n })],
      '2026-10-02': [
        right(),
        aCharge({ label: 'file search', verdict: 'not_observable', agreedPico: null, billedPico: usd('9') }),
      ],
    });
    expect(result.asAgreed.map(({ tokenClass, days, billedPico }) => [tokenClass, days, billedPico])).toEqual(
      [
        ['input', 1, usd('4') + 7n],
        ['output', 2, usd('8')],
      ],
    );
    expect(result.notJudged).toMatchObject([{ label: 'file search', reason: 'not_observable', days: 1 }]);
    expect(result.totals).toEqual({
      billedPico: usd('21') + 7n,
      judgedPico: usd('12') + 7n,
      notJudgedPico: usd('9'),
      agreedPico: usd('12'),
      abovePico: 0n,
      belowPico: 0n,
      roundingPico: 7n,
    });
  });

  it('with more lines than it holds keeps the largest, and the sums of the others', () => {
    const days = Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => [
        `2026-10-${String(at + 1).padStart(2, '0')}`,
        [aCharge({ billedPico: usd('4') + BigInt(at + 1) * usd('1') })],
      ]),
    );
    const result = audit(days, 5);
    expect(result.differences.map((line) => differenceOf(line) / usd('1'))).toEqual([
      30n,
      29n,
      28n,
      27n,
      26n,
    ]);
    expect(result.omitted).toEqual({ lines: 25, billedPico: usd('425'), agreedPico: usd('100') });
    expect(AUDIT_LINES_MAX).toBeGreaterThan(1_000);
  });

  it('adds up labels beyond the number that it lists separately', () => {
    const many = Array.from({ length: 1_005 }, (_, at) =>
      aCharge({ label: `label ${at}`, verdict: 'unparsed_line', agreedPico: null, billedPico: 1n }),
    );
    const { notJudged, totals } = audit({ '2026-10-01': many });
    expect(notJudged.find(({ label }) => label === OTHER_LABELS)?.billedPico).toBe(5n);
    expect(totals.notJudgedPico).toBe(1_005n);
  });
});

const total = (values: readonly bigint[]) => values.reduce((sum, value) => sum + value, 0n);

describe('whatever the bills hold', () => {
  const days = fc.array(
    fc.tuple(fc.array(billedCells, { maxLength: 8 }), fc.array(usageCells, { maxLength: 8 })),
    { maxLength: 6 },
  );

  it('charges sum to the billed cells, and the audit’s rows to its totals, to the pico-dollar', () => {
    fc.assert(
      fc.property(days, fc.constantFrom(1, 3, AUDIT_LINES_MAX), (cells, linesMax) => {
        const one = new BillAudit(linesMax);
        cells.forEach(([billed, usage], at) => {
          const charges = chargesOfDay('openai', DAY, billed, usage, { agreed: BOOK, list: BOOK });
          expect(total(charges.map(({ billedPico }) => billedPico))).toBe(
            total(billed.map(({ amountPico }) => amountPico)),
          );
          one.addDay(`2026-10-0${at + 1}`, charges);
        });
        const { differences, omitted, asAgreed, notJudged, totals } = one.result();
        const judged = [...differences, ...asAgreed];
        expect(totals.billedPico).toBe(
          total(cells.flatMap(([billed]) => billed.map((cell) => cell.amountPico))),
        );
        expect(total(judged.map((line) => line.billedPico)) + omitted.billedPico).toBe(totals.judgedPico);
        expect(total(judged.map((line) => line.agreedPico)) + omitted.agreedPico).toBe(totals.agreedPico);
        expect(total(notJudged.map((line) => line.billedPico))).toBe(totals.notJudgedPico);
        expect(totals.judgedPico + totals.notJudgedPico).toBe(totals.billedPico);
        // The differences are billed − agreed, signed.
        expect(totals.abovePico + totals.belowPico + totals.roundingPico).toBe(
          totals.judgedPico - totals.agreedPico,
        );
        expect(total(judged.map(differenceOf)) + omitted.billedPico - omitted.agreedPico).toBe(
          totals.judgedPico - totals.agreedPico,
        );
      }),
      { numRuns: 300 },
    );
  });
});
