import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aheadMicrosOf, billingDayOf, timesOfBillingDay } from '../../../domain/billing/billingDay.js';
import { MICROS_PER_HOUR, microsOfDay } from '../../../domain/period.js';
import { PROVIDERS } from '../../../domain/providers.js';

const micros = fc
  .bigInt({ min: microsOfDay('2024-01-01'), max: microsOfDay('2029-12-31') })
  .map((at) => at - (at % 1_000_000n));

describe('a provider’s day', () => {
  it('holds the times that are billed on it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...PROVIDERS), micros, (provider, at) => {
        const { startMicros, endMicros } = timesOfBillingDay(provider, billingDayOf(provider, at), 0);
        expect(startMicros <= at && at < endMicros).toBe(true);
      }),
    );
  });

  it('is Pacific with Google, and the hours of a clock follow that clock', () => {
    const late = microsOfDay('2026-11-01') + 6n * MICROS_PER_HOUR;
    expect(billingDayOf('google', late)).toBe('2026-10-31');
    expect(billingDayOf('openai', late)).toBe('2026-11-01');
    expect(aheadMicrosOf('google', '2026-10-31', 0)).toBe(-7n * MICROS_PER_HOUR);
    expect(aheadMicrosOf('google', '2026-11-02', 0)).toBe(-8n * MICROS_PER_HOUR);
    expect(aheadMicrosOf('openai', '2026-11-02', 9)).toBe(9n * MICROS_PER_HOUR);
  });
});
