/** Where on a record of a page the numbers of a row stand. */
import type { BilledRow } from '../../billing/billedRow.js';
import { parseFxRate, toPicoOrNull } from '../../billing/pageRow.js';
import type { EvidenceRow } from './claimEvidence.js';
import { findTerms, type RecordNumbers } from './findTerms.js';

/** What of a row has to be found. */
export type RowToPlace = Pick<
  BilledRow,
  'feed' | 'tokenClass' | 'quantity' | 'amountPico' | 'currency' | 'originalAmount'
>;

/** A record that may say it. */
export interface RecordToSearch {
  document: number;
  at: string;
  numbers: RecordNumbers;
}

/** Undefined where no numbers of the record come to the row's. `declaredFx`: given with the bill, dollars for a unit. */
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

/** The rate that the row's dollars were made with; null where it is in dollars, undefined where none is found. */
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
