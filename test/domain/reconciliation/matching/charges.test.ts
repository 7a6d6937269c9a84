import { describe, expect, it } from 'vitest';
import type { PriceBook } from '../../../../domain/pricing/priceBook.js';
import { readPriceFile } from '../../../../domain/pricing/priceFile.js';
import type { Provider } from '../../../../domain/providers.js';
import type { BilledCell, UsageCell } from '../../../../domain/reconciliation/matching/cells.js';
import { chargesOfDay, type DayCharge } from '../../../../domain/reconciliation/matching/charges.js';
import { bookOf, shippedJson } from '../../pricing/support.js';
import { aBilledCell, aUsageCell, BOOK, DAY, tokens, usd } from '../support.js';

/** The shipped list with the rates of one model taken down by a contract. */
function contractOf(model: string, factor: number): PriceBook {
  const list = shippedJson();
  const models = list.models.map((entry) =>
    entry.model !== model
      ? entry
      : {
          ...entry,
          rates: entry.rates.map((period) => ({
            ...scaled(period, factor),
            effective_from: period.effective_from,
            effective_to: period.effective_to,
            batch_multiplier: period.batch_multiplier,
            tiers: period.tiers.map((tier) => ({
              ...scaled(tier, factor),
              above_input_tokens: tier.above_input_tokens,
            })),
          })),
        },
  );
  return bookOf(readPriceFile({ ...list, models } as typeof list));
}

function scaled<T extends Record<string, unknown>>(rates: T, factor: number): T {
  return Object.fromEntries(
    Object.entries(rates).map(([name, value]) => [
      name,
      typeof value === 'number' && name !== 'above_input_tokens'
        ? Number((value * factor).toFixed(6))
        : value,
    ]),
  ) as T;
}

function charges(
  billed: readonly BilledCell[],
  usage: readonly UsageCell[] = [],
  provider: Provider = 'openai',
  agreed: PriceBook = BOOK,
): DayCharge[] {
  return chargesOfDay(provider, DAY, billed, usage, { agreed, list: BOOK });
}

function only(found: readonly DayCharge[]): DayCharge {
  const [first, more] = found;
  if (!first || more) throw new Error(`expected one charge, got ${found.length}`);
  return first;
}

/** A charge for a million tokens of which everything is known. */
const told = (over: Partial<BilledCell>) => aBilledCell({ isBatch: false, ...over });

describe('a charge at the agreed rate', () => {
  it('is as agreed, and its list price is known', () => {
    expect(only(charges([told({})]))).toMatchObject({
      verdict: 'as_agreed',
      billedPico: usd('2'),
      agreedPico: usd('2'),
      listPico: usd('2'),
      agreedRate: usd('2'),
      looksLike: [],
      agreement: 'agree',
    });
  });

  it('is as agreed within the rounding of its rows and less than one part in 2,000', () => {
    const verdict = (amountPico: bigint, roundingPico = 1_000n) =>
      only(charges([told({ amountPico, roundingPico })])).verdict;
    expect([verdict(usd('2.0009')), verdict(usd('2.001'))]).toEqual(['as_agreed', 'differs']);
    expect([verdict(usd('2.01'), usd('0.01')), verdict(usd('1.98'), usd('0.01'))]).toEqual([
      'as_agreed',
      'differs',
    ]);
  });

  it('takes quantity and mixture from the usage report where the bill has none', () => {
    const billed = [told({ model: 'claude-opus-5', isBatch: null, quantity: null, amountPico: usd('7.5') })];
    const usage = [
      aUsageCell({ model: 'claude-opus-5', serviceTier: 'standard' }),
      aUsageCell({ model: 'claude-opus-5', serviceTier: 'standard', isBatch: true }),
    ];
    expect(only(charges(billed, usage, 'anthropic'))).toMatchObject({
      verdict: 'as_agreed',
      quantity: tokens(2_000_000),
      agreedPico: usd('7.5'),
      agreedRate: null,
    });
  });

  it('under a contract has the list price beside it', () => {
    const agreed = contractOf('gpt-6-sol', 0.8);
    expect(only(charges([told({ amountPico: usd('1.6') })], [], 'openai', agreed))).toMatchObject({
      verdict: 'as_agreed',
      agreedPico: usd('1.6'),
      listPico: usd('2'),
      agreedRate: usd('1.6'),
      listRate: usd('2'),
    });
  });
});

describe('a charge at another rate', () => {
  const looks = (over: Partial<BilledCell>, provider: Provider = 'openai', agreed?: PriceBook) => {
    const { verdict, looksLike } = only(charges([told(over)], [], provider, agreed));
    expect(verdict).toBe('differs');
    return looksLike;
  };

  it.each<[string, Partial<BilledCell>, Provider, readonly string[]]>([
    [
      'batch at the full rate',
      { model: 'claude-opus-5', isBatch: true, amountPico: usd('5') },
      'anthropic',
      ['batch_discount_not_applied'],
    ],
    [
      'cache reads at the input rate',
      { tokenClass: 'cache_read', amountPico: usd('2') },
      'openai',
      ['cache_read_rate_mismatch'],
    ],
    [
      '5-minute writes at the 1-hour rate',
      { model: 'claude-opus-5', tokenClass: 'cache_write_5m', amountPico: usd('10') },
      'anthropic',
      ['cache_write_rate_mismatch'],
    ],
    [
      'writes as plain input',
      { model: 'claude-opus-5', tokenClass: 'cache_write_5m', amountPico: usd('5') },
      'anthropic',
      ['cache_write_rate_mismatch'],
    ],
    [
      'global traffic with the uplift of a region',
      { amountPico: usd('2.2') },
      'openai',
      ['region_uplift_misapplied'],
    ],
    ['flex below the standard rate', { amountPico: usd('1') }, 'openai', ['service_tier_rate_misapplied']],
    ['what no rule gives', { amountPico: usd('3.5') }, 'openai', []],
    ['less than agreed', { amountPico: usd('1.7') }, 'openai', []],
    [
      'the price before a change',
      { model: 'grok-4.20', tokenClass: 'output', amountPico: usd('6') },
      'xai',
      ['price_effective_date_mismatch'],
    ],
  ])('matches what yields exactly that amount: %s', (_, over, provider, expected) => {
    expect(looks(over, provider)).toEqual(expected);
  });

  it('names every mistake that yields the amount: twice the input rate is priority and is long context', () => {
    expect(looks({ amountPico: usd('4') })).toEqual([
      'service_tier_rate_misapplied',
      'long_context_rate_misapplied',
    ]);
  });

  it('at list where a contract holds looks like the contract', () => {
    expect(looks({ amountPico: usd('2') }, 'openai', contractOf('gpt-6-sol', 0.8))).toEqual([
      'contract_rate_not_applied',
    ]);
  });

  it('is seen behind a mixture, whose ratio is no rule’s', () => {
    const billed = [aBilledCell({ quantity: tokens(2_000_000), amountPico: usd('4') })];
    const usage = [aUsageCell(), aUsageCell({ isBatch: true })];
    expect(only(charges(billed, usage))).toMatchObject({
      verdict: 'differs',
      agreedPico: usd('3'),
      looksLike: ['batch_discount_not_applied'],
    });
  });
});

describe('a charge that the bill alone does not decide', () => {
  it.each<[string, Partial<BilledCell>, string]>([
    [
      'a fee that no call can show',
      { observable: false, model: null, lineItem: 'file search' },
      'not_observable',
    ],
    ['a label that no grammar knows', { model: null, lineItem: '???' }, 'unparsed_line'],
    ['a model’s charge of no class', { tokenClass: 'other' }, 'unparsed_line'],
    ['a charge by the request', { tokenClass: 'requests' }, 'not_per_token'],
    ['a correction', { amountPico: usd('-1') }, 'negative_amount'],
    ['an amount without a quantity', { quantity: null }, 'no_quantity'],
    ['a model without a price', { model: 'gpt-unheard-of' }, 'no_price'],
    ['a tier without a price', { serviceTier: 'unheard-of' }, 'assumed_rate'],
    ['usage at amount zero', { amountPico: 0n }, 'free_allowance'],
    [
      'less than the full rate while batch is open',
      { isBatch: null, amountPico: usd('1.4') },
      'batch_unknown',
    ],
    [
      'more than the ordinary rate while length is open',
      { longContext: null, amountPico: usd('3') },
      'length_unknown',
    ],
  ])('is not judged, with the reason: %s', (_, over, reason) => {
    expect(only(charges([told(over)]))).toMatchObject({ verdict: reason, looksLike: [] });
  });

  it('is judged after all beyond every mixture', () => {
    const verdict = (over: Partial<BilledCell>) => only(charges([told(over)])).verdict;
    expect(verdict({ isBatch: null, amountPico: usd('0.9') })).toBe('differs');
    expect(verdict({ isBatch: null, amountPico: usd('2.4') })).toBe('differs');
    expect(verdict({ longContext: null, amountPico: usd('4.1') })).toBe('differs');
    expect(verdict({ longContext: null, amountPico: usd('1.9') })).toBe('differs');
  });

  it('is judged after all where it is the list price to the last digit under a contract', () => {
    const agreed = contractOf('gpt-6-sol', 0.8);
    const billed = [told({ longContext: null, amountPico: usd('2') })];
    expect(only(charges(billed, [], 'openai', agreed))).toMatchObject({
      verdict: 'differs',
      looksLike: ['contract_rate_not_applied'],
    });
  });

  it('keeps the list price that the bill itself names', () => {
    const billed = [told({ observable: false, model: null, lineItem: 'hosting', listAmountPico: usd('3') })];
    expect(only(charges(billed))).toMatchObject({ givenListPico: usd('3'), listPico: null });
  });
});

it('accounts are apart, and a line of nothing is no charge', () => {
  const found = charges([
    told({ accountId: 'a' }),
    told({ accountId: 'b', amountPico: usd('4') }),
    told({ accountId: 'c', amountPico: 0n, quantity: null }),
  ]);
  expect(found.map(({ accountId, verdict }) => [accountId, verdict])).toEqual([
    ['a', 'as_agreed'],
    ['b', 'differs'],
  ]);
});
