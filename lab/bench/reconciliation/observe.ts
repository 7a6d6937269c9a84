/** Prices calls with the product's pricing and sums them by the hour of their end, like the product. */
import { aheadMicrosOf, billingDayOf } from '../../../domain/billing/billingDay.js';
import { MICROS_PER_HOUR } from '../../../domain/period.js';
import { type CallPrice, priceCall } from '../../../domain/pricing/cost.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { isProvider, type Provider } from '../../../domain/providers.js';
import { type ObservedSource, SOURCES_MAX } from '../../../domain/reconciliation/evidence/evidenceText.js';
import type { ObservedCell } from '../../../domain/reconciliation/matching/cells.js';
import type { GeneratedWorld, ToldCall } from '../../generators/world.js';
import { type ByDay, dayKey } from './cells.js';
import type { Clocks } from './clocks.js';

const HOUR_SECONDS = 3_600;
const FREE: CallPrice = { computedPico: 0n, priceGaps: [], contextBand: 0 };

/** The observed data of a provider's days. */
export interface Observed {
  cells: ByDay<ObservedCell>;
  /** By provider and day, then account ('': calls without one), then model; services with the most calls first. */
  sources: Map<string, Map<string, Map<string, ObservedSource[]>>>;
  /** End of the first call by provider and account ('': calls without one), microseconds. */
  since: Map<string, Map<string, bigint>>;
}

type MutableCell = { -readonly [K in keyof ObservedCell]: ObservedCell[K] } & {
  tokens: { -readonly [K in keyof ObservedCell['tokens']]: bigint };
};

/**
 * Prices and sums every call, by the days of the providers' clocks. A call without an account has that of its key
 * (db/billing/billingCells.ts).
 */
export function observe(
  world: Pick<GeneratedWorld, 'calls' | 'keys'>,
  book: PriceBook,
  clocks: Clocks = new Map(),
): Observed {
  const accounts = new Map(world.keys.map((key) => [`${key.provider}\n${key.keyId}`, key.accountId]));
  const groups = new Map<string, MutableCell>();
  const observed: Observed = { cells: new Map(), sources: new Map(), since: new Map() };
  for (const reported of world.calls) {
    const accountId = reported.accountId ?? accounts.get(`${reported.provider}\n${reported.keyId}`) ?? null;
    const call = accountId === reported.accountId ? reported : { ...reported, accountId };
    const hourSeconds = Math.floor(call.endSeconds / HOUR_SECONDS) * HOUR_SECONDS;
    const price = priceOf(call, book);
    const words = [call.provider, call.accountId, call.model, call.serviceTier, call.isBatch, call.status];
    const key = JSON.stringify([...words, price.contextBand, hourSeconds]);
    let cell = groups.get(key);
    if (!cell) {
      cell = emptyCell(call, hourSeconds, price.contextBand);
      groups.set(key, cell);
      const provider = providerOf(call);
      const billedOn = dayByClock(provider, cell.hourMicros, clocks);
      cell.hourMicros += aheadMicrosOf(provider, billedOn, clocks.get(provider) ?? 0);
      const day = dayKey(provider, billedOn);
      const ofDay = observed.cells.get(day);
      if (ofDay) ofDay.push(cell);
      else observed.cells.set(day, [cell]);
    }
    addCall(cell, call, price);
    noteSource(observed.sources, call, clocks);
    noteSince(observed.since, call);
  }
  for (const accounts of observed.sources.values())
    for (const models of accounts.values())
      for (const [model, sources] of models) models.set(model, busiest(sources));
  return observed;
}

function providerOf({ provider }: ToldCall): Provider {
  if (!isProvider(provider)) throw new RangeError(`${provider} is not a provider`);
  return provider;
}

/** A failed attempt without usage consumed nothing, as in the product's ingest (db/events/ingest.ts). */
function priceOf(call: ToldCall, book: PriceBook): CallPrice {
  const { model, serviceTier, isBatch } = call;
  const provider = providerOf(call);
  const cacheCreation = call.cacheWrite5m + call.cacheWrite1h;
  const all = call.input + call.cacheRead + cacheCreation + call.output;
  if (call.status === 'error' && all === 0) return FREE;
  return priceCall(book, {
    biller: provider,
    model,
    atMicros: BigInt(call.endSeconds) * 1_000_000n,
    isBatch,
    serviceTier,
    usage: {
      input: call.input,
      cacheRead: call.cacheRead,
      cacheCreation,
      cacheCreation5m: call.cacheWrite5m,
      cacheCreation1h: call.cacheWrite1h,
      output: call.output,
      inputAudio: 0,
      outputAudio: 0,
      reasoning: call.reasoning,
      cached: 0,
    },
  });
}

function emptyCell(call: ToldCall, hourSeconds: number, contextBand: number): MutableCell {
  return {
    accountId: call.accountId ?? '',
    model: call.model,
    serviceTier: call.serviceTier ?? '',
    isBatch: call.isBatch,
    status: call.status,
    contextBand,
    hourMicros: BigInt(hourSeconds) * 1_000_000n,
    calls: 0,
    tokens: {
      input: 0n,
      cache_read: 0n,
      cache_write_5m: 0n,
      cache_write_1h: 0n,
      output: 0n,
      input_audio: 0n,
      output_audio: 0n,
    },
    computedCostPico: 0n,
    unpriced: 0,
    priceGaps: 0,
    unmetered: 0,
  };
}

function addCall(cell: MutableCell, call: ToldCall, price: CallPrice): void {
  cell.calls += 1;
  cell.tokens.input += BigInt(call.input);
  cell.tokens.cache_read += BigInt(call.cacheRead);
  cell.tokens.cache_write_5m += BigInt(call.cacheWrite5m);
  cell.tokens.cache_write_1h += BigInt(call.cacheWrite1h);
  cell.tokens.output += BigInt(call.output);
  cell.computedCostPico += price.computedPico ?? 0n;
  if (price.computedPico === null && call.status !== 'error') cell.unpriced += 1;
  if (price.priceGaps.length > 0) cell.priceGaps += 1;
}

const dayByClock = (provider: Provider, micros: bigint, clocks: Clocks): string =>
  billingDayOf(provider, micros + BigInt(clocks.get(provider) ?? 0) * MICROS_PER_HOUR);

function noteSource(sources: Observed['sources'], call: ToldCall, clocks: Clocks): void {
  const day = dayByClock(providerOf(call), BigInt(call.endSeconds) * 1_000_000n, clocks);
  const key = dayKey(call.provider, day);
  const accounts = sources.get(key) ?? new Map<string, Map<string, ObservedSource[]>>();
  sources.set(key, accounts);
  const models = accounts.get(call.accountId ?? '') ?? new Map<string, ObservedSource[]>();
  accounts.set(call.accountId ?? '', models);
  const known = models.get(call.model) ?? [];
  models.set(call.model, known);
  let source = known.find(({ serviceName }) => serviceName === call.serviceName);
  if (!source) {
    source = { serviceName: call.serviceName, calls: 0, callsWithoutCache: 0 };
    known.push(source);
  }
  source.calls += 1;
  if (call.lacksCache) source.callsWithoutCache += 1;
  const { isNamedByAnswer, httpStatus } = call;
  if (isNamedByAnswer && call.status !== 'error') source.namedByAnswer = (source.namedByAnswer ?? 0) + 1;
  if (call.status === 'error' && (httpStatus ?? 0) >= 400) source.refused = (source.refused ?? 0) + 1;
}

function busiest(sources: readonly ObservedSource[]): ObservedSource[] {
  return [...sources]
    .sort((a, b) => b.calls - a.calls || (a.serviceName < b.serviceName ? -1 : 1))
    .slice(0, SOURCES_MAX);
}

function noteSince(since: Observed['since'], call: ToldCall): void {
  const accounts = since.get(call.provider) ?? new Map<string, bigint>();
  since.set(call.provider, accounts);
  const micros = BigInt(call.endSeconds) * 1_000_000n;
  const known = accounts.get(call.accountId ?? '');
  if (known === undefined || micros < known) accounts.set(call.accountId ?? '', micros);
}
