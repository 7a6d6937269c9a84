import { compare } from '../compare.js';
import { centsFromPico, PICO_PER_USD, type Pico } from '../money.js';
import { apportion, divideByWeights } from './apportion.js';

/** Label of the group of calls without a value of the dimension. */
export const UNSET_KEY = '<unset>';
/** Label of the group that sums the unlisted groups. */
export const OTHER_KEY = '<other>';
/** The key of the unlisted groups during the computation; labels contain no control characters. */
const REST = '\u001f';

export const CHARGEBACK_DIMENSIONS = [
  'provider',
  'model',
  'api_key_hash',
  'team_id',
  'feature',
  'project_id',
  'user_id',
  'api_key_id',
] as const;
export type ChargebackDimension = (typeof CHARGEBACK_DIMENSIONS)[number];

/** The division of spend without a bucket: none, in proportion to the buckets' costs, or evenly. */
export const ALLOCATIONS = ['none', 'by_share', 'even'] as const;
export type Allocation = (typeof ALLOCATIONS)[number];

/** The cost of calls with one value of the dimension; '': calls without a value. */
export interface CalledSpend {
  key: string;
  costPico: Pico;
  tokens: number;
  rows: number;
}

/** Billed spend that no call explains. `key`: the bill's value of the dimension; null: the bill has none. */
export interface UncalledSpend {
  key: string | null;
  /** Usage that calls could have shown. */
  unobservedPico: Pico;
  /** Charges that no call can show. */
  feesPico: Pico;
}

export interface ChargebackBucket extends CalledSpend {
  /** The bucket's share of spend without a bucket; negative for a bucket whose own spend was divided among others. */
  allocatedPico: Pico;
  /** costPico + allocatedPico, rounded so that all buckets sum to the total. */
  costCents: bigint;
}

export interface Chargeback {
  /** Most expensive first; `key` is the shown label. */
  buckets: ChargebackBucket[];
  totalPico: Pico;
  totalCents: bigint;
  /** The allocated amounts; null: nothing was allocated. */
  allocated: { unsetPico: Pico; unobservedPico: Pico; feesPico: Pico } | null;
}

const PICO_PER_CENT = PICO_PER_USD / 100n;

/**
 * Computes the buckets of a chargeback. `listed` are the groups with a bucket each; `all` is the sum of every
 * group, from which the bucket of the remaining groups follows.
 */
export function chargeBack(
  listed: readonly CalledSpend[],
  all: Omit<CalledSpend, 'key'>,
  allocation: Allocation,
  uncalled: readonly UncalledSpend[],
): Chargeback {
  const rest = subtract(all, listed);
  const isRest = rest.rows !== 0 || rest.costPico !== 0n || rest.tokens !== 0;
  const called = isRest ? [...listed, { key: REST, ...rest }] : [...listed];
  const shared = allocation === 'none' ? undefined : share(called, allocation, uncalled);
  const exact = (shared?.buckets ?? called.map((spend) => ({ ...spend, allocatedPico: 0n }))).sort(
    (a, b) => comparePico(chargedPico(b), chargedPico(a)) || compare(a.key, b.key),
  );
  const totalPico = exact.reduce((sum, bucket) => sum + chargedPico(bucket), 0n);
  const totalCents = centsFromPico(totalPico);
  const cents = apportion(exact.map(chargedPico), PICO_PER_CENT, totalCents);
  const buckets = exact.map((bucket, at) => ({
    ...bucket,
    key: bucket.key === '' ? UNSET_KEY : bucket.key === REST ? OTHER_KEY : bucket.key,
    costCents: cents[at] ?? 0n,
  }));
  return { buckets, totalPico, totalCents, allocated: shared?.allocated ?? null };
}

type ExactBucket = Omit<ChargebackBucket, 'costCents'>;

const chargedPico = ({ costPico, allocatedPico }: ExactBucket): Pico => costPico + allocatedPico;
const comparePico = (a: Pico, b: Pico): number => (a < b ? -1 : a > b ? 1 : 0);

function subtract(all: Omit<CalledSpend, 'key'>, listed: readonly CalledSpend[]): Omit<CalledSpend, 'key'> {
  const rest = { costPico: all.costPico, tokens: all.tokens, rows: all.rows };
  for (const { costPico, tokens, rows } of listed) {
    rest.costPico -= costPico;
    rest.tokens -= tokens;
    rest.rows -= rows;
  }
  return rest;
}

/**
 * Billed spend with a value goes to the bucket of that value. Other billed spend, and the cost of calls without a
 * value, is divided among the buckets with a value; if there are none, it stays with the calls without a value.
 */
function share(
  called: readonly CalledSpend[],
  allocation: Exclude<Allocation, 'none'>,
  uncalled: readonly UncalledSpend[],
): { buckets: ExactBucket[]; allocated: NonNullable<Chargeback['allocated']> } {
  const buckets = new Map<string, ExactBucket>();
  for (const spend of called) buckets.set(spend.key, { ...spend, allocatedPico: 0n });
  const bucketOf = (key: string): ExactBucket => {
    const bucket = buckets.get(key) ?? { key, costPico: 0n, tokens: 0, rows: 0, allocatedPico: 0n };
    buckets.set(key, bucket);
    return bucket;
  };
  const allocated = { unsetPico: 0n, unobservedPico: 0n, feesPico: 0n };
  let poolPico = 0n;
  for (const { key, unobservedPico, feesPico } of uncalled) {
    const pico = unobservedPico + feesPico;
    allocated.unobservedPico += unobservedPico;
    allocated.feesPico += feesPico;
    if (key === null) poolPico += pico;
    else if (pico !== 0n) bucketOf(key).allocatedPico += pico;
  }
  const named = [...buckets.values()].filter(({ key }) => key !== '');
  if (named.length === 0) {
    if (poolPico !== 0n) bucketOf('').allocatedPico += poolPico;
    return { buckets: [...buckets.values()], allocated };
  }
  const unset = buckets.get('');
  if (unset) {
    allocated.unsetPico = unset.costPico;
    unset.allocatedPico = -unset.costPico;
    poolPico += unset.costPico;
  }
  const weights = named.map((bucket) => (allocation === 'even' ? 1n : positive(chargedPico(bucket))));
  for (const [at, part] of divideByWeights(poolPico, weights).entries())
    (named[at] as ExactBucket).allocatedPico += part;
  return { buckets: [...buckets.values()], allocated };
}

/** A bucket with a negative cost, by corrections of earlier months, gets no share. */
const positive = (pico: Pico): Pico => (pico > 0n ? pico : 0n);
