import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ComparedDay, FocusCharge } from '../../../../domain/billing/focus/focusCharge.js';
import { matchCharges } from '../../../../domain/billing/focus/focusPricing.js';
import type { ClassLine } from '../../../../domain/reconciliation/matching/cells.js';

const CLASSES = ['input', 'cache_read', 'output', 'other'] as const;

const lineOf = (given: Partial<ClassLine>): ClassLine => ({
  tokenClass: 'input',
  billedQuantity: null,
  observedQuantity: 0n,
  billedPico: 0n,
  expectedOfBilledPico: null,
  expectedOfObservedPico: null,
  split: 'none',
  rows: 0,
  ...given,
});

const dayOf = (given: Partial<ComparedDay>): ComparedDay => ({
  accountId: 'a',
  model: 'm',
  matchStatus: 'partial',
  grade: 'HIGH',
  reason: null,
  provisional: false,
  ourCostPico: 0n,
  lines: [],
  finding: null,
  disputeId: null,
  ...given,
});

const chargeOf = (model: string, tokenClass: FocusCharge['tokenClass'], amountPico: bigint): FocusCharge =>
  ({ accountId: 'a', model, tokenClass, amountPico, originalAmount: amountPico }) as FocusCharge;

const amounts = fc.bigInt({ min: 0n, max: 10n ** 16n });

describe('the observed cost of a charge', () => {
  it('with what is not billed sums to the computed cost of the day, whatever is billed', () => {
    const lines = fc.uniqueArray(
      fc.record({
        tokenClass: fc.constantFrom(...CLASSES),
        observedQuantity: amounts,
        expectedOfObservedPico: fc.oneof(amounts, fc.constant(null)),
      }),
      { selector: (line) => line.tokenClass },
    );
    const days = fc.array(fc.record({ ourCostPico: amounts, lines }), { maxLength: 3 });
    const billed = fc.array(fc.tuple(fc.nat(3), fc.constantFrom(...CLASSES), amounts), { maxLength: 12 });
    fc.assert(
      fc.property(days, billed, (given, rows) => {
        const compared = given.map((day, at) =>
          dayOf({ ...day, model: `m${at}`, lines: day.lines.map((line) => lineOf(line)) }),
        );
        const charges = rows.map(([at, name, amount]) => chargeOf(`m${at}`, name, amount));
        const { matches, unbilled } = matchCharges(
          charges,
          (charge) => compared.find(({ model }) => model === charge.model),
          compared,
        );
        const told = [...matches.values()].reduce((sum, match) => sum + (match.observedPico ?? 0n), 0n);
        const rest = unbilled.reduce((sum, use) => sum + use.observedPico, 0n);
        expect(told + rest).toBe(compared.reduce((sum, day) => sum + day.ourCostPico, 0n));
        expect(matches.size).toBe(charges.length);
        for (const [charge, match] of matches)
          if (match.observedPico !== null)
            expect((match.gapPico ?? 0n) + match.observedPico).toBe(charge.amountPico);
      }),
    );
  });

  it('is assigned to the class that it was observed in, and inside of it as the rows were billed', () => {
    const day = dayOf({
      ourCostPico: 100n,
      lines: [
        lineOf({ tokenClass: 'input', observedQuantity: 5n, expectedOfObservedPico: 60n }),
        lineOf({ tokenClass: 'output', observedQuantity: 5n, expectedOfObservedPico: 40n }),
      ],
    });
    const charges = [chargeOf('m', 'input', 30n), chargeOf('m', 'input', 10n)];
    const { matches, unbilled } = matchCharges(charges, () => day, [day]);
    expect(charges.map((charge) => matches.get(charge)?.observedPico)).toEqual([45n, 15n]);
    expect(unbilled).toEqual([
      { day, line: { tokenClass: 'output', observedQuantity: 5n }, observedPico: 40n },
    ]);
  });

  it('of a day that was not compared is unknown', () => {
    const charge = chargeOf('m', 'input', 30n);
    const { matches } = matchCharges([charge], () => undefined, []);
    expect(matches.get(charge)).toMatchObject({ status: 'not_compared', observedPico: null, gapPico: null });
  });
});
