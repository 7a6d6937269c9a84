/** Which numbers of a record of a bill a row's amount and quantity are the sum of. */
import { QUANTITY_SCALE } from '../../billing/billedRow.js';
import { divideHalfEven, parseScaled } from '../../money.js';
import type { EvidenceTerm } from './claimEvidence.js';

/** Digits to which the numbers of a record are read: more than any bill has. */
const DIGITS = 40;

/** The numbers of a record by where they stand, as their texts. */
export type RecordNumbers = ReadonlyMap<string, string>;

/** Bills count in units, in thousands of them, in cents. */
const FACTORS = ['1', '0.01', '1000', '1000000', '100', '10', '10000', '100000'] as const;

/**
 * What classes of a usage report are made of: they are told as a whole and as parts of it. The longest of these that
 * comes to the quantity holds.
 */
const DIFFERENCES: readonly (readonly [whole: string, ...parts: string[]])[] = [
  ['/input_tokens', '/input_cached_tokens', '/input_cache_write_tokens', '/input_audio_tokens'],
  ['/input_tokens', '/input_cached_tokens', '/input_cache_write_tokens'],
  ['/input_tokens', '/input_cached_tokens'],
  ['/output_tokens', '/output_audio_tokens'],
  ['/input_audio_tokens', '/input_cached_audio_tokens'],
];

/** The exact sum of terms, rounded half to even to 1e-12; undefined where a number is missing. */
export function sumOfTerms(numbers: RecordNumbers, terms: readonly EvidenceTerm[]): bigint | undefined {
  let sum = 0n;
  for (const { at, times, by } of terms) {
    const value = scaledOf(numbers, at);
    const second = by === undefined ? ONE : scaledOf(numbers, by);
    const factor = parseScaled(times, DIGITS);
    if (value === undefined || second === undefined || factor === undefined) return undefined;
    sum += value * factor * second;
  }
  return divideHalfEven(sum, 10n ** BigInt(3 * DIGITS - QUANTITY_SCALE));
}

const ONE = 10n ** BigInt(DIGITS);

function scaledOf(numbers: RecordNumbers, at: string): bigint | undefined {
  const text = numbers.get(at);
  return text === undefined ? undefined : parseScaled(text, DIGITS);
}

/**
 * Terms that come to `wanted` (1e-12 units) exactly; undefined where none do. Of several numbers that are the same the
 * first that `preferred` names is meant, then the first of the record.
 */
export function findTerms(
  numbers: RecordNumbers,
  wanted: bigint,
  preferred: readonly RegExp[],
): EvidenceTerm[] | undefined {
  const names = [...numbers.keys()];
  const rank = (name: string) => {
    const at = preferred.findIndex((one) => one.test(name));
    return at < 0 ? preferred.length : at;
  };
  const ordered = names
    .map((name, at) => ({ name, at, rank: rank(name) }))
    .sort((a, b) => a.rank - b.rank || a.at - b.at)
    .map(({ name }) => name);
  const candidates = [
    ...ordered.filter((name) => rank(name) < preferred.length).flatMap(singles),
    ...DIFFERENCES.map(([whole, ...parts]) => differenceOf(whole, parts)),
    ...ordered.flatMap(singles),
    ...products(ordered.filter((name) => /price|quantity|rate/i.test(name))),
  ];
  return candidates.find((terms) => sumOfTerms(numbers, terms) === wanted);
}

const singles = (at: string): EvidenceTerm[][] => FACTORS.map((times) => [{ at, times }]);

const differenceOf = (whole: string, parts: readonly string[]): EvidenceTerm[] => [
  { at: whole, times: '1' },
  ...parts.map((at) => ({ at, times: '-1' })),
];

/** Price × quantity, where a bill names no amount of its own. */
function products(names: readonly string[]): EvidenceTerm[][] {
  return names.flatMap((at) => names.filter((by) => by > at).map((by) => [{ at, by, times: '1' }]));
}
