import { csvText } from '../../csv.js';
import { decimalFromScaled, parseScaled } from '../../money.js';
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

/**
 * The part of the provider's usage report that belongs to each line of a claim. A bill may charge on several lines, as
 * short and long requests, what the report counts in one record.
 */

/** Quantities have twelve digits behind the point. */
const DIGITS = 12;

/**
 * Lines with `usage_report_quantity` as their own part and `usage_report_total_quantity` as the sum of their rows. Lines
 * whose part is known are returned as they are. The parts of lines that share rows add up to the sum of the rows.
 */
export function withUsageReportParts(cells: readonly EvidenceCell[]): EvidenceCell[] {
  const parts = new Map<EvidenceCell, string>();
  for (const group of groupsOfReport(cells)) {
    const total = scaled(group[0]?.usage_report_quantity ?? null);
    for (const [at, part] of partsOf(total, group).entries())
      parts.set(group[at] as EvidenceCell, decimalFromScaled(part, DIGITS));
  }
  return cells.map((cell) => {
    const part = parts.get(cell);
    if (part === undefined) return { usage_report_total_quantity: null, ...cell };
    return { ...cell, usage_report_quantity: part, usage_report_total_quantity: cell.usage_report_quantity };
  });
}

/** The lines that rest on the same rows of the report, together; those whose part is known are left out. */
function groupsOfReport(cells: readonly EvidenceCell[]): EvidenceCell[][] {
  const groups = new Map<string, EvidenceCell[]>();
  for (const cell of cells) {
    if (cell.usage_report_quantity === null || cell.usage_report_total_quantity !== undefined) continue;
    const { dispute_id, day, token_class, usage_report_quantity, usage_report_rows } = cell;
    const key = JSON.stringify([dispute_id, day, token_class, usage_report_quantity, usage_report_rows]);
    groups.set(key, [...(groups.get(key) ?? []), cell]);
  }
  return [...groups.values()];
}

/**
 * As the calls divide it where they account for all that the report counts, else in proportion to what is billed: a
 * charge that counts more than the report is taken to do so alike on all lines.
 */
function partsOf(total: bigint, lines: readonly EvidenceCell[]): bigint[] {
  if (lines.length === 1) return [total];
  const observed = lines.map((line) => scaled(line.observed_quantity));
  if (sumOf(observed) === total) return observed;
  const billed = lines.map((line) => scaled(line.billed_quantity));
  return inProportion(total, billed);
}

/** In whole units that add up to the total. */
function inProportion(total: bigint, weights: readonly bigint[]): bigint[] {
  const sum = sumOf(weights);
  if (sum === 0n) return weights.map((_, at) => (at === 0 ? total : 0n));
  const ends = weights.map((_, at) => (total * sumOf(weights.slice(0, at + 1))) / sum / ONE);
  return ends.map((end, at) => {
    const isLast = at === ends.length - 1;
    return (isLast ? total : end * ONE) - (at === 0 ? 0n : (ends[at - 1] ?? 0n) * ONE);
  });
}

const ONE = 10n ** BigInt(DIGITS);
const sumOf = (list: readonly bigint[]): bigint => list.reduce((sum, one) => sum + one, 0n);
const scaled = (text: string | null): bigint => (text === null ? 0n : (parseScaled(text, DIGITS) ?? 0n));
