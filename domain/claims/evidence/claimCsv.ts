import { csvText } from '../../csv.js';
import { decimalFromScaled, parseScaled } from '../../money.js';
import { dollarsText } from '../financialSummary.js';
import { type ClaimEvidence, EVIDENCE_FORMAT, type EvidenceCell } from './claimEvidence.js';

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

/** The claim's lines with exact dollars, totals, and the credit rounded down; formula cells get an apostrophe. */
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

/** A cell of RFC 4180 that spreadsheets do not read as a formula; numbers stay numbers. */
function cellText(value: string): string {
  return NUMBER.test(value) ? value : csvText(value);
}

/**
 * Divides the usage report's quantity among lines, since several lines of a bill can share one record of the
 * report.
 */

/** Decimals of a quantity. */
const DIGITS = 12;

/** Fills `usage_report_quantity` and its total; the parts of lines that share rows add up to the rows. */
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

/** Groups lines by the report rows that they share, without lines whose part is known. */
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

/** Divides by the observed calls if they account for the report's total, else in proportion to the bill. */
function partsOf(total: bigint, lines: readonly EvidenceCell[]): bigint[] {
  if (lines.length === 1) return [total];
  const observed = lines.map((line) => scaled(line.observed_quantity));
  if (sumOf(observed) === total) return observed;
  const billed = lines.map((line) => scaled(line.billed_quantity));
  return inProportion(total, billed);
}

/** Divides into whole units that add up to the total. */
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

/** A file of a pack as the manifest lists it. */
export interface PackedFile {
  name: string;
  mediaType: string;
  sizeBytes: number;
  sha256: string;
}

/** The text of `manifest.json`: every other file of a pack in order, with its sha256. */
export function packManifest(
  of: { claimId: string; evidenceSha256: string },
  files: readonly PackedFile[],
): string {
  const manifest = {
    format: EVIDENCE_FORMAT,
    claim_id: of.claimId,
    evidence_sha256: of.evidenceSha256,
    files: files.map(({ name, mediaType, sizeBytes, sha256 }) => ({
      path: name,
      media_type: mediaType,
      size_bytes: sizeBytes,
      sha256,
    })),
  };
  return `${JSON.stringify(manifest, null, 1)}\n`;
}

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/**
 * Canonical JSON: no spaces, names in UTF-16 order. Its UTF-8 bytes are hashed, so any implementation can rebuild
 * the hash.
 */
export function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const parts = Object.keys(value)
    .sort()
    .flatMap((name) => {
      const one = value[name];
      return one === undefined ? [] : [`${JSON.stringify(name)}:${canonicalJson(one)}`];
    });
  return `{${parts.join(',')}}`;
}

const isList = (value: object): value is readonly JsonValue[] => Array.isArray(value);
