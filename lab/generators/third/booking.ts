/** The booking of a call at a provider: lines of the bill, and of its usage report. */

import { dayAt } from './calendar.js';
import type { Series } from './company.js';
import { listPrices, type Prices, stepOn, type Tariff, times, type Use } from './tariffs.js';
import type { Call } from './traffic.js';

/** A part of a line. */
export interface Line {
  tariff: Tariff;
  keyId: string;
  project: string;
  use: Use;
  /** In the order of METERS. */
  counts: readonly number[];
  prices: Prices;
}

/** Replaced, never changed in place, so that two bookings may share lines. */
export interface Booking {
  cost: readonly Line[];
  report: readonly Line[];
}

/** The agreed prices of a call's use, or of another use of the same model at the same time; undefined: none. */
export function agreedPrices(call: Call, change: Partial<Use> = {}): Prices | undefined {
  const { series, at, use } = call;
  const listed = listPrices(series.tariff, stepOn(series.tariff, dayAt(at)), { ...use, ...change });
  return listed && times(listed, series.perMille);
}

/** The right booking; a failed attempt costs nothing. */
export function rightBooking(call: Call): Booking {
  if (call.outcome === 'error') return { cost: [], report: [] };
  const line = lineOf(call, call.counts);
  return { cost: [line], report: [line] };
}

/** A line at the agreed prices. Throws where the call has none. */
export function lineOf(call: Call, counts: readonly number[]): Line {
  const prices = agreedPrices(call);
  if (!prices) throw new RangeError(`${call.series.id} has no price for ${JSON.stringify(call.use)}`);
  const { keyId, project } = call.service;
  return { tariff: call.series.tariff, keyId, project, use: call.use, counts, prices };
}

/** Dollars of 1e-15. */
export function amountOf(lines: readonly Line[]): bigint {
  let sum = 0n;
  for (const { counts, prices } of lines)
    for (let at = 0; at < counts.length; at += 1)
      if (counts[at] !== 0) sum += BigInt(counts[at] as number) * (prices[at] as bigint);
  return sum;
}

/** The name of a line's model on the bill; Bedrock bills each profile as a model of its own. */
export function billedModel({ tariff, use }: Pick<Line, 'tariff' | 'use'>): string {
  if (tariff.provider !== 'aws_bedrock' || tariff.elsewhere === 1_000) return tariff.billed;
  return `${use.isElsewhere ? 'us' : 'global'}.${tariff.told}`;
}

/** Another model of the same account that has a price for everything that this one has. */
export function dearerThan(series: Series, others: readonly Series[]): Series | undefined {
  const [mine] = series.tariff.steps.slice(-1);
  return others.find(({ account, tariff }) => {
    const [theirs] = tariff.steps.slice(-1);
    return (
      account === series.account &&
      mine !== undefined &&
      theirs !== undefined &&
      mine.standard.every((price, at) => price === 0 || (theirs.standard[at] ?? 0) > price * 1.2)
    );
  });
}
