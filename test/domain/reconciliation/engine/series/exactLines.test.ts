/** A wrong rate on several lines, one of which has something unknown besides. */
import { describe, expect, it } from 'vitest';
import { QUANTITY_ONE } from '../../../../../domain/billing/billedRow.js';
import { aBilledCell } from '../../support.js';
import { calls, lines } from '../causes/support.js';
import {
  chargeFor,
  daysOf,
  findingsOf,
  findingsOfDays,
  isBetween,
  type Lines,
  scale,
  type Use,
  useOf,
} from './support.js';

const isWrong = (at: number) => isBetween(at, 8, 12);
const isOdd = (at: number) => isBetween(at, 10, 11);

/** Everything at twice the price, the rate of the priority tier; on two days `change` besides. */
const findingsBy = (change: (lines: Lines) => Lines) =>
  findingsOf({
    bill: (lines, at) => {
      const twice = isWrong(at) ? scale(lines, 2n, 1n) : lines;
      return isOdd(at) ? change(twice) : twice;
    },
  });

describe('a wrong rate beside something unknown on one of its lines', () => {
  it('is claimed at HIGH for the other lines, and the line with the unknown part is left out', () => {
    const findings = findingsBy((lines) => scale(lines, 107n, 100n, ['cache_read']));
    const claims = findings.filter((one) => one.kind === 'service_tier_rate_misapplied');
    expect(claims.map(({ grade }) => grade)).toEqual(['HIGH']);
    const [claim] = claims;
    expect(claim?.days.map(({ day }) => day)).toHaveLength(5);
    const odd = claim?.days.filter(({ day }) => ['2026-10-15', '2026-10-16'].includes(day)) ?? [];
    const plain = claim?.days.filter((one) => !odd.includes(one)) ?? [];
    for (const { impactPico, billedPico } of plain) expect(impactPico * 2n).toBe(billedPico);
    for (const { impactPico, billedPico } of odd) expect(impactPico * 2n).toBe(billedPico);
    expect(findings.some(({ kind }) => kind === 'unexplained')).toBe(true);
  });

  it('is not concluded where a line that it would change is right', () => {
    const findings = findingsBy((lines) => scale(lines, 1n, 2n, ['output']));
    const days = findings
      .filter((one) => one.kind === 'service_tier_rate_misapplied' && one.grade === 'HIGH')
      .flatMap((one) => one.days.map(({ day }) => day));
    for (const day of ['2026-10-15', '2026-10-16']) expect(days).not.toContain(day);
  });
});

/** A third of each class at another place, a tenth dearer; on the wrong days the lines of `wrongAt` cost twice as much. */
const findingsAt = (wrongAt: (region: string | null, tokenClass: keyof Use) => boolean) =>
  findingsOf({
    input: (input, at) => {
      const use = useOf(at);
      const billed = (Object.keys(use) as (keyof Use)[]).flatMap((tokenClass) =>
        ([null, 'eu'] as const).map((region) => {
          const there = BigInt(Math.floor(use[tokenClass] / 3));
          const count = region === null ? BigInt(use[tokenClass]) - there : there;
          const times = isWrong(at) && wrongAt(region, tokenClass) ? 2n : 1n;
          const amountPico = (chargeFor(tokenClass, count) * times * (region === null ? 10n : 11n)) / 10n;
          return aBilledCell({
            tokenClass,
            region,
            isBatch: false,
            quantity: count * QUANTITY_ONE,
            amountPico,
          });
        }),
      );
      return { ...input, billed };
    },
  }).filter((one) => one.kind === 'service_tier_rate_misapplied');

describe('a wrong rate at one place, while another is charged rightly', () => {
  it('is claimed at HIGH for the lines of its place alone', () => {
    const [claim, ...others] = findingsAt((region) => region === null);
    expect(others).toEqual([]);
    expect(claim).toMatchObject({ grade: 'HIGH', direction: 'overcharge' });
    expect(new Set(claim?.lines.map(({ region }) => region))).toEqual(new Set([null]));
    expect((claim?.impactPico ?? 0n) * 2n).toBe(claim?.lines.reduce((sum, one) => sum + one.billedPico, 0n));
  });

  it('is not concluded where a line of that place is right', () => {
    const found = findingsAt((region, tokenClass) => region === null && tokenClass !== 'output');
    expect(found.filter(({ grade }) => grade === 'HIGH')).toEqual([]);
  });
});

describe('a price that fell for long requests alone', () => {
  it('is claimed at HIGH for the lines of ordinary requests, and for no other', () => {
    // The list price of this model fell on 30 July 2026.
    const model = 'gpt-5.6-luna';
    const shape = (at: number, day: string) => {
      const counts = { input: 3_000_000 + at * 7_000, output: 500_000 + at * 3_000 };
      const charged = { day: isWrong(at) ? '2026-07-29' : day };
      const seen = (use: object) => calls(counts, { serviceTier: 'default', ...use }, { model, day });
      return {
        billed: [
          ...lines(counts, { longContext: false }, charged, { model }),
          ...lines(counts, { longContext: true }, { day }, { model }),
        ],
        observed: [seen({ calls: 900 }), seen({ calls: 9, contextBand: 272_000 })],
      };
    };
    const days = daysOf(20, shape, '2026-07-20');
    const [claim, ...others] = findingsOfDays(days);
    expect(others).toEqual([]);
    expect(claim).toMatchObject({ kind: 'price_effective_date_mismatch', grade: 'HIGH' });
    expect(claim?.days.map(({ day }) => day)).toEqual(['2026-07-30', '2026-07-31', '2026-08-01']);
    expect(new Set(claim?.lines.map(({ longContext }) => longContext))).toEqual(new Set([false]));
  });
});
