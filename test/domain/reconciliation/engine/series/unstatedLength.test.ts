/** Bills that do not state the length of requests, of a model whose long requests cost more. */
import { describe, expect, it } from 'vitest';
import type { BilledCell, DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import { aUsageCell } from '../../support.js';
import { lines } from '../causes/support.js';
import { daysOf, findingsOfDays, isBetween, observedOf, type Use, useOf } from './support.js';

const CLASSES = ['input', 'cache_read', 'output'] as const;
const ABOVE = 272_000;
const isWrong = (at: number) => isBetween(at, 8, 12);
const scaled = (use: Use, share: number): Use => ({
  input: Math.round(use.input * share),
  cache_read: Math.round(use.cache_read * share),
  output: Math.round(use.output * share),
});

interface Shape {
  /** Share of the tokens in long requests. */
  long: number;
  /** Share of the calls that were observed. */
  seen?: number;
  /** Tokens of an observed call, roughly. */
  calls?: number;
  amountOf?: (line: BilledCell, at: number) => bigint;
}

/** Twenty days; bill and usage report have one line for both lengths. */
const days = ({ long, seen = 1, calls = 20_000, amountOf = (line) => line.amountPico }: Shape): DayInput[] =>
  daysOf(20, (at, day) => {
    const use = useOf(at);
    const [longUse, all] = [scaled(use, long), use];
    const plain: Use = {
      input: all.input - longUse.input,
      cache_read: all.cache_read - longUse.cache_read,
      output: all.output - longUse.output,
    };
    const ofLong = lines({ ...longUse }, { longContext: true });
    const billed = lines({ ...plain }, { longContext: false }).map((cell, index) => {
      const other = ofLong[index] as BilledCell;
      const both = {
        ...cell,
        longContext: null,
        quantity: (cell.quantity ?? 0n) + (other.quantity ?? 0n),
        amountPico: cell.amountPico + other.amountPico,
      };
      return { ...both, amountPico: amountOf(both, at) };
    });
    return {
      billed,
      usage: CLASSES.map((tokenClass) =>
        aUsageCell({
          tokenClass,
          isBatch: false,
          longContext: null,
          quantity: billed.find((cell) => cell.tokenClass === tokenClass)?.quantity ?? 0n,
        }),
      ),
      observed: [
        observedOf(day, scaled(plain, seen), { calls }),
        ...(long > 0 ? [observedOf(day, scaled(longUse, seen), { calls: 80, contextBand: ABOVE })] : []),
      ],
    };
  });

const cacheTooDear = (line: BilledCell, at: number): bigint =>
  isWrong(at) && line.tokenClass === 'cache_read' ? line.amountPico * 10n : line.amountPico;

describe('a bill without the length of requests', () => {
  it('is as agreed where the calls show long requests that explain it', () => {
    expect(findingsOfDays(days({ long: 0.3 }))).toEqual([]);
  });

  it('has a wrong rate measured against the mix of lengths that the calls show', () => {
    const [finding, ...others] = findingsOfDays(days({ long: 0.3, amountOf: cacheTooDear }));
    expect(others).toEqual([]);
    expect(finding?.kind).toBe('cache_read_rate_mismatch');
    const right = days({ long: 0.3 }).flatMap(({ billed }, at) =>
      isWrong(at)
        ? billed.flatMap((cell) => (cell.tokenClass === 'cache_read' ? [cell.amountPico] : []))
        : [],
    );
    const tooMuch = 9n * right.reduce((sum, one) => sum + one, 0n);
    const apart = (finding?.impactPico ?? 0n) - tooMuch;
    expect(apart < 1_000n && apart > -1_000n, `${apart}`).toBe(true);
  });

  /** A price a third too high: a mix of long and ordinary requests would cost as much. */
  const aThirdMore = (line: BilledCell, at: number): bigint =>
    isWrong(at) ? (line.amountPico * 4n) / 3n : line.amountPico;
  const gatesOf = (shape: Shape) =>
    findingsOfDays(days({ ...shape, amountOf: aThirdMore })).map(({ missing }) => missing);

  it('leaves no doubt about the length where no call is near the boundary, also where some were not seen', () => {
    const gates = gatesOf({ long: 0, seen: 0.7 });
    expect(gates.length).toBeGreaterThan(0);
    for (const missing of gates) expect(missing).not.toContain('quantity_present');
  });

  it('is doubtful where calls are near the boundary, or too few were seen to be like the others', () => {
    for (const shape of [
      { long: 0, seen: 0.7, calls: 700 },
      { long: 0, seen: 0.3 },
    ])
      for (const missing of gatesOf(shape)) expect(missing).toContain('quantity_present');
  });
});
