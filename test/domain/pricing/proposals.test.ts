import { describe, expect, it } from 'vitest';
import { microsOfDay } from '../../../domain/period.js';
import type { ListedModel } from '../../../domain/pricing/imports/collection.js';
import { compareCollection } from '../../../domain/pricing/imports/differences.js';
import { layBook } from '../../../domain/pricing/layBook.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { RATE_CLASSES, type Rates } from '../../../domain/pricing/pricedModel.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import {
  bookWithProposals,
  boundariesOf,
  type CallTotals,
  effectsOf,
  isStillPresent,
  proposedPrices,
  termsOverPresent,
} from '../../../domain/pricing/proposals.js';
import { aPeriod, bookOf, listOf } from './support.js';

const USD = 1_000_000_000_000n;
const DAY = '2027-01-01';
const AT = microsOfDay(DAY);

const ratesOf = (given: Partial<Rates>): Rates =>
  Object.fromEntries(RATE_CLASSES.map((name) => [name, given[name] ?? null])) as Rates;

const aListed = (model: string, rates: Partial<Rates>, more: Partial<ListedModel> = {}): ListedModel => ({
  ...{ provider: 'openai', model, key: model, region: null, tiers: [], mode: 'chat', contextWindow: null },
  rates: ratesOf(rates),
  ...more,
});

const BOOK = bookOf(
  readPriceFile(listOf([{ provider: 'openai', model: 'm', rates: [aPeriod({ input: 2, output: 8 })] }])),
);

function proposalsOf(models: ListedModel[], book: PriceBook = BOOK) {
  const collection = { source: 'litellm' as const, models, otherEntries: 0 };
  const differences = compareCollection(collection, book, {
    ...{ day: DAY, retrievedOn: DAY, provider: undefined },
    knownAsOf: () => undefined,
  });
  return proposedPrices('litellm', differences, book).map((one, index) => ({ ...one, id: `p${index}` }));
}

const someCalls = (more: Partial<CallTotals> = {}): CallTotals => ({
  ...{ billedBy: 'openai', model: 'm', requestedModel: 'm', serviceTier: null, isBatch: false },
  ...{ aboveTokens: 0, calls: 2 },
  tokens: {
    input: 1_000_000n,
    cache_read: 0n,
    cache_write_5m: 0n,
    cache_write_1h: 0n,
    output: 500_000n,
    input_audio: 0n,
    output_audio: 0n,
  },
  ...more,
});

function effectOf(proposals: ReturnType<typeof proposalsOf>, totals: CallTotals[], book = BOOK) {
  const after = bookWithProposals(book, proposals, { day: DAY, micros: AT });
  const ids = new Set(proposals.map(({ id }) => id));
  return effectsOf(totals, { before: book, after, ids }, AT).get('p0');
}

describe('prices that a feed proposes', () => {
  it('are the rates that differ and that an override can hold', () => {
    const proposals = proposalsOf([
      aListed('m', { input: 3n * USD, output: 8n * USD, input_audio: 9n * USD }),
    ]);
    expect(proposals).toMatchObject([
      {
        kind: 'changed',
        rates: [{ tier: 'standard', rateClass: 'input', before: 2n * USD, after: 3n * USD }],
        terms: { rates: { input: 3n * USD }, tiers: [], batchMultiplier: null },
      },
    ]);
    expect(proposalsOf([aListed('m', { input: 2n * USD, output: 8n * USD, input_audio: 9n * USD })])).toEqual(
      [],
    );
  });

  it('leave out a new id without both main rates', () => {
    expect(proposalsOf([aListed('n', { input: 3n * USD })])).toEqual([]);
    expect(proposalsOf([aListed('n', { input: 3n * USD, output: 4n * USD })])).toMatchObject([
      { kind: 'new' },
    ]);
  });
});

describe('the effect of a proposal', () => {
  it('is the exact cost of the calls at present and at proposed rates, half for batch', () => {
    const proposals = proposalsOf([aListed('m', { input: 3n * USD, output: 8n * USD })]);
    expect(effectOf(proposals, [someCalls(), someCalls({ isBatch: true, calls: 1 })])).toEqual({
      calls: 3,
      currentPico: 9n * USD,
      proposedPico: (21n * USD) / 2n,
    });
  });

  it('has no present cost where calls have no price, which is not zero', () => {
    const proposals = proposalsOf([aListed('n', { input: 3n * USD, output: 4n * USD })]);
    const calls = someCalls({ model: 'n', requestedModel: 'n' });
    expect(effectOf(proposals, [calls])).toEqual({ calls: 2, currentPico: null, proposedPico: 5n * USD });
    expect(effectOf(proposals, [someCalls()])).toEqual({ calls: 0, currentPico: 0n, proposedPico: 0n });
  });

  it('prices long requests by a boundary that only the proposal has', () => {
    const long = { serviceTier: null, aboveInputTokens: 200_000, checkedOn: null };
    const tiers = [{ ...long, rates: ratesOf({ input: 4n * USD, output: 16n * USD }) }];
    const proposals = proposalsOf([aListed('m', { input: 2n * USD, output: 8n * USD }, { tiers })]);
    const after = bookWithProposals(BOOK, proposals, { day: DAY, micros: AT });
    expect(boundariesOf([BOOK, after])).toEqual([200_000]);
    expect(effectOf(proposals, [someCalls(), someCalls({ aboveTokens: 200_000 })])).toMatchObject({
      currentPico: 12n * USD,
      proposedPico: 18n * USD,
    });
  });
});

describe('applying a proposal', () => {
  const override = {
    ...{
      id: 'own',
      kind: 'override' as const,
      provider: 'openai' as const,
      model: 'm',
      toDay: null,
      order: 1,
    },
    ...{ terms: { rates: { output: 9n * USD } }, fromDay: '2020-01-01' },
    ...{ sourceName: 'override', recordedAtMicros: 0n, proof: null },
  };

  it('keeps the rates of the present override that it does not change, since only the latest one holds', () => {
    const book = layBook(BOOK, [override], BOOK.state);
    const [proposal] = proposalsOf([aListed('m', { input: 3n * USD, output: 9n * USD })], book);
    expect(proposal?.terms.rates).toEqual({ input: 3n * USD });
    expect(proposal && termsOverPresent(book, proposal, AT).rates).toEqual({
      input: 3n * USD,
      output: 9n * USD,
    });
  });

  it('is refused once a compared rate is another one', () => {
    const [proposal] = proposalsOf([aListed('m', { input: 2n * USD, output: 10n * USD })]);
    expect(proposal && isStillPresent(BOOK, proposal, AT)).toBe(true);
    const book = layBook(BOOK, [override], BOOK.state);
    expect(proposal && isStillPresent(book, proposal, AT)).toBe(false);
  });
});
