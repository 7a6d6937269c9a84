import { csvText } from '../../csv.js';
import { dollarsText } from '../claimAmount.js';
import type { ClaimEvidence, EvidenceCell } from './claimEvidence.js';

const COLUMNS = [
  'dispute_id',
  'day',
  'model',
  'token_class',
  'service_tier',
  'is_batch',
  'long_context',
  'region',
  'billed_quantity',
  'right_quantity',
  'observed_quantity',
  'billed_usd_per_mtok',
  'billed_usd',
  'expected_usd_per_mtok',
  'expected_usd',
  'difference_usd',
  'basis',
] as const;

/**
 * The claim line by line: one line for each day and class, one for each undercharge that is netted, the total, and the credit
 * that is asked for. Dollars are exact, so the lines sum to the total; the credit is the total rounded down to the cent.
 * Cells that a spreadsheet would take for a formula begin with an apostrophe.
 */
export function claimCsv(evidence: ClaimEvidence): string {
  const { totals } = evidence;
  const netted = evidence.undercharges.map((one) => ({
    day: one.day,
    model: one.model,
    token_class: 'netted undercharge',
    billed_usd: one.billed_usd_exact,
    expected_usd: one.expected_usd_exact,
    difference_usd: one.difference_usd_exact,
    basis: 'stated',
  }));
  const total = { token_class: 'total', difference_usd: totals.recoverable_usd_exact };
  const requested = {
    token_class: 'credit requested',
    difference_usd: dollarsText(BigInt(totals.recoverable_cents)).replace(/[$,]/g, ''),
  };
  const lines = [...evidence.cells.map(lineOf), ...netted, total, requested] as Record<string, string>[];
  return [COLUMNS as readonly string[], ...lines.map((line) => COLUMNS.map((name) => line[name] ?? ''))]
    .map((cells) => cells.map(cellText).join(','))
    .map((line) => `${line}\r\n`)
    .join('');
}

function lineOf(cell: EvidenceCell): Partial<Record<(typeof COLUMNS)[number], string>> {
  const word = (value: boolean | null) => (value === null ? '' : String(value));
  return {
    dispute_id: cell.dispute_id,
    day: cell.day,
    model: cell.model,
    token_class: cell.token_class,
    service_tier: cell.service_tier,
    is_batch: word(cell.is_batch),
    long_context: word(cell.long_context),
    region: cell.region ?? '',
    billed_quantity: cell.billed_quantity ?? '',
    right_quantity: cell.right_quantity ?? '',
    observed_quantity: cell.observed_quantity ?? '',
    billed_usd_per_mtok: cell.billed_rate_usd === null ? '' : String(cell.billed_rate_usd),
    billed_usd: cell.billed_usd_exact,
    expected_usd_per_mtok: cell.expected_rate_usd === null ? '' : String(cell.expected_rate_usd),
    expected_usd: cell.expected_usd_exact,
    difference_usd: cell.difference_usd_exact,
    basis: cell.basis,
  };
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** A cell of RFC 4180 that no spreadsheet takes for a formula; numbers stay numbers. */
function cellText(value: string): string {
  return NUMBER.test(value) ? value : csvText(value);
}
