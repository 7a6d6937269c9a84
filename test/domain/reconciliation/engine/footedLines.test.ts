import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { footed } from '../../../../domain/reconciliation/engine/account/accountFindings.js';
import type { FindingLine } from '../../../../domain/reconciliation/engine/series/finding.js';

const lineOf = (billedPico: bigint, expectedPico: bigint): FindingLine => ({
  tokenClass: 'input',
  serviceTier: 'standard',
  isBatch: false,
  longContext: false,
  region: null,
  billedQuantity: null,
  observedQuantity: 0n,
  billedRate: null,
  expectedRate: null,
  billedPico,
  expectedPico,
});

const lines = fc.array(
  fc.tuple(fc.bigInt(0n, 1_000n), fc.bigInt(0n, 1_000n)).map(([billed, right]) => lineOf(billed, right)),
  { minLength: 1, maxLength: 6 },
);
const sum = (of: readonly FindingLine[], value: (line: FindingLine) => bigint) =>
  of.reduce((total, line) => total + value(line), 0n);
const rights = (of: readonly FindingLine[]) => of.map(({ expectedPico }) => expectedPico);

describe('lines that have to sum to the impact of a finding', () => {
  it('do so, and none is right below nothing where they are billed as much', () => {
    fc.assert(
      fc.property(lines, fc.bigInt(-2_000n, 6_000n), (of, impact) => {
        const made = footed(of, impact);
        expect(sum(made, ({ billedPico, expectedPico }) => billedPico - expectedPico)).toBe(impact);
        if (impact > sum(of, ({ billedPico }) => billedPico)) return;
        expect(rights(made).every((right) => right >= 0n)).toBe(true);
      }),
    );
  });

  it('leave what the largest cannot take to the next', () => {
    expect(rights(footed([lineOf(10n, 4n), lineOf(30n, 3n)], 40n))).toEqual([0n, 0n]);
    expect(rights(footed([lineOf(10n, 4n), lineOf(30n, 3n)], 36n))).toEqual([4n, 0n]);
  });

  it('are as they were where they sum to it', () => {
    expect(rights(footed([lineOf(10n, 4n), lineOf(30n, 3n)], 33n))).toEqual([4n, 3n]);
  });
});
