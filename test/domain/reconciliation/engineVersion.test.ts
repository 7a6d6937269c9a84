/**
 * A change of the reconciliation engine's results must increase its version, or installations keep the former results.
 */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { ENGINE_VERSION } from '../../../domain/reconciliation/matching/inputMark.js';
import { reconcileDays } from '../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import {
  asClasses,
  asTotal,
  isBetween,
  linesFor,
  part,
  type SeriesShape,
  scale,
  seriesOf,
} from './engine/series/support.js';
import { BOOK } from './support.js';

/** The engine's version, and its results for the days below. Another digest needs another version. */
const SAID = { version: '8.32', digest: 'd79d7be2e6e3ab38' };

const onDays = (at: number) => isBetween(at, 8, 12);
const SHAPES: readonly SeriesShape[] = [
  {},
  { bill: (lines, at) => (onDays(at) ? scale(lines, 10n, 1n, ['cache_read']) : lines) },
  { bill: (lines, at) => (onDays(at) ? scale(lines, 1n, 10n, ['input']) : lines) },
  { bill: (lines, at) => (onDays(at) ? scale(lines, 137n, 100n, ['output']) : lines) },
  { bill: (lines) => scale(lines, 11n, 10n) },
  { bill: (lines, at) => (at >= 10 ? scale(lines, 2n, 1n) : lines) },
  { bill: (_, __, use) => linesFor({ ...use, input: use.input + use.cache_read }) },
  { seen: (use, at) => (onDays(at) ? part(use, 0.5, (place) => 0.01 * Math.sin(at + place)) : use) },
  { seen: (use, at) => (onDays(at) ? part(use, 2) : use) },
  { seen: (use, at) => (onDays(at) ? { ...use, output: use.output * 0.7 } : use) },
  {
    bill: (lines, at) => (onDays(at) ? scale(lines, 10n, 1n, ['cache_read']) : lines),
    input: asClasses,
  },
  { bill: (lines, at) => (onDays(at) ? scale(lines, 1n, 2n) : lines), input: asTotal },
];

/** Numbers that differ by less are the same: processors round logarithms otherwise in the last digit. */
const DIGITS = 9;

function digestOf(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === 'bigint') return `${part}n`;
    return typeof part === 'number' ? Number(part.toPrecision(DIGITS)) : part;
  });
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

it('the engine’s result for a small world changes with its version alone', () => {
  const said = SHAPES.map((shape) =>
    reconcileDays('openai', seriesOf(shape), { agreed: BOOK, list: BOOK }, DEFAULT_WEIGHTS, []),
  );
  expect(
    { version: ENGINE_VERSION, digest: digestOf(said) },
    'Where only the digest differs, raise ENGINE_VERSION (domain/reconciliation/matching/inputMark.ts) and enter both here.',
  ).toEqual(SAID);
});
