/** A wrong rate on several lines, one of which has something unknown besides. */
import { describe, expect, it } from 'vitest';
import { findingsOf, isBetween, type Lines, scale } from './support.js';

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
