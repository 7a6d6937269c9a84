import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOKENS_MAX } from '../../../domain/events/event.js';
import {
  durationBetween,
  ItemFault,
  readCost,
  readDurationMs,
  readTokens,
} from '../../../domain/events/itemFault.js';

describe('token counts', () => {
  it('are read from numbers, bigints and decimal text alike', () => {
    fc.assert(
      fc.property(fc.nat(TOKENS_MAX), (count) => {
        expect(readTokens(count, 'x')).toBe(count);
        expect(readTokens(BigInt(count), 'x')).toBe(count);
        expect(readTokens(String(count), 'x')).toBe(count);
        expect(readTokens(`000000000000000000${count}`, 'x')).toBe(count);
      }),
    );
  });

  it.each([
    ['NaN', Number.NaN],
    ['the text NaN', 'NaN'],
    ['an infinity, which 1e400 becomes', JSON.parse('1e400')],
    ['-0', -0],
    ['the text -0', '-0'],
    ['a negative number', -1],
    ['a negative bigint', -1n],
    ['a fraction', 1.5],
    ['the text of a fraction', '1.5'],
    ['2^53 + 1', 2 ** 53 + 1],
    ['2^53 + 1 as text', '9007199254740993'],
    ['9e18', 9e18],
    ['one more than 10^12', TOKENS_MAX + 1],
    ['one more than 10^12 as text', String(TOKENS_MAX + 1)],
    ['a number of 400 digits', '9'.repeat(400)],
    ['a boolean', true],
    ['a list', [1]],
    ['an exponent as text', '1e3'],
    ['an empty text', ''],
  ])('%s is invalid_number', (_, value) => {
    expect(() => readTokens(value, 'tokens')).toThrow(ItemFault);
    try {
      readTokens(value, 'tokens');
    } catch (fault) {
      expect((fault as ItemFault).reason).toBe('invalid_number');
    }
  });
});

describe('costs', () => {
  it('are exact to the pico-dollar, as number or text', () => {
    expect(readCost(0.29, 'cost')).toBe(290_000_000_000n);
    expect(readCost('0.000000000001', 'cost')).toBe(1n);
    expect(readCost(3, 'cost')).toBe(3_000_000_000_000n);
    expect(readCost(1_000_000, 'cost')).toBe(10n ** 18n);
  });

  it.each([Number.NaN, 'NaN', Number.POSITIVE_INFINITY, -0, -0.01, '-1', 1_000_000.01, 'free', true])(
    '%s is refused',
    (value) => {
      expect(() => readCost(value, 'cost')).toThrow(ItemFault);
    },
  );
});

describe('durations', () => {
  it('are rounded half up to whole milliseconds', () => {
    expect(durationBetween(0n, 499_999n)).toBe(0);
    expect(durationBetween(0n, 500_000n)).toBe(1);
    expect(durationBetween(0n, 1_499_999n)).toBe(1);
    expect(durationBetween(0n, 1_500_000n)).toBe(2);
    expect(readDurationMs(2.5, 'latency')).toBe(3);
  });

  it('refuse an end before the start, and more than 10^9 ms', () => {
    expect(() => durationBetween(2n, 1n)).toThrow('before the start');
    expect(() => durationBetween(0n, 1_000_000_001n * 1_000_000n)).toThrow(ItemFault);
    expect(durationBetween(0n, 1_000_000_000n * 1_000_000n)).toBe(1_000_000_000);
    for (const bad of [-1, Number.NaN, 1e10, 'soon', null])
      expect(() => readDurationMs(bad, 'latency')).toThrow(ItemFault);
  });
});
