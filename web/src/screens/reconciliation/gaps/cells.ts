import type { components } from '../../../api/client';
import { count, usd } from '../../../app/format';
import { providerName } from '../../../app/providers';
import { exactSum, negated } from '../../../parts/exactSum';

export type Bucket = components['schemas']['GapBucket'];
export type Look = 'matched' | 'partial' | 'unmatched' | 'aside' | 'provisional';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export const LOOK: Record<Look, string> = {
  matched: 'Matched',
  partial: 'Partly matched',
  unmatched: 'One side has no usage',
  aside: 'No call can show it',
  provisional: 'Provisional',
};

export const REASON: Record<NonNullable<Bucket['reason']>, string> = {
  not_observable: 'No call can show this charge.',
  not_yet_observed: 'The day began before the account’s first event.',
  free_allowance: 'Usage at amount zero.',
  not_in_cost_report: 'Prepaid usage that the provider’s report omits.',
  unconverted: 'A part is in a currency without a known rate.',
  unparsed_line: 'The label on the bill is unknown.',
  unbilled: 'Calls without a line on the bill.',
  unpriced: 'The model has no known price.',
};

/** Reasons that are never a gap. */
const ASIDE: readonly Bucket['reason'][] = [
  'not_observable',
  'not_yet_observed',
  'free_allowance',
  'not_in_cost_report',
  'unconverted',
];

export interface Row {
  key: string;
  provider: string;
  account: string;
  model: string;
  cells: Map<string, Bucket>;
}

export interface Grid {
  /** Days `2026-10-06`, or hours `2026-10-06T05`. */
  columns: string[];
  rows: Row[];
  /** The largest difference of a bucket, in dollars; at least one. */
  largest: number;
}

export const gapOf = (bucket: Bucket) => bucket.provider_cost_usd - bucket.our_cost_usd;
export const exactGapOf = (bucket: Bucket) =>
  exactSum([bucket.provider_cost_usd, negated(bucket.our_cost_usd)]);

export function lookOf(bucket: Bucket): Look {
  if (bucket.provisional) return 'provisional';
  if (ASIDE.includes(bucket.reason)) return 'aside';
  return bucket.match_status;
}

/** Buckets in rows of one provider, account and model, and columns of one day or hour. */
export function gridOf(
  buckets: readonly Bucket[],
  period: { start: string; end: string },
  isHourly: boolean,
): Grid {
  const digits = isHourly ? 13 : 10;
  const step = isHourly ? HOUR_MS : DAY_MS;
  const columns: string[] = [];
  for (let at = Date.parse(period.start); at < Date.parse(period.end); at += step)
    columns.push(new Date(at).toISOString().slice(0, digits));
  const rows = new Map<string, Row>();
  for (const bucket of buckets) {
    const key = `${bucket.provider}|${bucket.provider_account_id}|${bucket.model}`;
    let row = rows.get(key);
    if (!row) {
      const { provider, provider_account_id: account, model } = bucket;
      row = { key, provider, account, model, cells: new Map() };
      rows.set(key, row);
    }
    row.cells.set(bucket.bucket.slice(0, digits), bucket);
  }
  return {
    columns,
    rows: [...rows.values()].sort(
      (one, other) => one.provider.localeCompare(other.provider) || one.model.localeCompare(other.model),
    ),
    largest: Math.max(1, ...buckets.map((bucket) => Math.abs(gapOf(bucket)))),
  };
}

/** The sentence that a screen reader reads for a cell. */
export function cellLabel(row: Row, column: string, bucket: Bucket | undefined): string {
  const place = `${providerName(row.provider)} ${row.model}, ${columnName(column)}`;
  if (!bucket) return `${place}: no bill and no calls`;
  return `${place}: ${LOOK[lookOf(bucket)]}${bucket.flagged_gap ? ', flagged' : ''}, billed ${usd(bucket.provider_cost_usd)}, observed ${usd(bucket.our_cost_usd)}`;
}

export const columnName = (column: string) =>
  column.length > 10 ? `${column.slice(0, 10)} ${column.slice(11)}:00 UTC` : column;

export const minutes = (value: number | null) => (value === null ? '–' : `${count(value)} min`);
