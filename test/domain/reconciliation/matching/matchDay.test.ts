import { describe, expect, it } from 'vitest';
import { MICROS_PER_DAY } from '../../../../domain/period.js';
import type { DayInput } from '../../../../domain/reconciliation/matching/cells.js';
import { matchDay } from '../../../../domain/reconciliation/matching/matchDay.js';
import {
  ACCOUNT,
  aBilledCell,
  aCoveredAccount,
  aDay,
  anObservedCell,
  aUsageCell,
  BOOK,
  DAY_MICROS,
  HOUR,
  NOW,
  theBucket,
  tokens,
  usd,
} from '../support.js';

const match = (over: Partial<DayInput> = {}, provider: 'openai' | 'anthropic' = 'openai') =>
  matchDay(BOOK, provider, aDay(over));
const bucket = (over: Partial<DayInput> = {}, provider: 'openai' | 'anthropic' = 'openai') =>
  theBucket(match(over, provider).buckets);

describe('a day on which bill and calls are equal', () => {
  it('is matched with HIGH confidence, nothing is left over and every part of the gap is zero', () => {
    expect(bucket()).toMatchObject({
      model: 'gpt-6-sol',
      matchStatus: 'matched',
      grade: 'HIGH',
      visibility: 'V2',
      flagged: false,
      reason: null,
      providerCostPico: usd('2'),
      ourCostPico: usd('2'),
      matchedPico: usd('2'),
      ratePico: 0n,
      volumePico: 0n,
      ownPricingPico: 0n,
    });
  });

  it('shows its score by a waterfall of bits that sum to it', () => {
    const { waterfall, confidenceScore } = bucket();
    expect(waterfall.map(({ signal }) => signal)).toEqual([
      'prior',
      'time',
      'model',
      'scope',
      'quantities',
      'calls',
      'rate',
      'total',
      'invoice',
    ]);
    const bits = waterfall.reduce((sum, step) => sum + step.bits, 0);
    expect(confidenceScore).toBe(1 / (1 + 2 ** -bits));
  });

  it('is UNVERIFIED while the provider may still restate it, and after, while the copy is from that time', () => {
    expect(bucket({ nowMicros: DAY_MICROS + MICROS_PER_DAY })).toMatchObject({
      provisional: true,
      grade: 'UNVERIFIED',
      matchStatus: 'matched',
    });
    const early = aCoveredAccount({ fetchedAtMicros: DAY_MICROS + MICROS_PER_DAY });
    expect(bucket({ covered: [early] })).toMatchObject({ provisional: true, grade: 'UNVERIFIED' });
    expect(
      bucket({
        nowMicros: DAY_MICROS + 2n * MICROS_PER_DAY,
        covered: [aCoveredAccount({ fetchedAtMicros: DAY_MICROS + 2n * MICROS_PER_DAY })],
      }).provisional,
    ).toBe(false);
  });

  it.each([
    ['amounts without quantities', { quantity: null }, 'V1', 'MEDIUM'],
    ['an amount for the model alone', { quantity: null, tokenClass: 'other' as const }, 'V0', 'LOW'],
  ])('with %s is never surer than its visibility', (_, over, visibility, grade) => {
    expect(bucket({ billed: [aBilledCell(over)] })).toMatchObject({
      matchStatus: 'matched',
      visibility,
      grade,
      ratePico: null,
      volumePico: null,
    });
  });

  it('with a call whose rate is assumed, or without usage, is never HIGH', () => {
    expect(bucket({ observed: [anObservedCell({ priceGaps: 1 })] }).grade).toBe('MEDIUM');
    expect(bucket({ observed: [anObservedCell({ unmetered: 1 })] }).grade).toBe('MEDIUM');
  });
});

describe('a day with calls that we did not see', () => {
  const halfSeen = {
    observed: [anObservedCell({ tokens: { input: 600_000n }, computedCostPico: usd('1.2') })],
    billed: [aBilledCell({ quantity: tokens(1_500_000), amountPico: usd('3') })],
  };

  it('is a volume gap, and what is explained counts at its grade', () => {
    expect(bucket(halfSeen)).toMatchObject({
      matchStatus: 'partial',
      flagged: true,
      ratePico: 0n,
      volumePico: usd('1.8'),
      ownPricingPico: 0n,
      matchedPico: usd('1.2'),
    });
  });

  it('is flagged from the larger of a dollar and 2 % of the billed amount', () => {
    const of = (billed: string, ours: string) =>
      bucket({
        billed: [aBilledCell({ amountPico: usd(billed), quantity: null })],
        observed: [anObservedCell({ computedCostPico: usd(ours) })],
      });
    expect(of('10', '9.01')).toMatchObject({ matchStatus: 'partial', flagged: false });
    expect(of('10', '9')).toMatchObject({ matchStatus: 'partial', flagged: true });
    expect(of('200', '196.01').flagged).toBe(false);
    expect(of('200', '196').flagged).toBe(true);
    expect(of('200', '204').flagged).toBe(true);
  });

  it('is equal within a cent, the rows’ rounding or 0.1 %', () => {
    const of = (billed: string, ours: string) =>
      bucket({
        billed: [aBilledCell({ amountPico: usd(billed) })],
        observed: [anObservedCell({ computedCostPico: usd(ours) })],
      }).matchStatus;
    expect(of('2', '1.99')).toBe('matched');
    expect(of('2', '1.989')).toBe('partial');
    expect(of('100', '99.9')).toBe('matched');
    expect(of('100', '99.89')).toBe('partial');
  });

  it('before its first event is not flagged, and states that', () => {
    expect(bucket({ ...halfSeen, observedSince: new Map([[ACCOUNT, DAY_MICROS + HOUR]]) })).toMatchObject({
      flagged: false,
      reason: 'not_yet_observed',
    });
    expect(bucket({ observed: [], observedSince: new Map() })).toMatchObject({
      matchStatus: 'unmatched',
      flagged: false,
      reason: 'not_yet_observed',
      confidenceScore: null,
    });
  });

  it('without any call of ours is unmatched and flagged', () => {
    expect(bucket({ observed: [] })).toMatchObject({
      matchStatus: 'unmatched',
      grade: 'UNVERIFIED',
      flagged: true,
      matchedPico: 0n,
      confidenceScore: null,
      gapMinutes: null,
    });
  });

  it('while provisional is not flagged', () => {
    expect(bucket({ ...halfSeen, nowMicros: DAY_MICROS + MICROS_PER_DAY }).flagged).toBe(false);
  });
});

describe('a wrong rate', () => {
  const wrong = { billed: [aBilledCell({ amountPico: usd('3.5') })], usage: [aUsageCell()] };

  it('is a rate gap of exactly amount − quantity × list', () => {
    expect(bucket(wrong)).toMatchObject({
      matchStatus: 'partial',
      flagged: true,
      ratePico: usd('1.5'),
      volumePico: 0n,
      ownPricingPico: 0n,
      matchedPico: usd('2'),
    });
  });

  it('is reported from the bill alone, before the first call was seen', () => {
    const { rateMismatches } = match({ ...wrong, observed: [], observedSince: new Map() });
    expect(rateMismatches).toMatchObject([
      {
        model: 'gpt-6-sol',
        tokenClass: 'input',
        billedPico: usd('3.5'),
        expectedPico: usd('2'),
        billedRate: usd('3.5'),
        listRate: usd('2'),
        agreement: 'agree',
        disputed: false,
      },
    ]);
    expect(rateMismatches[0]?.priceSource).not.toBe('');
  });

  it('within the rounding of the rows blames neither side', () => {
    const of = (excess: bigint) =>
      match({
        billed: [aBilledCell({ amountPico: usd('2') + excess, roundingPico: usd('0.01') })],
        usage: [aUsageCell()],
      }).rateMismatches.length;
    expect([of(usd('0.01') + 1n), of(usd('-0.01') - 1n)]).toEqual([0, 0]);
    expect([of(usd('0.01') + 2n), of(usd('-0.01') - 2n)]).toEqual([1, 1]);
  });

  it('of less than one part in 2,000 is noise of the bill, since no price rule is that small', () => {
    const of = (amountPico: bigint) =>
      match({ billed: [aBilledCell({ amountPico })], usage: [aUsageCell()] }).rateMismatches.length;
    expect([of(usd('2.0009')), of(usd('2.001'))]).toEqual([0, 1]);
  });

  it('below list blames neither side where the bill leaves batch open and no usage report decides', () => {
    expect(match({ billed: [aBilledCell({ amountPico: usd('1.4') })], observed: [] }).rateMismatches).toEqual(
      [],
    );
    expect(
      match({ billed: [aBilledCell({ amountPico: usd('2.4') })], observed: [] }).rateMismatches,
    ).toHaveLength(1);
  });

  it('of a model without a price, or of nothing, is not asserted', () => {
    expect(
      match({
        billed: [aBilledCell({ model: 'gpt-unheard-of' })],
        usage: [aUsageCell({ model: 'gpt-unheard-of' })],
      }).rateMismatches,
    ).toEqual([]);
    expect(
      match({ billed: [aBilledCell({ amountPico: 0n })], usage: [aUsageCell()] }).rateMismatches,
    ).toEqual([]);
  });
});

describe('batch and tiers inside one billed line', () => {
  const mixed = aBilledCell({ quantity: tokens(2_000_000), amountPico: usd('3') });
  const seen = [
    anObservedCell({ tokens: { input: 1_000_000n } }),
    anObservedCell({ isBatch: true, tokens: { input: 1_000_000n }, computedCostPico: usd('1') }),
  ];

  it('are split by the provider’s usage report', () => {
    const usage = [aUsageCell(), aUsageCell({ isBatch: true })];
    expect(bucket({ billed: [mixed], usage, observed: seen })).toMatchObject({
      matchStatus: 'matched',
      ratePico: 0n,
      volumePico: 0n,
      lines: [{ split: 'usage_report' }],
    });
  });

  it('are split by the observed mix where the usage report disagrees with the bill, and the result states it', () => {
    const usage = [aUsageCell({ quantity: tokens(5) })];
    const result = match({ billed: [mixed], usage, observed: seen });
    expect(theBucket(result.buckets)).toMatchObject({ ratePico: 0n, lines: [{ split: 'observed_mix' }] });
    expect(result.rateMismatches).toEqual([]);
  });

  it('are the standard ones by default', () => {
    expect(bucket()).toMatchObject({ lines: [{ split: 'bill' }] });
  });

  it('are expected at the provider’s own batch rate, and our half price shows as own pricing', () => {
    // grok-4.20's list has batch at 0.8 of standard in the price data; cost_usd is half by the specification
    const billed = [
      aBilledCell({ model: 'grok-4.20', isBatch: true, quantity: tokens(1_000_000), amountPico: usd('1') }),
    ];
    const result = theBucket(
      matchDay(
        BOOK,
        'xai',
        aDay({
          billed,
          observed: [anObservedCell({ model: 'grok-4.20', isBatch: true, computedCostPico: usd('0.625') })],
        }),
      ).buckets,
    );
    expect(result).toMatchObject({ ratePico: 0n, volumePico: 0n, ownPricingPico: usd('0.375') });
  });

  it('priority has a line and a rate of its own', () => {
    const billed = [
      aBilledCell(),
      aBilledCell({ serviceTier: 'priority', isBatch: false, amountPico: usd('4') }),
    ];
    const usage = [aUsageCell(), aUsageCell({ serviceTier: 'priority' })];
    const result = match({
      billed,
      usage,
      observed: [anObservedCell(), anObservedCell({ serviceTier: 'priority', computedCostPico: usd('4') })],
    });
    expect(theBucket(result.buckets)).toMatchObject({ matchStatus: 'matched', ratePico: 0n, volumePico: 0n });
    expect(result.rateMismatches).toEqual([]);
  });

  it('long context has a line and a rate of its own, with one kind of usage', () => {
    const billed = [aBilledCell(), aBilledCell({ longContext: true, amountPico: usd('4') })];
    const observed = [anObservedCell(), anObservedCell({ contextBand: 272_000, computedCostPico: usd('4') })];
    const result = match({ billed, usage: [aUsageCell({ quantity: tokens(2_000_000) })], observed });
    expect(theBucket(result.buckets)).toMatchObject({
      matchStatus: 'matched',
      ratePico: 0n,
      volumePico: 0n,
      lines: [{ split: 'usage_report' }],
    });
  });
});

describe('a cost report without quantities joined with a usage report', () => {
  const cost = aBilledCell({
    model: 'claude-opus-5',
    isBatch: false,
    quantity: null,
    amountPico: usd('5'),
    roundingPico: 50_000n,
  });
  const usage = aUsageCell({ model: 'claude-opus-5', serviceTier: 'standard', longContext: false });
  const observed = anObservedCell({ model: 'claude-opus-5', computedCostPico: usd('5') });

  it('counts as quantity and amount (V2) and can be HIGH', () => {
    expect(bucket({ billed: [cost], usage: [usage], observed: [observed] }, 'anthropic')).toMatchObject({
      visibility: 'V2',
      grade: 'HIGH',
      ratePico: 0n,
    });
  });

  it('prices inference in one country by its factor', () => {
    const us = { region: 'us' };
    const result = match(
      {
        billed: [{ ...cost, ...us, amountPico: usd('5.5') }],
        usage: [{ ...usage, ...us }],
        observed: [observed],
      },
      'anthropic',
    );
    expect(theBucket(result.buckets)).toMatchObject({
      ratePico: 0n,
      volumePico: 0n,
      ownPricingPico: usd('0.5'),
    });
    expect(result.rateMismatches).toEqual([]);
  });

  it('does not see what was bought ahead: priority calls are a line of their own, never flagged', () => {
    const priority = anObservedCell({
      model: 'claude-opus-5',
      serviceTier: 'priority',
      computedCostPico: usd('50'),
    });
    const result = match({ billed: [cost], usage: [usage], observed: [observed, priority] }, 'anthropic');
    expect(result.buckets).toHaveLength(2);
    expect(result.buckets.find(({ model }) => model === 'claude-opus-5 (priority tier)')).toMatchObject({
      flagged: false,
      reason: 'not_in_cost_report',
      providerCostPico: 0n,
    });
  });
});

describe('one model under several names', () => {
  const observedAs = (model: string) =>
    bucket({
      billed: [aBilledCell({ model: 'gpt-5-2025-08-07', amountPico: usd('1.25') })],
      observed: [anObservedCell({ model, computedCostPico: usd('1.25') })],
    });
  const levelOf = (model: string) =>
    observedAs(model).waterfall.find(({ signal }) => signal === 'model')?.level;

  it('is linked by the id itself before an alias', () => {
    expect(levelOf('gpt-5-2025-08-07')).toBe('exact');
    expect(levelOf('gpt-5')).toBe('alias');
  });

  it('is linked by its family only where one entry is left on each side', () => {
    const billed = [aBilledCell({ model: 'gpt-4o-2024-05-13', amountPico: usd('5') })];
    const seen = (model: string) => anObservedCell({ model, computedCostPico: usd('2.5') });
    expect(
      bucket({ billed, observed: [seen('gpt-4o')] }).waterfall.find(({ signal }) => signal === 'model')
        ?.level,
    ).toBe('family_other_price');
    const ambiguous = match({
      billed: [...billed, aBilledCell({ model: 'gpt-4o-2024-02-02' })],
      observed: [seen('gpt-4o')],
    });
    expect(ambiguous.buckets.map(({ matchStatus }) => matchStatus)).toEqual([
      'unmatched',
      'unmatched',
      'unmatched',
    ]);
  });

  it('two names of which both sides have both stay apart by their price', () => {
    const billed = [
      aBilledCell({ model: 'gpt-4o-2024-05-13', amountPico: usd('5') }),
      aBilledCell({ model: 'gpt-4o-2024-11-20', amountPico: usd('2.5') }),
    ];
    const observed = [
      anObservedCell({ model: 'gpt-4o-2024-05-13', computedCostPico: usd('5') }),
      anObservedCell({ model: 'gpt-4o', computedCostPico: usd('2.5') }),
    ];
    expect(match({ billed, observed }).buckets.map(({ model, matchStatus }) => [model, matchStatus])).toEqual(
      [
        ['gpt-4o-2024-05-13', 'matched'],
        ['gpt-4o', 'matched'],
      ],
    );
  });

  it('calls that name no inference profile are divided among the profiles as the bill is, beyond calls that name theirs', () => {
    const [global, us, plain] = ['global.', 'us.', ''].map((profile) => `${profile}anthropic.claude-opus-5`);
    const line = (model: string | undefined, count: number) =>
      aBilledCell({ model: model ?? '', isBatch: false, quantity: tokens(count), amountPico: usd('1') });
    const seen = (model: string | undefined, count: bigint, calls: number) =>
      anObservedCell({ model: model ?? '', calls, tokens: { input: count }, computedCostPico: usd('1') });
    const { buckets } = matchDay(
      BOOK,
      'aws_bedrock',
      aDay({
        billed: [line(global, 700_000), line(us, 300_001)],
        observed: [seen(global, 100_000n, 1), seen(plain, 900_001n, 9)],
      }),
    );
    expect(
      buckets.map(({ model, eventCount, lines }) => [model, eventCount, lines[0]?.observedQuantity]),
    ).toEqual([
      [global, 7, tokens(700_000)],
      [us, 3, tokens(300_001)],
    ]);
    expect(
      buckets.flatMap(({ waterfall }) => waterfall.filter(({ signal }) => signal === 'model')),
    ).toMatchObject([{ level: 'alias' }, { level: 'alias' }]);
    expect(buckets.reduce((sum, one) => sum + one.ourCostPico, 0n)).toBe(usd('2'));
    // Amounts alone would divide them by the prices that are in question.
    const amounts = [line(global, 700_000), line(us, 300_001)].map((one) => ({ ...one, quantity: null }));
    const observed = [seen(plain, 1_000_001n, 10)];
    const apart = matchDay(BOOK, 'aws_bedrock', aDay({ billed: amounts, observed })).buckets;
    expect(apart.map(({ eventCount }) => eventCount)).toEqual([0, 0, 10]);
  });

  it('without a price is unpriced, not free', () => {
    const result = bucket({
      billed: [aBilledCell({ model: 'gpt-unheard-of' })],
      observed: [anObservedCell({ model: 'gpt-unheard-of', computedCostPico: 0n, unpriced: 10 })],
    });
    expect(result).toMatchObject({
      matchStatus: 'partial',
      reason: 'unpriced',
      flagged: true,
      ratePico: null,
      ownPricingPico: null,
      matchedPico: 0n,
    });
  });
});

describe('accounts', () => {
  const other = { accountId: 'other' };
  const two = [aCoveredAccount(), aCoveredAccount(other)];

  it('are compared each by itself', () => {
    const result = match({
      covered: two,
      billed: [aBilledCell(), aBilledCell({ ...other, amountPico: usd('9') })],
      observed: [anObservedCell(), anObservedCell({ ...other, computedCostPico: usd('9') })],
    });
    expect(result.buckets.map(({ accountId, matchStatus }) => [accountId, matchStatus])).toEqual([
      [ACCOUNT, 'matched'],
      ['other', 'matched'],
    ]);
  });

  it('calls without one are the only known account’s, at full confidence', () => {
    expect(
      bucket({ observed: [anObservedCell({ accountId: '' })], observedSince: new Map([['', 0n]]) }),
    ).toMatchObject({ accountId: ACCOUNT, matchStatus: 'matched', grade: 'HIGH' });
  });

  it('calls without one are compared with the sum over all, never HIGH', () => {
    const result = match({
      covered: two,
      billed: [aBilledCell(), aBilledCell(other)],
      observed: [anObservedCell({ accountId: '' }), anObservedCell()],
      observedSince: new Map([['', 0n]]),
    });
    expect(theBucket(result.buckets)).toMatchObject({
      accountId: '',
      matchStatus: 'matched',
      grade: 'MEDIUM',
      providerCostPico: usd('4'),
      ourCostPico: usd('4'),
    });
  });

  it('are compared while the account of the bill is unknown and the calls name one account', () => {
    const billed = [aBilledCell({ accountId: 'default' })];
    const covered = [aCoveredAccount({ accountId: 'default' })];
    const half = { tokens: { input: 500_000n }, computedCostPico: usd('1') };
    const one = [anObservedCell({ accountId: 'org-1' })];
    const several = [
      anObservedCell({ accountId: 'org-1', ...half }),
      anObservedCell({ accountId: 'org-2', ...half }),
    ];
    const since = new Map([['org-1', 0n]]);
    expect(bucket({ billed, covered, observed: one, observedSince: since })).toMatchObject({
      accountId: 'default',
      matchStatus: 'matched',
      grade: 'HIGH',
    });
    expect(bucket({ billed, covered, observed: several, observedSince: since })).toMatchObject({
      matchStatus: 'matched',
      grade: 'MEDIUM',
    });
  });

  it('that the bill does not cover are not compared with it', () => {
    expect(
      match({ observed: [anObservedCell(), anObservedCell({ accountId: 'elsewhere' })] }).buckets,
    ).toHaveLength(1);
  });
});

describe('charges that no call can show', () => {
  it('is a line of its own, unmatched and never flagged', () => {
    const fee = aBilledCell({
      model: null,
      lineItem: 'web search tool calls',
      tokenClass: 'other',
      observable: false,
      quantity: null,
      amountPico: usd('40'),
    });
    expect(match({ billed: [aBilledCell(), fee] }).buckets[1]).toMatchObject({
      model: 'web search tool calls',
      matchStatus: 'unmatched',
      flagged: false,
      reason: 'not_observable',
      matchedPico: 0n,
    });
  });

  it('and charges of unknown meaning are distinguished: the second kind is flagged', () => {
    const odd = aBilledCell({
      model: null,
      lineItem: 'Quantum flux',
      tokenClass: 'other',
      quantity: null,
      amountPico: usd('40'),
    });
    expect(match({ billed: [aBilledCell(), odd] }).buckets[1]).toMatchObject({
      model: 'Quantum flux',
      flagged: true,
      reason: 'unparsed_line',
      grade: 'UNVERIFIED',
    });
  });

  it('a label that reads like a model does not collide with it', () => {
    const odd = aBilledCell({ model: null, lineItem: 'gpt-6-sol', tokenClass: 'other', quantity: null });
    expect(
      match({ billed: [odd, aBilledCell()] })
        .buckets.map(({ model }) => model)
        .sort(),
    ).toEqual(['gpt-6-sol', 'gpt-6-sol (2)']);
  });

  it('usage at amount zero is a free allowance, not a discount and not a gap', () => {
    const result = match({ billed: [aBilledCell({ amountPico: 0n })], usage: [aUsageCell()] });
    expect(theBucket(result.buckets)).toMatchObject({ reason: 'free_allowance', flagged: false });
    expect(result.rateMismatches).toEqual([]);
  });

  it('calls without a bill are a bucket too', () => {
    expect(bucket({ billed: [] })).toMatchObject({
      matchStatus: 'unmatched',
      reason: 'unbilled',
      providerCostPico: 0n,
      ourCostPico: usd('2'),
      flagged: true,
    });
  });
});

describe('hours', () => {
  const usage = [0n, 1n, 2n, 3n].map((hour) =>
    aUsageCell({ hourMicros: DAY_MICROS + hour * HOUR, quantity: tokens(250_000) }),
  );
  const observed = [0n, 1n, 3n].map((hour) =>
    anObservedCell({
      hourMicros: DAY_MICROS + hour * HOUR,
      tokens: { input: 250_000n },
      computedCostPico: usd('0.5'),
    }),
  );

  it('without an event of ours are counted in minutes', () => {
    expect(bucket({ usage, observed })).toMatchObject({ unobservedMinutes: 60, gapMinutes: 10 });
    expect(bucket({ observed })).toMatchObject({ unobservedMinutes: null, gapMinutes: null });
  });

  it('carry the day’s dollars in proportion to usage, to the pico-dollar, and are never surer than MEDIUM', () => {
    const { buckets } = match({
      usage,
      observed,
      withHours: true,
      billed: [aBilledCell({ amountPico: usd('2') + 3n })],
    });
    const hours = buckets.filter(({ width }) => width === 'hour');
    expect(hours.map(({ matchStatus }) => matchStatus)).toEqual([
      'matched',
      'matched',
      'unmatched',
      'matched',
    ]);
    expect(hours.reduce((sum, hour) => sum + hour.providerCostPico, 0n)).toBe(usd('2') + 3n);
    expect(hours.map(({ grade }) => grade)).toEqual(['MEDIUM', 'MEDIUM', 'UNVERIFIED', 'MEDIUM']);
  });

  it('are left out where the report counts whole days', () => {
    expect(match({ usage: [aUsageCell()], withHours: true }).buckets).toHaveLength(1);
  });
});

describe('the same input', () => {
  it('yields the same result', () => {
    const input = aDay({ nowMicros: NOW, usage: [aUsageCell()] });
    expect(matchDay(BOOK, 'openai', input)).toEqual(matchDay(BOOK, 'openai', input));
  });
});
