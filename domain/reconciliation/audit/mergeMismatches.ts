import { decimalFromPico } from '../../money.js';
import { shiftDay } from '../../period.js';
import type { RateMismatch } from '../matching/cells.js';
import { billedRate } from '../matching/classLines.js';
import type { Meter } from '../matching/meters.js';
import { isTokenClass } from './dayRates.js';
import { type ChargeRates, findRateHints, judgeMeter } from './judgeMeter.js';

/** A stored mismatch of one day; exact integers are texts. */
export type StoredMismatch = {
  [K in Exclude<keyof RateMismatch, 'looksLike'>]: RateMismatch[K] extends bigint ? string : RateMismatch[K];
} & {
  /** Absent in units that were stored before hints existed. */
  looksLike?: readonly string[];
};

/** A mismatch over consecutive days, as a run reports it; numbers are decimal texts. */
export interface MergedMismatch {
  provider: string;
  provider_account_id: string;
  model: string;
  token_class: string;
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
  first_day: string;
  last_day: string;
  days: number;
  quantity: string;
  billed_rate: string;
  list_rate: string;
  billed_usd: string;
  expected_usd: string;
  excess_usd: string;
  price_source: string;
  agreement: string;
  disputed: boolean;
  /** Known mistakes that explain exactly these amounts on each day; absent in results older than hints. */
  looks_like?: string[];
}

interface Segment {
  provider: string;
  first: StoredMismatch;
  lastDay: string;
  days: number;
  quantity: bigint;
  billed: bigint;
  expected: bigint;
  looksLike: readonly string[];
}

/** Rates of two days that differ by less than one part in this many are the same error, since bills round. */
const SAME_RATE_PARTS = 10_000n;

/** Joins consecutive days of the same meter and wrong rate, largest amount first. */
export function mergeMismatches(
  units: readonly { provider: string; day: string; rateMismatches: readonly StoredMismatch[] }[],
): MergedMismatch[] {
  const open = new Map<string, Segment>();
  const closed: Segment[] = [];
  for (const unit of [...units].sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0))) {
    for (const mismatch of unit.rateMismatches) {
      const key = [
        unit.provider,
        mismatch.accountId,
        mismatch.model,
        mismatch.tokenClass,
        mismatch.serviceTier,
        mismatch.isBatch,
        mismatch.longContext,
        mismatch.region,
      ].join('|');
      const segment = open.get(key);
      if (segment && continues(segment, mismatch)) extend(segment, mismatch);
      else {
        if (segment) closed.push(segment);
        open.set(key, begin(unit.provider, mismatch));
      }
    }
  }
  return [...closed, ...open.values()].sort(byAmount).map(present);
}

function begin(provider: string, mismatch: StoredMismatch): Segment {
  return {
    provider,
    first: mismatch,
    lastDay: mismatch.day,
    days: 1,
    quantity: BigInt(mismatch.quantity),
    billed: BigInt(mismatch.billedPico),
    expected: BigInt(mismatch.expectedPico),
    looksLike: mismatch.looksLike ?? [],
  };
}

function continues(segment: Segment, mismatch: StoredMismatch): boolean {
  const isNextDay = mismatch.day === shiftDay(segment.lastDay, 1);
  return (
    isNextDay &&
    sameRate(segment.first.billedRate, mismatch.billedRate) &&
    sameRate(segment.first.listRate, mismatch.listRate)
  );
}

function sameRate(a: string, b: string): boolean {
  const [left, right] = [BigInt(a), BigInt(b)];
  const difference = left > right ? left - right : right - left;
  return difference * SAME_RATE_PARTS <= left;
}

function extend(segment: Segment, mismatch: StoredMismatch): void {
  segment.lastDay = mismatch.day;
  segment.days += 1;
  segment.quantity += BigInt(mismatch.quantity);
  segment.billed += BigInt(mismatch.billedPico);
  segment.expected += BigInt(mismatch.expectedPico);
  segment.looksLike = segment.looksLike.filter((hint) =>
    (mismatch.looksLike ?? []).some((other) => other === hint),
  );
}

function byAmount(a: Segment, b: Segment): number {
  const size = (segment: Segment) => {
    const excess = segment.billed - segment.expected;
    return excess < 0n ? -excess : excess;
  };
  const [left, right] = [size(a), size(b)];
  return left === right ? (a.first.day < b.first.day ? -1 : 1) : left > right ? -1 : 1;
}

function present(segment: Segment): MergedMismatch {
  const { first } = segment;
  return {
    provider: segment.provider,
    provider_account_id: first.accountId,
    model: first.model,
    token_class: first.tokenClass,
    service_tier: first.serviceTier,
    is_batch: first.isBatch,
    long_context: first.longContext,
    region: first.region,
    first_day: first.day,
    last_day: segment.lastDay,
    days: segment.days,
    quantity: decimalFromPico(segment.quantity),
    billed_rate: decimalFromPico(BigInt(first.billedRate)),
    list_rate: decimalFromPico(BigInt(first.listRate)),
    billed_usd: decimalFromPico(segment.billed),
    expected_usd: decimalFromPico(segment.expected),
    excess_usd: decimalFromPico(segment.billed - segment.expected),
    price_source: first.priceSource,
    agreement: first.agreement,
    disputed: first.disputed,
    looks_like: [...segment.looksLike],
  };
}

/**
 * Meters whose amount differs from quantity × rate by more than rounding. Assumed rates, zero amounts and mixtures
 * are never mismatches.
 */
export function findRateMismatches(
  place: { day: string; accountId: string; model: string },
  meters: readonly Meter[],
  pricedAs: string | null,
  rates: ChargeRates,
): RateMismatch[] {
  if (pricedAs === null) return [];
  return meters.flatMap((meter) => {
    const mismatch = mismatchOf(place, meter, pricedAs, rates);
    return mismatch ? [mismatch] : [];
  });
}

function mismatchOf(
  place: { day: string; accountId: string; model: string },
  meter: Meter,
  pricedAs: string,
  rates: ChargeRates,
): RateMismatch | undefined {
  const { tokenClass, quantity } = meter;
  if (!isTokenClass(tokenClass) || quantity === null || meter.split === 'observed_mix') return undefined;
  const { verdict, expectedPico } = judgeMeter(meter, pricedAs, rates.agreed);
  if (verdict !== 'differs' || expectedPico === null) return undefined;
  return {
    ...place,
    tokenClass,
    serviceTier: meter.serviceTier,
    isBatch: meter.isBatch,
    longContext: meter.longContext,
    region: meter.region,
    quantity,
    billedPico: meter.amountPico,
    expectedPico,
    billedRate: billedRate(meter.amountPico, quantity),
    listRate: billedRate(expectedPico, quantity),
    ...rates.agreed.provenance(pricedAs),
    looksLike: findRateHints(meter, pricedAs, rates),
  };
}
