/** A published case as the product sees it: its bill through the readers, its calls priced by the product's own prices. */
import { type BillingFileSummary, readBillingFile } from '../../../adapters/billing/file.js';
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import {
  type BillingFormat,
  factsOfFormat,
  isTierNamed,
  provisionalDaysOf,
} from '../../../domain/billing/sources.js';
import { MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';
import { priceCall } from '../../../domain/pricing/cost.js';
import { bookWithOwnPrices, type OwnPrice } from '../../../domain/pricing/ownPrices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import type {
  BilledCell,
  DayInput,
  ObservedCell,
  UsageCell,
} from '../../../domain/reconciliation/matching/cells.js';
import type { ChargePrices } from '../../../domain/reconciliation/matching/charges.js';
import { bookOf, type PeriodJson, shippedJson } from '../../domain/pricing/support.js';
import { type Calls, type CLASSES, type Day, type PublishedCase, perToken, shiftDay } from './case.js';
import { documentsOf } from './documents.js';

export const ACCOUNT = 'acct';
const HOURS = [3n, 9n, 15n, 21n];
const MICROS_PER_HOUR = MICROS_PER_DAY / 24n;
const STATE = { updatedAtMicros: 0n, contentHash: '00000000' };

/** The days that the product reconciles, and the prices. */
export interface CaseInput {
  days: DayInput[];
  prices: ChargePrices;
}

/** `read` gets the rows of the case's bill; by default those of its documents. */
export async function inputOf(
  one: PublishedCase,
  read: (one: PublishedCase) => Promise<BilledRow[]> = readRows,
): Promise<CaseInput> {
  const prices = pricesOf(one);
  const rows = await read(one);
  const last = one.days.at(-1)?.day ?? '';
  const nowMicros = microsOfDay(shiftDay(last, 40));
  const first = microsOfDay(one.days[0]?.day ?? '') - MICROS_PER_DAY;
  const days = one.days.map(
    (day): DayInput => ({
      day: day.day,
      nowMicros,
      billed: billedOf(rows, day.day, one.format),
      usage: usageOf(rows, day.day),
      observed: day.calls.flatMap((calls) => observedOf(one, day, calls, prices.agreed)),
      covered: [
        {
          accountId: ACCOUNT,
          fetchedAtMicros: nowMicros,
          provisionalDays: provisionalDaysOf([one.format], null, day.day),
        },
      ],
      sources: new Map([
        [
          ACCOUNT,
          new Map([
            [
              one.model,
              [
                {
                  serviceName: 'chat',
                  calls: day.calls.reduce((sum, { count }) => sum + count, 0),
                  callsWithoutCache: 0,
                },
              ],
            ],
          ]),
        ],
      ]),
      observedSince: new Map([[ACCOUNT, first]]),
      withHours: false,
    }),
  );
  return { days, prices };
}

export async function readRows(one: PublishedCase): Promise<BilledRow[]> {
  const rows: BilledRow[] = [];
  for (const { text } of documentsOf(one)) rows.push(...(await readDocument(one, text)).rows);
  return rows;
}

async function readDocument(
  one: PublishedCase,
  text: string,
): Promise<{ rows: BilledRow[]; summary: BillingFileSummary }> {
  async function* chunks() {
    yield Buffer.from(text);
  }
  const reading = readBillingFile(chunks(), {
    provider: one.provider,
    format: one.format,
    fxRate: undefined,
    skip: new Set(),
  });
  const rows: BilledRow[] = [];
  for (;;) {
    const next = await reading.next();
    if (next.done) {
      if (next.value.unparsed.length > 0)
        throw new Error(JSON.stringify(next.value.unparsed.map(({ label }) => label)));
      return { rows, summary: next.value };
    }
    rows.push(...next.value.map(({ row }) => row));
  }
}

/** Rows of a case are one to a cell: nothing has to be added up. */
function billedOf(rows: readonly BilledRow[], day: string, format: BillingFormat): BilledCell[] {
  return rows
    .filter((row) => row.feed === 'cost' && row.day === day)
    .map((row) => ({
      accountId: ACCOUNT,
      lineItem: row.model === null ? row.lineItem : '',
      model: row.model,
      tokenClass: row.tokenClass,
      serviceTier: row.serviceTier,
      isBatch: row.isBatch,
      longContext: row.longContext,
      region: row.region,
      observable: row.observable,
      rowCount: 1,
      quantity: row.quantity,
      amountPico: row.amountPico ?? 0n,
      listAmountPico: null,
      roundingPico: factsOfFormat(format).roundingPico,
      ...(isTierNamed(format, row.longContext) ? { tierNamed: true } : {}),
    }));
}

function usageOf(rows: readonly BilledRow[], day: string): UsageCell[] {
  return rows
    .filter((row) => row.feed === 'usage' && row.day === day)
    .map((row) => ({
      accountId: ACCOUNT,
      model: row.model,
      tokenClass: row.tokenClass,
      serviceTier: row.serviceTier,
      isBatch: row.isBatch,
      longContext: row.longContext,
      region: row.region,
      quantity: row.quantity ?? 0n,
      hourMicros: null,
    }));
}

/** Calls spread over the day; the remainder of the division is in the first hour. */
function observedOf(one: PublishedCase, day: Day, calls: Calls, book: PriceBook): ObservedCell[] {
  const each = one.told?.(calls) ?? calls.each;
  const count = (name: (typeof CLASSES)[number]) => each[name] ?? 0;
  const [written5m, written1h] = [count('cache_write_5m'), count('cache_write_1h')];
  const price = priceCall(book, {
    biller: one.provider,
    model: one.model,
    atMicros: microsOfDay(day.day) + 1n,
    isBatch: calls.isBatch ?? false,
    serviceTier: null,
    usage: {
      input: count('input'),
      cacheRead: count('cache_read'),
      cacheCreation: written5m + written1h,
      cacheCreation5m: written5m,
      cacheCreation1h: written1h,
      output: count('output'),
      inputAudio: 0,
      outputAudio: 0,
      reasoning: 0,
      cached: 0,
    },
  });
  const share = Math.floor(calls.count / HOURS.length);
  return HOURS.map((hour, index): ObservedCell => {
    const number = index === 0 ? calls.count - share * (HOURS.length - 1) : share;
    const tokens = (name: (typeof CLASSES)[number]) => BigInt(count(name)) * BigInt(number);
    return {
      accountId: ACCOUNT,
      model: one.model,
      serviceTier: '',
      isBatch: calls.isBatch ?? false,
      contextBand: price.contextBand,
      status: 'ok',
      hourMicros: microsOfDay(day.day) + hour * MICROS_PER_HOUR,
      calls: number,
      tokens: {
        input: tokens('input'),
        cache_read: tokens('cache_read'),
        cache_write_5m: tokens('cache_write_5m'),
        cache_write_1h: tokens('cache_write_1h'),
        output: tokens('output'),
        input_audio: 0n,
        output_audio: 0n,
      },
      computedCostPico: (price.computedPico ?? 0n) * BigInt(number),
      unpriced: price.computedPico === null ? number : 0,
      priceGaps: price.priceGaps.length > 0 ? number : 0,
      unmetered: 0,
    };
  }).filter(({ calls: number }) => number > 0);
}

function pricesOf(one: PublishedCase): ChargePrices {
  const list = shippedJson();
  const { prices, override } = one;
  if (prices) {
    const shipped = list.models.find(
      ({ provider, model }) => provider === prices.provider && model === prices.from,
    );
    if (!shipped) throw new RangeError(`the price list has no ${prices.from}`);
    // A list with both would have two models of equal rates, which a bill cannot distinguish.
    list.models.splice(list.models.indexOf(shipped), 1);
    const moved = (day: string | null) => (day === null ? null : shiftDay(day, prices.shiftDays));
    list.models.push({
      ...shipped,
      model: prices.model,
      canonical_family: prices.model,
      aliases: [],
      rates: shipped.rates.map((period) => ({
        ...period,
        effective_from: moved(period.effective_from),
        effective_to: moved(period.effective_to),
      })) as PeriodJson[],
    });
  }
  const listed = bookOf(readPriceFile(list));
  const agreed = override ? bookWithOwnPrices(listed, [overrideOf(one)], STATE) : listed;
  return { agreed, list: agreed.list };
}

function overrideOf({ provider, override }: PublishedCase): OwnPrice {
  const rates = Object.entries(override?.rates ?? {}).map(([name, usd]) => [
    name,
    perToken(usd) * 1_000_000n,
  ]);
  return {
    id: '00000000-0000-4000-8000-000000000001',
    kind: 'override',
    provider,
    model: override?.model ?? '',
    discountPercent: null,
    rates: Object.fromEntries(rates),
    batchMultiplier: null,
    effectiveFrom: override?.fromDay ?? '',
    effectiveTo: null,
    source: null,
    revision: 1,
    createdAtMicros: 0n,
    createdBy: 'test',
    endsOn: null,
    endedAtMicros: null,
  };
}
