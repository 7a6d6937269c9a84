/** The form of a planted mistake of a provider. */
import type { Charge, ExtraLine } from '../../bills/ledger.js';
import type { Random } from '../../support/random.js';
import type { Booking } from '../booking.js';
import type { Series } from '../series.js';
import type { UsedCall } from '../traffic.js';

/**
 * The evidence in the documents. `rate`: quantities and labels are right, the amount is wrong. `label`: the bill
 * labels the calls wrongly and charges the rates of that label. `quantity`: more or less is counted than was used.
 * `key`: the owner of the usage is in question. `nothing`: a benign cause fits the documents equally well.
 */
export type Nature = 'rate' | 'label' | 'quantity' | 'key' | 'nothing';

export interface Mistake {
  form: string;
  cause: string;
  otherNames?: readonly string[];
  nature: Nature;
  /** Every class changes by the same factor, so that an amount alone looks like more or less usage. */
  isUniform?: boolean;
  /** Another mistake of the library causes exactly the same amounts. */
  hasTwin?: boolean;
  /** Without quantities, amounts by class cannot separate it from a wrong rate. */
  needsQuantity?: boolean;
  /** It can only be identified by comparing the bill's quantities with a usage report. */
  needsSecondCount?: boolean;
  /** Only a client that reports the provider's answers can show it. */
  needsAnswers?: boolean;
  /** It begins and ends at midnight. */
  isWholeDays?: boolean;
  /** Maximum days: it is noticed and ended sooner than others. */
  daysHigh?: number;
  /** The reason why the documents cannot show it; absent: they can. */
  reason?: string;
  /** Changes the booking of a call. `seconds`: the time of the booking. */
  bill: (call: UsedCall, right: Booking, seconds: number, charge: Charge) => Booking;
  /** The series whose lines also contain the usage. */
  partner?: Series;
  /** Lines besides tokens, by day. */
  extras?: ((firstDay: number, lastDay: number) => ExtraLine[]) | undefined;
  /** A key that was revoked when the mistake began; its calls are the mistake. */
  revokedKeyId?: string;
}

export interface PlantContext {
  random: Random;
  firstDay: number;
  lastDay: number;
  /** Series of the same account without a planted mistake or confounder. */
  neighbours: readonly Series[];
}

/** A kind of mistake: the mistake in a series; undefined: the series cannot have it. */
export type Kind = (series: Series, context: PlantContext) => Mistake | undefined;

/** The booking with every charge changed in the bill alone. */
export function atRates(right: Booking, rates: (charge: Charge) => Charge['rates']): Booking {
  return { cost: right.cost.map((charge) => ({ ...charge, rates: rates(charge) })), usage: right.usage };
}

/** The booking with every charge changed in the bill and in the usage report. */
export function changed(right: Booking, change: (charge: Charge) => Charge): Booking {
  return { cost: right.cost.map(change), usage: right.usage.map(change) };
}

/** Rates with one class replaced. */
export const withRate = (rates: Charge['rates'], tokenClass: number, rate: bigint): Charge['rates'] =>
  rates.map((one, at) => (at === tokenClass ? rate : one));

/** Neither batch nor long, and without a tier or place with a separate price. */
export const isOrdinary = (call: UsedCall): boolean =>
  !call.isBatch && !call.isLong && call.tier === 'standard';
