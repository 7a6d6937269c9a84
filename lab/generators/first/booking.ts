/** Applies the provider's documented rules to a call: its charges on the bill and its counts in the usage report. */

import type { Charge, Ledger } from '../bills/ledger.js';
import { type Asked, type BookModel, listRates, periodAt, type Rates, scaled } from '../bills/rateBook.js';
import { dayOf, HOUR_SECONDS } from '../support/days.js';
import type { Series } from './series.js';
import type { UsedCall } from './traffic.js';

/** The booking of a call: charges are listed as often as they are counted. */
export interface Booking {
  cost: Charge[];
  usage: Charge[];
}

/** The rates on the day of the booking; with another time zone that day can precede the requested rates. */
export function ratesAt(book: BookModel, call: UsedCall, seconds: number, asked: Asked): Rates {
  try {
    return listRates(book, periodAt(book, dayOf(seconds)), asked);
  } catch {
    return listRates(book, periodAt(book, dayOf(call.endSeconds)), asked);
  }
}

export const askedOf = (call: UsedCall): Asked => ({
  isBatch: call.isBatch,
  isLong: call.isLong,
  tier: call.tier,
  geo: call.geo,
});

/** A call's charge by list price, contract and other agreements. */
export function chargeOf(call: UsedCall, series: Series, seconds: number): Charge {
  const list = ratesAt(series.book, call, seconds, askedOf(call));
  const { hiddenPerMille } = series.circumstances;
  return {
    provider: series.provider,
    accountId: series.accountId,
    keyId: call.key.keyId,
    project: call.key.project,
    model: series.book.billed,
    isBatch: call.isBatch,
    isLong: call.isLong,
    tier: call.tier,
    geo: call.geo,
    tokens: call.tokens,
    rates: scaled(scaled(list, series.contractPerMille), hiddenPerMille),
    requests: 1,
  };
}

/**
 * The right booking: failed attempts are not billed, a free allowance has amount zero, prepaid usage is only in
 * the usage report.
 */
export function rightBooking(call: UsedCall, series: Series, seconds: number): Booking {
  if (call.status === 'error') return { cost: [], usage: [] };
  const charge = chargeOf(call, series, seconds);
  if (series.circumstances.isPaidAhead(call)) return { cost: [], usage: [{ ...charge, tier: 'priority' }] };
  if (series.circumstances.isFree(call)) {
    const free = { ...charge, rates: charge.rates.map(() => 0n) };
    return { cost: [free], usage: [free] };
  }
  return { cost: [charge], usage: [charge] };
}

/** A number of [0, 1) that depends on the call alone, not on other draws. */
export function lotOf(call: UsedCall, salt: number): number {
  let mixed = (call.endSeconds ^ Math.imul(salt + 1, 0x9e3779b1)) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b) ^ (call.tokens[0] as number);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 4_294_967_296;
}

/** The days whose bill is incomplete when it is read, and the share that it contains. */
export interface Window {
  firstDay: number;
  lastDay: number;
  /** The first provisional day. */
  provisionalFrom: number;
}

const LAST_DAY_HOURS = 14;
const LATE_SHARE = 0.06;

/** Whether the provider has booked the call when the bill is read. */
export function isBooked(call: UsedCall, seconds: number, window: Window): boolean {
  const day = dayOf(seconds);
  if (day < window.firstDay || day > window.lastDay) return false;
  if (day < window.provisionalFrom) return true;
  if (day === window.lastDay && seconds % (24 * HOUR_SECONDS) >= LAST_DAY_HOURS * HOUR_SECONDS) return false;
  return lotOf(call, 7) >= LATE_SHARE;
}

/** Writes a booking into the ledger. */
export function book(ledger: Ledger, booking: Booking, seconds: number): void {
  for (const charge of booking.cost) ledger.addCost(charge, seconds);
  for (const charge of booking.usage) ledger.addUsage(charge, seconds);
}
