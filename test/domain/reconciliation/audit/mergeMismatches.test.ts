import { describe, expect, it } from 'vitest';
import {
  mergeMismatches,
  type StoredMismatch,
} from '../../../../domain/reconciliation/audit/mergeMismatches.js';

const E12 = 10n ** 12n;

function aMismatch(day: string, over: Partial<StoredMismatch> = {}): StoredMismatch {
  return {
    day,
    accountId: 'acct',
    model: 'claude-opus-5',
    tokenClass: 'output',
    serviceTier: 'standard',
    isBatch: false,
    longContext: false,
    region: null,
    quantity: String(1_000_000n * E12),
    billedPico: String(30n * E12),
    expectedPico: String(25n * E12),
    billedRate: String(30n * E12),
    listRate: String(25n * E12),
    priceSource: 'litellm',
    agreement: 'agree',
    disputed: false,
    ...over,
  };
}

const unit = (day: string, ...rateMismatches: StoredMismatch[]) => ({
  provider: 'anthropic',
  day,
  rateMismatches,
});

describe('rate mismatches of a run', () => {
  it('of consecutive days are one, with the exact sum', () => {
    const merged = mergeMismatches(
      ['2026-10-31', '2026-11-01', '2026-11-02'].map((day) => unit(day, aMismatch(day))),
    );
    expect(merged).toMatchObject([
      {
        first_day: '2026-10-31',
        last_day: '2026-11-02',
        days: 3,
        quantity: '3000000',
        billed_usd: '90',
        expected_usd: '75',
        excess_usd: '15',
        billed_rate: '30',
        list_rate: '25',
      },
    ]);
  });

  it('look like what every one of their days looks like, and like nothing where the days differ', () => {
    const day = (text: string, ...looksLike: string[]) => unit(text, aMismatch(text, { looksLike }));
    const both = ['batch_discount_not_applied', 'service_tier_rate_misapplied'];
    const [shared] = mergeMismatches([day('2026-10-01', ...both), day('2026-10-02', ...both.slice(1))]);
    expect(shared?.looks_like).toEqual(['service_tier_rate_misapplied']);
    const [none] = mergeMismatches([day('2026-10-01', ...both), unit('2026-10-02', aMismatch('2026-10-02'))]);
    expect(none?.looks_like).toEqual([]);
  });

  it('are apart where a day lies between, the rate changes, or the meter is another', () => {
    const merged = mergeMismatches([
      unit('2026-10-01', aMismatch('2026-10-01'), aMismatch('2026-10-01', { tokenClass: 'input' })),
      unit('2026-10-03', aMismatch('2026-10-03')),
      unit('2026-10-04', aMismatch('2026-10-04', { billedRate: String(31n * E12) })),
    ]);
    expect(merged.map(({ first_day, token_class, days }) => [first_day, token_class, days]).sort()).toEqual([
      ['2026-10-01', 'input', 1],
      ['2026-10-01', 'output', 1],
      ['2026-10-03', 'output', 1],
      ['2026-10-04', 'output', 1],
    ]);
  });

  it('differ in their last digits by rounding alone and stay one', () => {
    const merged = mergeMismatches([
      unit('2026-10-01', aMismatch('2026-10-01')),
      unit('2026-10-02', aMismatch('2026-10-02', { billedRate: String(30n * E12 + 1_000n) })),
    ]);
    expect(merged).toHaveLength(1);
  });

  it('come largest amount first, below list too', () => {
    const merged = mergeMismatches([
      unit(
        '2026-10-01',
        aMismatch('2026-10-01', { billedPico: String(26n * E12) }),
        aMismatch('2026-10-01', { model: 'claude-haiku-4-5', billedPico: String(5n * E12) }),
      ),
    ]);
    expect(merged.map(({ excess_usd }) => excess_usd)).toEqual(['-20', '1']);
  });

  it('are found whatever the order of the units', () => {
    const days = ['2026-10-02', '2026-10-01', '2026-10-03'].map((day) => unit(day, aMismatch(day)));
    expect(mergeMismatches(days)).toEqual(mergeMismatches([...days].reverse()));
  });
});
