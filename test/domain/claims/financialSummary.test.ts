import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FindingSum, summarize } from '../../../domain/claims/financialSummary.js';
import { PICO_PER_USD } from '../../../domain/money.js';
import { DIRECTIONS } from '../../../domain/reconciliation/engine/index.js';

import { GRADES } from '../../../domain/reconciliation/matching/cells.js';
import { testSeed } from '../../fakes/seededRandom.js';

const CENT = PICO_PER_USD / 100n;
const NOTHING = { preventedPico: 0n, preventableModeledPico: 0n };

const aSum = (given: Partial<FindingSum>): FindingSum => ({
  provider: 'openai',
  accountId: 'a',
  month: '2026-03',
  isUnexplained: false,
  isConfirmed: false,
  direction: 'overcharge',
  blame: 'provider',
  claimable: true,
  grade: 'HIGH',
  provisional: false,
  critical: false,
  impactPico: PICO_PER_USD,
  ...given,
});

const over = (impactPico: bigint, given: Partial<FindingSum> = {}) => aSum({ impactPico, ...given });
const under = (impactPico: bigint, given: Partial<FindingSum> = {}) =>
  aSum({ impactPico: -impactPico, direction: 'undercharge', ...given });

const drawn = fc
  .record({
    provider: fc.constantFrom('openai', 'anthropic'),
    accountId: fc.constantFrom('', 'a'),
    month: fc.constantFrom('2026-02', '2026-03'),
    isUnexplained: fc.boolean(),
    isConfirmed: fc.boolean(),
    direction: fc.constantFrom(...DIRECTIONS),
    blame: fc.constantFrom('provider' as const, 'none' as const),
    claimable: fc.boolean(),
    grade: fc.constantFrom(...GRADES),
    provisional: fc.boolean(),
    critical: fc.boolean(),
    size: fc.bigInt({ min: 0n, max: 30n * PICO_PER_USD }),
  })
  .map(
    ({ size, ...rest }): FindingSum => ({
      ...rest,
      impactPico: rest.direction === 'overcharge' ? size : -size,
    }),
  );
const enforcement = fc.record({
  preventedPico: fc.bigInt({ min: 0n, max: 9n * PICO_PER_USD }),
  preventableModeledPico: fc.bigInt({ min: 0n, max: 9n * PICO_PER_USD }),
});

/** Many examples, because they need no database. */
const PARAMETERS = { seed: testSeed(), numRuns: 2_000 };

describe('the summary', () => {
  it('adds up to the cent, whatever was found: total, breakdown and each account’s month', () => {
    fc.assert(
      fc.property(fc.array(drawn, { maxLength: 25 }), enforcement, (sums, saved) => {
        const summary = summarize(sums, saved);
        const six = [
          summary.recoverableConfirmedPico,
          summary.recoverableReviewPico,
          summary.preventedPico,
          summary.preventableModeledPico,
          summary.unexplainedCriticalPico,
          summary.unexplainedReviewPico,
        ];
        expect(six.every((amount) => amount >= 0n && amount % CENT === 0n)).toBe(true);
        expect(six.reduce((sum, amount) => sum + amount, 0n)).toBe(summary.totalPico);
        let [confirmed, review] = [0n, 0n];
        for (const month of summary.breakdown) {
          confirmed += month.recoverableConfirmedPico;
          review += month.recoverableReviewPico;
          const gross = month.confirmedPico + month.reviewPico - month.underchargedPico;
          const net = month.recoverableConfirmedPico + month.recoverableReviewPico;
          // Never more than the found amount, and less by under a cent for each of the two.
          expect(net).toBeLessThanOrEqual(gross > 0n ? gross : 0n);
          expect(gross - net).toBeLessThan(2n * CENT);
        }
        expect([confirmed, review]).toEqual([
          summary.recoverableConfirmedPico,
          summary.recoverableReviewPico,
        ]);
      }),
      PARAMETERS,
    );
  });

  it('is the same in whichever order findings come', () => {
    const twice = fc
      .array(drawn, { maxLength: 12 })
      .chain((sums) => fc.tuple(fc.constant(sums), fc.shuffledSubarray(sums, { minLength: sums.length })));
    fc.assert(
      fc.property(twice, ([sums, others]) => {
        expect(summarize(others, NOTHING)).toEqual(summarize(sums, NOTHING));
      }),
      PARAMETERS,
    );
  });

  it('is never more by an undercharge, and never less by an overcharge', () => {
    fc.assert(
      fc.property(fc.array(drawn, { maxLength: 12 }), drawn, (sums, one) => {
        const [before, after] = [summarize(sums, NOTHING), summarize([...sums, one], NOTHING)];
        const grows = after.totalPico - before.totalPico;
        expect(one.direction === 'overcharge' ? grows >= 0n : grows <= 0n).toBe(true);
      }),
      PARAMETERS,
    );
  });

  it('takes what was charged too little from what is confirmed first, and the rest from what is to be reviewed', () => {
    const review = over(5n * PICO_PER_USD, { grade: 'LOW' });
    const net = (dollars: bigint) => {
      const { recoverableConfirmedPico, recoverableReviewPico } = summarize(
        [over(3n * PICO_PER_USD), review, under(dollars * PICO_PER_USD)],
        NOTHING,
      );
      return [recoverableConfirmedPico / PICO_PER_USD, recoverableReviewPico / PICO_PER_USD];
    };
    expect([net(0n), net(2n), net(4n), net(9n)]).toEqual([
      [3n, 5n],
      [1n, 5n],
      [0n, 4n],
      [0n, 0n],
    ]);
  });

  it('nets within a provider’s account and month, and nowhere else', () => {
    const elsewhere = [{ provider: 'anthropic' }, { accountId: 'b' }, { month: '2026-02' }];
    for (const place of elsewhere)
      expect(summarize([over(PICO_PER_USD), under(PICO_PER_USD, place)], NOTHING).totalPico).toBe(
        PICO_PER_USD,
      );
    expect(summarize([over(PICO_PER_USD), under(PICO_PER_USD)], NOTHING).totalPico).toBe(0n);
  });

  it('rounds down for each account’s month, and half to even for what is not claimed', () => {
    const almost = 2n * CENT - 1n;
    const summary = summarize([over(almost), over(almost, { month: '2026-02' })], {
      preventedPico: (5n * CENT) / 2n,
      preventableModeledPico: (7n * CENT) / 2n,
    });
    expect(summary).toMatchObject({
      recoverableConfirmedPico: 2n * CENT,
      preventedPico: 2n * CENT,
      preventableModeledPico: 4n * CENT,
    });
    expect(summary.breakdown.map(({ month }) => month)).toEqual(['2026-03', '2026-02']);
  });

  it('counts what is provisional or UNVERIFIED nowhere, also where a person confirmed it', () => {
    for (const isConfirmed of [false, true]) {
      expect(summarize([over(5n, { provisional: true, isConfirmed })], NOTHING)).toMatchObject({
        totalPico: 0n,
        provisionalPico: 5n,
      });
      expect(summarize([over(5n, { grade: 'UNVERIFIED', isConfirmed })], NOTHING)).toMatchObject({
        totalPico: 0n,
        unverifiedPico: 5n,
      });
    }
    const nets = [{ provisional: true }, { grade: 'UNVERIFIED' as const }];
    for (const given of nets)
      expect(summarize([over(PICO_PER_USD), under(PICO_PER_USD, given)], NOTHING).totalPico).toBe(
        PICO_PER_USD,
      );
  });

  it('accepts a person’s confirmation for any grade, and for kinds that are not claimed automatically', () => {
    const given = { grade: 'LOW', claimable: false } as const;
    expect(summarize([over(PICO_PER_USD, given)], NOTHING)).toMatchObject({
      totalPico: 0n,
      notClaimablePico: PICO_PER_USD,
    });
    expect(summarize([over(PICO_PER_USD, { ...given, isConfirmed: true })], NOTHING)).toMatchObject({
      recoverableConfirmedPico: PICO_PER_USD,
    });
  });

  it('keeps what nothing explains apart, by how large it is, and neither nets it nor asks it back', () => {
    const unexplained = {
      isUnexplained: true,
      blame: 'none',
      claimable: false,
      grade: 'UNVERIFIED',
    } as const;
    const summary = summarize(
      [
        over(4n * PICO_PER_USD, { ...unexplained, critical: true, isConfirmed: true }),
        over(3n * PICO_PER_USD, unexplained),
        under(2n * PICO_PER_USD, unexplained),
        over(PICO_PER_USD),
      ],
      NOTHING,
    );
    expect(summary).toMatchObject({
      recoverableConfirmedPico: PICO_PER_USD,
      unexplainedCriticalPico: 4n * PICO_PER_USD,
      unexplainedReviewPico: 3n * PICO_PER_USD,
      unexplainedUnderchargedPico: 2n * PICO_PER_USD,
      totalPico: 8n * PICO_PER_USD,
    });
  });
});
