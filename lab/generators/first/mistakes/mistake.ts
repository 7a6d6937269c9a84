/** The form of a planted mistake of a provider. */
import type { Charge, ExtraLine } from '../../bills/ledger.js';
import type { Random } from '../../support/random.js';
import type { Booking } from '../booking.js';
import type { Series } from '../series.js';
import type { UsedCall } from '../traffic.js';

/**
 * What a reader of the documents has to go by. `rate`: quantities and labels are right, the amount is not. `label`: the
 * bill says of the calls what they were not, at the rates of what it says. `quantity`: more or less is counted than was
 * used. `key`: whose usage it was. `nothing`: the documents fit as well with something innocent.
 */
export type Nature = 'rate' | 'label' | 'quantity' | 'key' | 'nothing';

export interface Mistake {
  form: string;
  cause: string;
  otherNames?: readonly string[];
  nature: Nature;
  /** Every class by the same factor, so that an amount alone looks like more or less usage. */
  isUniform?: boolean;
  /** Another mistake of the library gives exactly the same amounts. */
  hasTwin?: boolean;
  /** Amounts by class without quantities cannot tell it from a wrong rate. */
  needsQuantity?: boolean;
  /** It needs the bill's quantities beside those of a usage report. */
  needsSecondCount?: boolean;
  /** Only a client that tells what the provider answered can show it. */
  needsAnswers?: boolean;
  /** It begins and ends at midnight. */
  isWholeDays?: boolean;
  /** It is noticed and ended sooner than others. */
  daysHigh?: number;
  /** Why the documents cannot show it, where they cannot. */
  reason?: string;
  /** How the call was booked instead. `seconds`: when. */
  bill: (call: UsedCall, right: Booking, seconds: number, charge: Charge) => Booking;
  /** The series on whose lines the usage landed too. */
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
  /** Series of the same account that nothing is planted in. */
  neighbours: readonly Series[];
}

/** A kind of mistake: what it would be in a series, or undefined where the series cannot have it. */
export type Kind = (series: Series, context: PlantContext) => Mistake | undefined;

/** The booking with every charge changed, in the bill alone. */
export function atRates(right: Booking, rates: (charge: Charge) => Charge['rates']): Booking {
  return { cost: right.cost.map((charge) => ({ ...charge, rates: rates(charge) })), usage: right.usage };
}

/** The booking with every charge changed, in the bill and in the usage report. */
export function changed(right: Booking, change: (charge: Charge) => Charge): Booking {
  return { cost: right.cost.map(change), usage: right.usage.map(change) };
}

/** Rates with one class replaced. */
export const withRate = (rates: Charge['rates'], tokenClass: number, rate: bigint): Charge['rates'] =>
  rates.map((one, at) => (at === tokenClass ? rate : one));

/** Neither batch, long, nor of a tier or place with a price of its own. */
export const isOrdinary = (call: UsedCall): boolean =>
  !call.isBatch && !call.isLong && call.tier === 'standard';
