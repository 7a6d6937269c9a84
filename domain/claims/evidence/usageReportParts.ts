/**
 * The part of the provider's usage report that belongs to each line of a claim. A bill may charge on several lines, as
 * short and long requests, what the report counts in one record.
 */
import { decimalFromScaled, parseScaled } from '../../money.js';
import type { EvidenceCell } from './claimEvidence.js';

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
