import { type BilledRow, QUANTITY_SCALE } from '../../billing/billedRow.js';
import { parseFxRate, toPicoOrNull } from '../../billing/pageRow.js';
import { divideHalfEven, parseScaled } from '../../money.js';
import type { EvidenceRow, EvidenceTerm } from './claimEvidence.js';

/** Finds the places of a row's numbers in the record of a page. */

type RowToPlace = Pick<
  BilledRow,
  'feed' | 'tokenClass' | 'quantity' | 'amountPico' | 'currency' | 'originalAmount'
>;

interface RecordToSearch {
  document: number;
  at: string;
  numbers: RecordNumbers;
}

/** Undefined: no numbers of the record add up to the row's. `declaredFx`: dollars per unit, as given with the bill. */
export function placeOfRow(
  row: RowToPlace,
  record: RecordToSearch,
  declaredFx: string | null,
): EvidenceRow | undefined {
  const amount =
    row.feed === 'cost' && row.originalAmount !== null
      ? findTerms(record.numbers, row.originalAmount, AMOUNTS)
      : null;
  const quantity = row.quantity === null ? null : findTerms(record.numbers, row.quantity, quantitiesOf(row));
  const fx = fxOf(row, record, declaredFx);
  if (amount === undefined || quantity === undefined || fx === undefined) return undefined;
  return { page: '', document: record.document, at: record.at, amount, quantity, fx_rate: fx };
}

const AMOUNTS = [
  /^\/amount\/value$/,
  /^\/amount$/,
  /^amount_usd$/,
  /unblended_?cost/i,
  /^billedcost$/,
  /^costinbillingcurrency$/,
  /^cost$/,
  /cost/i,
  /amount/i,
];

const COUNTS = [
  /^\/quantity$/,
  /^quantity$/,
  /usage_?amount/i,
  /consumedquantity|pricingquantity/i,
  /usagequantity/i,
  /amount_in_pricing_units/i,
];
const USED: Readonly<Record<string, RegExp[]>> = {
  input: [/uncached_input_tokens$/, /^\/input_uncached_tokens$/],
  cache_read: [/cache_read_input_tokens$/, /input_cached_tokens$/],
  cache_write_5m: [/ephemeral_5m_input_tokens$/, /cache_write_tokens$/],
  cache_write_1h: [/ephemeral_1h_input_tokens$/],
  input_audio: [/input_audio_tokens$/],
  output_audio: [/output_audio_tokens$/],
  requests: [/num_model_requests$/],
};

const quantitiesOf = (row: RowToPlace): readonly RegExp[] =>
  row.feed === 'usage' ? (USED[row.tokenClass] ?? []) : COUNTS;

/** The exchange rate of the row's dollars; null: the row is in dollars; undefined: no rate fits. */
function fxOf(
  row: RowToPlace,
  { numbers }: RecordToSearch,
  declared: string | null,
): string | null | undefined {
  const { originalAmount, amountPico, currency } = row;
  if (originalAmount === null || originalAmount === amountPico || currency === null) return null;
  return [declared, ...numbers.values()].find(
    (rate) => rate !== null && toPicoOrNull(originalAmount, currency, parseFxRate(rate)) === amountPico,
  );
}

/** Finds the numbers of a bill's record that add up to a row's amount and quantity. */

/** Precision of a record's numbers, more digits than any bill has. */
const DIGITS = 40;

/** The numbers of a record by their place, as texts. */
export type RecordNumbers = ReadonlyMap<string, string>;

/** Bills count in units, thousands of units, or cents. */
const FACTORS = ['1', '0.01', '1000', '1000000', '100', '10', '10000', '100000'] as const;

/** Report classes that contain others, so that a class is a difference; the longest match counts. */
const DIFFERENCES: readonly (readonly [whole: string, ...parts: string[]])[] = [
  ['/input_tokens', '/input_cached_tokens', '/input_cache_write_tokens', '/input_audio_tokens'],
  ['/input_tokens', '/input_cached_tokens', '/input_cache_write_tokens'],
  ['/input_tokens', '/input_cached_tokens'],
  ['/output_tokens', '/output_audio_tokens'],
  ['/input_audio_tokens', '/input_cached_audio_tokens'],
];

/** The exact sum of terms, rounded half to even to 1e-12; undefined: a number is missing. */
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
 * Terms that equal `wanted` exactly; among equal numbers those in `preferred` come first, then those earlier in
 * the record.
 */
function findTerms(
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

/** Price × quantity, for bills without an amount. */
function products(names: readonly string[]): EvidenceTerm[][] {
  return names.flatMap((at) => names.filter((by) => by > at).map((by) => [{ at, by, times: '1' }]));
}
