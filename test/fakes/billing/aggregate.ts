/** Builds the buckets of a provider's answer from its data: filtered, summed into days, grouped. */
import { isDecimalText, isNumberText, type NumberText, sumDecimals } from '../../../lab/bills/exactJson.js';
import type { BucketResults } from '../../../lab/bills/pages.js';

type Result = Record<string, unknown>;

/** The dimensions of a report's results. */
export interface Dimension {
  field: string;
  /** Fields that have a value only while the results are grouped by this one. */
  dependents?: readonly string[];
}

export interface Selection {
  startSeconds: number;
  endSeconds: number;
  widthSeconds: number;
  dimensions: readonly Dimension[];
  groupBy: ReadonlySet<string>;
  /** Field → the permitted values; 'null' stands for null. */
  filters: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Texts that are amounts and are summed as such. */
const SUMMED_TEXTS: ReadonlySet<string> = new Set(['amount', 'value']);

/** One bucket for each width of the window, also without charges; a partial width counts as a whole one. */
export function selectBuckets(truth: readonly BucketResults[], selection: Selection): BucketResults[] {
  const { widthSeconds } = selection;
  const first = Math.floor(selection.startSeconds / widthSeconds) * widthSeconds;
  const byBucket = new Map<number, Result[]>();
  for (const bucket of truth) {
    const at = Math.floor(bucket.startSeconds / widthSeconds) * widthSeconds;
    if (at < first || at >= selection.endSeconds) continue;
    const kept = (bucket.results as Result[]).filter((result) => passes(result, selection.filters));
    byBucket.set(at, [...(byBucket.get(at) ?? []), ...kept]);
  }
  const buckets: BucketResults[] = [];
  for (let at = first; at < selection.endSeconds; at += widthSeconds) {
    const results = groupResults(byBucket.get(at) ?? [], selection);
    buckets.push({ startSeconds: at, endSeconds: at + widthSeconds, results });
  }
  return buckets;
}

function passes(result: Result, filters: Selection['filters']): boolean {
  for (const [field, allowed] of filters) {
    if (!allowed.has(String(result[field] ?? null))) return false;
  }
  return true;
}

function groupResults(results: readonly Result[], selection: Selection): Result[] {
  const groups = new Map<string, Result>();
  for (const result of results) {
    const narrowed = narrow(result, selection);
    const key = JSON.stringify(selection.dimensions.map(({ field }) => narrowed[field] ?? null));
    const known = groups.get(key);
    groups.set(key, known ? (merge(known, narrowed, '') as Result) : narrowed);
  }
  return [...groups.values()];
}

/** Fields that are not grouped by are null. */
function narrow(result: Result, { dimensions, groupBy }: Selection): Result {
  const narrowed: Result = { ...result };
  for (const { field, dependents } of dimensions) {
    if (groupBy.has(field)) narrowed[field] = result[field] ?? null;
    else for (const name of [field, ...(dependents ?? [])]) narrowed[name] = null;
  }
  return narrowed;
}

/** Merges two results of a group: counts are summed exactly, other different values become null. */
function merge(a: unknown, b: unknown, key: string): unknown {
  if (isNumeric(a) && isNumeric(b)) return { $number: sumDecimals([textOf(a), textOf(b)]) };
  if (SUMMED_TEXTS.has(key) && isDecimalText(a) && isDecimalText(b)) return sumDecimals([a, b]);
  if (isObject(a) && isObject(b)) {
    const names = new Set([...Object.keys(a), ...Object.keys(b)]);
    return Object.fromEntries([...names].map((name) => [name, merge(a[name], b[name], name)]));
  }
  if (a === undefined || b === undefined) return a ?? b;
  return a === b ? a : null;
}

function isNumeric(value: unknown): value is number | NumberText {
  return typeof value === 'number' || isNumberText(value);
}

function textOf(value: number | NumberText): string {
  return typeof value === 'number' ? String(value) : value.$number;
}

function isObject(value: unknown): value is Result {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumberText(value);
}
