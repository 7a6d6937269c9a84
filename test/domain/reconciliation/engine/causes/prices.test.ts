import { describe, expect, it } from 'vitest';
import { bookWithOwnPrices, type OwnPrice } from '../../../../../domain/pricing/ownPrices.js';
import { readPriceFile } from '../../../../../domain/pricing/priceFile.js';
import type { Hypothesis, Run } from '../../../../../domain/reconciliation/engine/causes/cause.js';
import { listRate, stalePrice } from '../../../../../domain/reconciliation/engine/causes/otherRates.js';
import {
  contractRate,
  contractTerms,
  priceEffectiveDate,
  promotionalRate,
} from '../../../../../domain/reconciliation/engine/causes/terms.js';

import { aPeriod, bookOf, listOf } from '../../../pricing/support.js';
import { BOOK } from '../../support.js';
import { type Bill, calls, dayOf, expectExplained, lastsAs, lines } from './support.js';

const PLAIN = { input: 3_000_000, output: 500_000 };

describe('dates of prices', () => {
  const TERRA = { model: 'gpt-5.6-terra' } as const;

  it('the price from before a change, and the one from after it', () => {
    const old = dayOf(
      {
        billed: lines(PLAIN, {}, { day: '2026-07-01' }, { ...TERRA, day: '2026-09-10' }),
        observed: [calls(PLAIN, {}, { ...TERRA, day: '2026-09-10' })],
      },
      { ...TERRA, day: '2026-09-10' },
    );
    expectExplained(priceEffectiveDate, old, ['not_yet:2026-07-30']);
    expectExplained(promotionalRate, old, []);
    const early = dayOf(
      {
        billed: lines(PLAIN, {}, { day: '2026-09-10' }, { ...TERRA, day: '2026-07-01' }),
        observed: [calls(PLAIN, {}, { ...TERRA, day: '2026-07-01' })],
      },
      { ...TERRA, day: '2026-07-01' },
    );
    expectExplained(priceEffectiveDate, early, ['too_early:2026-07-30']);
  });

  it('a lower price between two dearer ones is a promotion, and charging the regular price its lack', () => {
    const book = bookOf(
      readPriceFile(
        listOf([
          {
            provider: 'openai',
            model: 'gpt-x',
            rates: [
              aPeriod({ input: 4, output: 8 }, { effective_to: '2026-10-01' }),
              aPeriod({ input: 2, output: 5 }, { effective_from: '2026-10-01', effective_to: '2026-11-01' }),
              aPeriod({ input: 4, output: 8 }, { effective_from: '2026-11-01' }),
            ],
          },
        ]),
      ),
    );
    const bill: Bill = { book, model: 'gpt-x', day: '2026-10-05' };
    const billed = lines(PLAIN, {}, { day: '2026-09-20' }, bill);
    const during = dayOf({ billed, observed: [calls(PLAIN, {}, bill)] }, bill);
    expectExplained(promotionalRate, during, ['regular:before']);
    expectExplained(priceEffectiveDate, during, []);
    const later: Bill = { ...bill, day: '2026-11-05' };
    const after = dayOf(
      { billed: lines(PLAIN, {}, { day: '2026-10-05' }, later), observed: [calls(PLAIN, {}, later)] },
      later,
    );
    expectExplained(priceEffectiveDate, after, ['not_yet:2026-11-01']);
    expectExplained(promotionalRate, after, []);
  });
});

describe('contracts', () => {
  const agreed = (
    percent: bigint,
    effectiveFrom: string,
    effectiveTo: string | null,
    revision: number,
  ): OwnPrice => ({
    id: `00000000-0000-7000-8000-00000000000${revision}`,
    kind: 'contract',
    provider: 'openai',
    model: '*',
    discountPercent: percent * 10n ** 12n,
    rates: null,
    batchMultiplier: null,
    effectiveFrom,
    effectiveTo,
    source: null,
    revision,
    createdAtMicros: 0n,
    createdBy: '',
    endsOn: null,
    endedAtMicros: null,
  });
  const book = bookWithOwnPrices(
    BOOK,
    [agreed(10n, '2026-08-01', '2026-10-01', 1), agreed(15n, '2026-10-01', null, 2)],
    { updatedAtMicros: 0n, contentHash: '00000001' },
  );
  const bill: Bill = { book };
  const observed = [calls(PLAIN)];

  it('the list price under a contract', () => {
    expectExplained(contractRate, dayOf({ billed: lines(PLAIN), observed }, bill), ['list_price']);
  });

  it('the discount taken twice, and the rates of another contract', () => {
    const twice = lines(PLAIN, {}, {}, bill).map((cell) => ({
      ...cell,
      amountPico: (cell.amountPico * 85n) / 100n,
    }));
    expectExplained(contractRate, dayOf({ billed: twice, observed }, bill), ['discount_twice']);
    const former = dayOf({ billed: lines(PLAIN, {}, { day: '2026-09-10' }, bill), observed }, bill);
    expectExplained(contractRate, former, ['other_contract:2026-08-01']);
    expectExplained(priceEffectiveDate, former, []);
  });

  it('one round discount in every class without a contract is terms that we do not know', () => {
    const below = (percent: bigint, scale = 100n) =>
      lines(PLAIN).map((cell) => ({ ...cell, amountPico: (cell.amountPico * (scale - percent)) / scale }));
    expectExplained(contractTerms, dayOf({ billed: below(12n), observed }), ['discount:12']);
    expectExplained(contractTerms, dayOf({ billed: below(125n, 1_000n), observed }), ['discount:12.5']);
    expectExplained(contractTerms, dayOf({ billed: below(1_234n, 10_000n), observed }), []);
    const [input, output] = below(12n);
    if (!input || !output) throw new Error('two lines');
    const [right] = lines({ output: PLAIN.output });
    expectExplained(contractTerms, dayOf({ billed: [input, right ?? output], observed }), []);
  });
});

describe('rates that match no known mistake', () => {
  const context = { firstDay: '2026-08-01', lastDay: '2026-10-31' };
  const odd = lines(PLAIN).map((cell) => ({ ...cell, amountPico: (cell.amountPico * 113n) / 100n }));
  const observed = [calls(PLAIN)];

  it('a deviation that comes and ends is the bill’s, one that lasts may be our price’s', () => {
    const world = dayOf({ billed: odd, observed });
    expectExplained(listRate, world, ['ratio:1.130']);
    expectExplained(stalePrice, world, ['ratio:1.130']);
    const fits = (hypothesis: Hypothesis, run: Run) =>
      lastsAs(hypothesis, 'ratio:1.130', world, run, context);
    const inside = { firstDay: '2026-09-01', lastDay: '2026-09-09' };
    const lasting = { firstDay: '2026-09-01', lastDay: '2026-10-31' };
    expect(fits(listRate, inside)).toBe(true);
    expect(fits(stalePrice, inside)).toBe(false);
    expect(fits(listRate, lasting)).toBe(false);
    expect(fits(stalePrice, lasting)).toBe(true);
  });

  it('one class alone is named', () => {
    const [input, output] = lines(PLAIN);
    if (!input || !output) throw new Error('two lines');
    const billed = [input, { ...output, amountPico: (output.amountPico * 113n) / 100n }];
    expectExplained(listRate, dayOf({ billed, observed }), ['class:output at 1.130']);
  });

  it('one price source alone blames neither side', () => {
    const book = bookOf(
      readPriceFile(listOf([{ provider: 'openai', model: 'gpt-x', agreement: 'single_source' }])),
    );
    const bill: Bill = { book, model: 'gpt-x' };
    const billed = lines(PLAIN, {}, {}, bill).map((cell) => ({
      ...cell,
      amountPico: (cell.amountPico * 113n) / 100n,
    }));
    const world = dayOf({ billed, observed: [calls(PLAIN, {}, bill)] }, bill);
    expectExplained(listRate, world, []);
    expectExplained(stalePrice, world, ['unsure_ratio:1.130']);
  });

  it('rates that one of the disagreeing sources lists are our list’s fault', () => {
    const book = bookOf(
      readPriceFile(
        listOf([
          {
            provider: 'openai',
            model: 'gpt-x',
            agreement: 'disagree',
            rates: [aPeriod({ input: 2, output: 5 })],
            sources: { litellm: { input: 2, output: 5 }, models_dev: { input: 3, output: 9 } },
          },
        ]),
      ),
    );
    const bill: Bill = { book, model: 'gpt-x' };
    const billed = lines(PLAIN, {}, {}, bill).map((cell) => ({
      ...cell,
      amountPico: cell.tokenClass === 'input' ? 9_000_000_000_000n : 4_500_000_000_000n,
    }));
    const world = dayOf({ billed, observed: [calls(PLAIN, {}, bill)] }, bill);
    expectExplained(stalePrice, world, ['source:models_dev']);
  });
});
