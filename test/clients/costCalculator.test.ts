import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CostCalculator, type PricedTokens, sumUsd } from './costCalculator.js';

const NOTHING: PricedTokens = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0 };
const PRICES = new URL('../../data/prices.json', import.meta.url);
const AT = Date.parse('2026-11-20T12:00:00Z');

describe('the calculator that tests compare the product with', () => {
  const calculator = new CostCalculator(PRICES);

  it('adds up classes by hand-checked sums', () => {
    // gpt-4o lists 2.5, 1.25 and 10 dollars a million: 200 × 2.5 + 1000 × 1.25 + 300 × 10 = 4750 millionths.
    const call = {
      provider: 'openai',
      model: 'gpt-4o-2024-08-06',
      atMillis: AT,
      tokens: { ...NOTHING, input: 200, cacheRead: 1000, output: 300 },
    };
    expect(calculator.cost(call)).toEqual({ usd: '0.00475', isPriced: true, assumedClasses: [] });
    expect(calculator.cost({ ...call, isBatch: true }).usd).toBe('0.002375');
    // claude-sonnet-4-5 lists 3, 0.3, 3.75, 6 and 15.
    const claude = {
      provider: 'anthropic',
      model: 'claude-sonnet-4-5-20250929',
      atMillis: AT,
      tokens: { input: 50, cacheRead: 1000, cacheWrite5m: 200, cacheWrite1h: 10, output: 300 },
    };
    expect(calculator.cost(claude).usd).toBe('0.00576');
  });

  it('takes the long-context rates for all tokens once the whole input exceeds the boundary', () => {
    const tokens = { ...NOTHING, input: 200_000, output: 1_000_000 };
    const call = { provider: 'anthropic', model: 'claude-sonnet-4-5', atMillis: AT, tokens };
    // 3 and 15 up to 200,000 input tokens; 6 and 22.5 above.
    expect(calculator.cost(call).usd).toBe('15.6');
    expect(calculator.cost({ ...call, tokens: { ...tokens, cacheRead: 1 } }).usd).toBe('23.7000006');
  });

  it('cuts what follows the third colon of a fine-tuned id, and lists what it cannot price', () => {
    const tokens = { ...NOTHING, input: 1_000_000 };
    const tuned = { provider: 'openai', model: 'ft:gpt-4o-2024-08-06:acme::x', atMillis: AT, tokens };
    expect(calculator.cost(tuned).usd).toBe('3.75');
    const unlisted = calculator.cost({ ...tuned, model: 'gpt-0-unlisted' });
    expect(unlisted).toEqual({ usd: '0', isPriced: false, assumedClasses: [] });
  });

  it('charges the input rate for a cache class without a rate, and names it', () => {
    const tokens = { ...NOTHING, cacheRead: 1_000_000 };
    const cost = calculator.cost({ provider: 'openai', model: 'gpt-4o-2024-05-13', atMillis: AT, tokens });
    expect(cost).toEqual({ usd: '5', isPriced: true, assumedClasses: ['cache_read'] });
  });
});

describe('the sum of amounts', () => {
  it('is exact where doubles are not', () => {
    expect(sumUsd(['0.1', '0.2', '0.000000000001'])).toBe('0.300000000001');
    expect(sumUsd([])).toBe('0');
  });
});

describe('the calculator on prices made for a test', () => {
  let folder = '';
  let calculator: CostCalculator;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'trueup-prices-'));
    const path = join(folder, 'prices.json');
    const rate = (from: string | null, to: string | null, input: string): string =>
      `{"effective_from": ${from && `"${from}"`}, "effective_to": ${to && `"${to}"`}, "input": ${input}, "output": 1, "tiers": []}`;
    writeFileSync(
      path,
      `{"note": "a \\"quoted\\" 1.5 in text", "models": [{"provider": "p", "model": "m", "canonical_family": "m",
        "aliases": [], "rates": [${rate(null, '2026-03-01', '0.0000005')}, ${rate('2026-03-01', null, '3e-7')}]}]}`,
    );
    calculator = new CostCalculator(path);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  const at = (iso: string, input: number): string =>
    calculator.cost({ provider: 'p', model: 'm', atMillis: Date.parse(iso), tokens: { ...NOTHING, input } })
      .usd;

  it('takes the period in force, its end excluded', () => {
    expect(at('2026-02-28T23:59:59.999Z', 1_000_000)).toBe('0.0000005');
    expect(at('2026-03-01T00:00:00Z', 1_000_000)).toBe('0.0000003');
  });

  it('rounds half to even at the twelfth decimal, once', () => {
    // 0.0000005 dollars a million: one token is half of the last digit.
    expect(at('2026-01-01T00:00:00Z', 1)).toBe('0');
    expect(at('2026-01-01T00:00:00Z', 3)).toBe('0.000000000002');
    expect(at('2026-01-01T00:00:00Z', 4)).toBe('0.000000000002');
    expect(at('2026-01-01T00:00:00Z', 5)).toBe('0.000000000002');
  });
});
