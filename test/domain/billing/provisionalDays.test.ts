import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextMonth } from '../../../domain/billing/periods.js';
import { BILLING_FORMATS, provisionalDaysOf } from '../../../domain/billing/sources.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';

const closesOn = (format: (typeof BILLING_FORMATS)[number], day: string) =>
  dayOf(microsOfDay(day) + BigInt(provisionalDaysOf([format], null, day)) * MICROS_PER_DAY);

const days = fc
  .integer({ min: 0, max: 3_000 })
  .map((count) => dayOf(microsOfDay('2024-01-01') + BigInt(count) * MICROS_PER_DAY));

describe('the days in which a provider may restate a day', () => {
  it('end for all of a month on Azure five days after the month', () => {
    for (const day of ['2026-09-01', '2026-09-17', '2026-09-30'])
      expect(closesOn('azure_query_pages', day)).toBe('2026-10-06');
    expect(closesOn('azure_cost_details', '2026-12-31')).toBe('2027-01-06');
    expect(closesOn('azure_query_pages', '2028-02-01')).toBe('2028-03-06');
  });

  it('end for AWS and Google when the bill of the month is issued, and where nothing is known last of all', () => {
    expect(closesOn('aws_ce_pages', '2026-09-02')).toBe('2026-10-08');
    expect(closesOn('google_billing_export', '2026-09-02')).toBe('2026-10-09');
    expect(closesOn('focus', '2026-09-30')).toBe('2026-10-09');
  });

  it('are two from the day itself at OpenAI and Anthropic', () => {
    expect(closesOn('openai_pages', '2026-09-30')).toBe('2026-10-02');
    expect(closesOn('anthropic_pages', '2026-09-01')).toBe('2026-09-03');
  });

  it('are none where the bill marks the day as final, and the longest where several formats count', () => {
    expect(provisionalDaysOf(['azure_query_pages'], true, '2026-09-01')).toBe(0);
    expect(provisionalDaysOf(['openai_pages', 'azure_query_pages'], false, '2026-09-30')).toBe(6);
  });

  it('never end before the day is over, and end on one day for all days of a month or so many days after each', () => {
    fc.assert(
      fc.property(days, fc.constantFrom(...BILLING_FORMATS), (day, format) => {
        const provisional = provisionalDaysOf([format], null, day);
        expect(provisional).toBeGreaterThanOrEqual(2);
        const first = `${day.slice(0, 7)}-01`;
        const isOfMonth = closesOn(format, day) > nextMonth(first);
        const sameDay = closesOn(format, first) === closesOn(format, day);
        expect(provisional === 2 || (isOfMonth && sameDay)).toBe(true);
      }),
    );
  });
});
