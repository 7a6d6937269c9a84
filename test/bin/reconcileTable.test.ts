import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { reconcileTable } from '../../bin/commands/reconcile.js';
import { PICO_PER_USD } from '../../domain/money.js';
import type { GapBucket } from '../../domain/reconciliation/matching/cells.js';
import type { ReconcileReport } from '../../usecases/reconciliation/reconcileBills.js';
import { testSeed } from '../fakes/seededRandom.js';
import { aFinding, aFindingDay, type FindingToStore } from '../support/findings.js';

const SEED = testSeed();

/** A day's bucket with this many dollars, partly explained. */
const bucket = (given: Partial<GapBucket>): GapBucket =>
  ({
    ...{ width: 'day', accountId: 'acc-1', model: 'gpt-6-sol', lines: [], eventCount: 3, reason: null },
    ...{ providerCostPico: 0n, matchedPico: 0n },
    ...given,
  }) as GapBucket;

const tableOf = (buckets: readonly GapBucket[], findings: readonly FindingToStore[] = []): string =>
  reconcileTable({
    provider: 'openai',
    fromDay: '2026-03-01',
    toDay: '2026-03-31',
    days: 31,
    billed: { firstDay: '2026-03-01', lastDay: '2026-03-31' },
    weightSet: 'test',
    buckets: [...buckets],
    findings: findings.map(aFinding),
    explanations: [],
  } satisfies ReconcileReport);

/** The cents in the row of this name. */
function centsOf(table: string, name: string): number {
  const row = table.split('\n').find((line) => line.startsWith(name)) ?? '';
  return Math.round(Number(row.slice(name.length).replaceAll(',', '').replace('<0.01', '0')) * 100);
}

describe('the table of ./trueup reconcile', () => {
  it('adds up to the cent as it is shown, whatever the amounts', () => {
    const amount = fc.bigInt({ min: 0n, max: 50_000n * PICO_PER_USD });
    fc.assert(
      fc.property(amount, amount, amount, amount, (explained, unexplained, fee, early) => {
        const table = tableOf([
          bucket({ providerCostPico: explained + unexplained, matchedPico: explained }),
          bucket({ providerCostPico: fee, reason: 'not_observable' }),
          bucket({ providerCostPico: early, reason: 'not_yet_observed' }),
        ]);
        const parts = ['  matched by calls', '  not matched by calls', '  no call can show it'];
        const sum = [...parts, '  before the first call'].reduce(
          (all, name) => all + centsOf(table, name),
          0,
        );
        expect(sum).toBe(centsOf(table, 'billed for usage'));
      }),
      { seed: SEED },
    );
  });

  it('divides overcharges into what is claimable at each grade and what is not', () => {
    const third = 3_333_333_333_333n;
    const table = tableOf(
      [bucket({ providerCostPico: 100n * PICO_PER_USD, matchedPico: 100n * PICO_PER_USD })],
      [
        { days: [aFindingDay('2026-03-10', third)] },
        { grade: 'MEDIUM', days: [aFindingDay('2026-03-11', third)] },
        { grade: 'LOW', claimable: false, days: [aFindingDay('2026-03-12', third)] },
      ],
    );
    expect(centsOf(table, 'charged too much')).toBe(999);
    const names = ['HIGH', 'MEDIUM', 'LOW and below'].map((grade) => `  to be claimed: ${grade}`);
    const cents = [...names, '  not to be claimed'].map((name) => centsOf(table, name));
    expect(cents).toEqual([333, 333, 0, 333]);
  });

  it('shows one amount for a finding: in its line, its sentence and the sum of all', () => {
    const table = tableOf([], [{ days: [aFindingDay('2026-03-10', 109_017_591_375_000n)] }]);
    expect(table.match(/109\.\d+/g)).toEqual(['109.01', '109.01', '109.01', '109.01']);
    expect(table).toContain('$109.01 too much');
  });

  it('states whose mistake it is only as surely as its grade', () => {
    const table = tableOf(
      [],
      [
        { grade: 'HIGH' },
        { grade: 'MEDIUM' },
        { grade: 'LOW' },
        { blame: 'own', kind: 'client_metering_error' },
      ],
    );
    const said = [...table.matchAll(/This (?:is|may be)[^.]*\./g)].map(([sentence]) => sentence);
    expect(said).toEqual([
      'This is the provider’s mistake.',
      'This is probably the provider’s mistake.',
      'This may be the provider’s mistake.',
      'This is your own to change.',
    ]);
  });

  it('names the account beside the model where there are several', () => {
    const one = [bucket({ model: 'm' })];
    expect(tableOf(one)).not.toContain('account');
    const two = tableOf([
      ...one,
      bucket({ model: 'm', accountId: '' }),
      bucket({ model: 'x'.repeat(300), accountId: 'y'.repeat(300) }),
    ]);
    expect(two).toMatch(/^account +model/m);
    expect(two).toMatch(/^unknown +m +/m);
    expect(Math.max(...two.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
  });

  it('shows odds to few digits, and beyond 999,999 as a bound', () => {
    const odds = [1.04, 38.4, 36_695.2, 1e300, Number.POSITIVE_INFINITY];
    const table = tableOf(
      [],
      odds.map((value, at) => ({ model: `m-${at}`, next: { kind: 'none' as const, odds: value } })),
    );
    const shown = odds.map((_, at) => new RegExp(`m-${at} .* (\\S+:1)$`, 'm').exec(table)?.[1]);
    expect(shown).toEqual(['1.0:1', '38:1', '36,695:1', '>999,999:1', '>999,999:1']);
    expect(table.replace(/\s+/g, ' ')).toContain('Next best explanation: nothing is wrong with the bill.');
    expect(table).not.toContain('?');
  });
});
