import { QUANTITY_ONE } from '../../../domain/billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../../domain/events/event.js';
import { MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';
import type {
  BilledCell,
  CoveredAccount,
  DayInput,
  GapBucket,
  ObservedCell,
  UsageCell,
} from '../../../domain/reconciliation/matching/cells.js';
import { shippedBook } from '../pricing/support.js';

export const DAY = '2026-10-05';
export const DAY_MICROS = microsOfDay(DAY);
export const NOW = DAY_MICROS + 30n * MICROS_PER_DAY;
export const HOUR = MICROS_PER_DAY / 24n;
export const BOOK = shippedBook();
export const ACCOUNT = 'acct';

/** Dollars to pico-dollars, for literals of tests. */
export const usd = (text: string): bigint => {
  const [whole = '0', fraction = ''] = text.replace('-', '').split('.');
  const pico = BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, '0'));
  return text.startsWith('-') ? -pico : pico;
};

export const tokens = (count: number | bigint): bigint => BigInt(count) * QUANTITY_ONE;

export function aBilledCell(over: Partial<BilledCell> = {}): BilledCell {
  return {
    accountId: ACCOUNT,
    lineItem: '',
    model: 'gpt-6-sol',
    tokenClass: 'input',
    serviceTier: 'standard',
    isBatch: null,
    longContext: false,
    region: null,
    observable: true,
    rowCount: 1,
    quantity: tokens(1_000_000),
    amountPico: usd('2'),
    listAmountPico: null,
    roundingPico: 1_000n,
    ...over,
  };
}

export function aUsageCell(over: Partial<UsageCell> = {}): UsageCell {
  return {
    accountId: ACCOUNT,
    model: 'gpt-6-sol',
    tokenClass: 'input',
    serviceTier: 'default',
    isBatch: false,
    longContext: null,
    region: null,
    quantity: tokens(1_000_000),
    hourMicros: null,
    ...over,
  };
}

export function anObservedCell(
  over: Partial<Omit<ObservedCell, 'tokens'>> & { tokens?: Partial<Record<TokenClass, bigint>> } = {},
): ObservedCell {
  return {
    accountId: ACCOUNT,
    model: 'gpt-6-sol',
    serviceTier: '',
    isBatch: false,
    contextBand: 0,
    status: 'ok',
    hourMicros: DAY_MICROS,
    calls: 10,
    computedCostPico: usd('2'),
    unpriced: 0,
    priceGaps: 0,
    unmetered: 0,
    ...over,
    tokens: {
      ...Object.fromEntries(TOKEN_CLASSES.map((name) => [name, 0n])),
      ...(over.tokens ?? { input: 1_000_000n }),
    } as Record<TokenClass, bigint>,
  };
}

export function aCoveredAccount(over: Partial<CoveredAccount> = {}): CoveredAccount {
  return { accountId: ACCOUNT, fetchedAtMicros: NOW, provisionalDays: 2, ...over };
}

export function aDay(over: Partial<DayInput> = {}): DayInput {
  return {
    day: DAY,
    nowMicros: NOW,
    billed: [aBilledCell()],
    usage: [],
    observed: [anObservedCell()],
    covered: [aCoveredAccount()],
    sources: new Map(),
    observedSince: new Map([[ACCOUNT, DAY_MICROS - MICROS_PER_DAY]]),
    withHours: false,
    ...over,
  };
}

export function theBucket(buckets: readonly GapBucket[]): GapBucket {
  const [only, more] = buckets;
  if (!only || more)
    throw new Error(`expected one bucket, got ${buckets.map((bucket) => bucket.model).join(', ') || 'none'}`);
  return only;
}
