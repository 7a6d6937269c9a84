/** A kind of mistake, and changes that several kinds share. */
import type { GeneratedVisibility } from '../../world.js';
import type { Booking, Line } from '../booking.js';
import type { Period, Series } from '../company.js';
import { FRESH, KEEP_LONG, KEEP_SHORT, type Prices, READ } from '../tariffs.js';
import type { Call } from '../traffic.js';

/**
 * The proof of a mistake: the bill alone (`rate`), a contradiction between bill and usage report or a key on the bill
 * (`sealed`), or the company's calls (`count`).
 */
export type Proof = 'rate' | 'sealed' | 'count';

export interface Mistake {
  id: string;
  kind: Kind;
  series: Series;
  /** Half-open, Unix seconds. */
  from: number;
  to: number;
  /** The only affected key, or the only affected place; both undefined: all. */
  keyId: string | undefined;
  isElsewhere: boolean | undefined;
  /** A number that a kind drew for the whole window. */
  drawn: number;
  partner: Series | undefined;
}

export interface Kind {
  form: string;
  cause: string;
  otherNames?: readonly string[];
  weight: number;
  proof: Proof;
  /** Mistakes of lower order are made first. */
  order: number;
  /** Visibilities whose documents could show it. */
  shownAt: readonly GeneratedVisibility[];
  /** Its longest window in days; absent: three weeks. */
  longest?: number;
  /** Additional calls of a stranger, as a share of the series' calls. */
  intruders?: number;
  /** undefined: any. A failed attempt must be refused by the provider as the client reports it. */
  needs?: 'answers';
  isPossible(series: Series, company: readonly Series[], period: Period): boolean;
  /** The wrong booking; undefined: this call is not affected. */
  change(call: Call, booking: Booking, mistake: Mistake): Booking | undefined;
}

export const ALL: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1', 'V0'];
export const CLASSES: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1'];
export const FULL: readonly GeneratedVisibility[] = ['V3'];

export const last = (series: Series) => series.tariff.steps[series.tariff.steps.length - 1];
export const some = (series: Series, has: (service: Series['services'][number]) => boolean) =>
  series.services.some(has);
export const reads = (series: Series) => some(series, ({ readShare }) => readShare > 0.1);
export const keepsShort = (series: Series) => some(series, (one) => one.writeShare > 0.02 && !one.keepsLong);
export const isOf =
  (...providers: string[]) =>
  (series: Series) =>
    providers.includes(series.account.provider);
export const isPlain = ({ use }: Call) => !use.isBatch && !use.isLong && use.tier === 'standard';

/** Changes each line of the bill, and not the usage report. */
export function onBill(booking: Booking, change: (line: Line) => Line): Booking {
  return { ...booking, cost: booking.cost.map(change) };
}

export const priced = (booking: Booking, change: (prices: Prices, line: Line) => Prices) =>
  onBill(booking, (line) => ({ ...line, prices: change(line.prices, line) }));

export const withMeter = (prices: Prices, meter: number, price: bigint): Prices =>
  prices.map((known, at) => (at === meter ? price : known));

export function moved(counts: readonly number[], from: number, to: number): number[] {
  const result = [...counts];
  result[to] = (result[to] ?? 0) + (result[from] ?? 0);
  result[from] = 0;
  return result;
}

/** The cached tokens once more as fresh input. */
export const twiceMetered = (counts: readonly number[]): number[] =>
  counts.map((count, at) =>
    at === FRESH ? count + (counts[READ] ?? 0) + (counts[KEEP_SHORT] ?? 0) + (counts[KEEP_LONG] ?? 0) : count,
  );
