import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseInstant } from '../../../domain/period.js';
import type { CallToPrice } from '../../../domain/pricing/cost.js';
import { PriceBook } from '../../../domain/pricing/priceBook.js';
import type { PriceVersion } from '../../../domain/pricing/pricedModel.js';
import { type PriceFile, readPriceFile } from '../../../domain/pricing/priceFile.js';
import { aUsage } from '../../support/aCall.js';

const LIST = join(import.meta.dirname, '..', '..', '..', 'data', 'prices.json');

/** The shipped list as plain JSON. */
export function shippedJson(): ListJson {
  return JSON.parse(readFileSync(LIST, 'utf8')) as ListJson;
}

export interface ListJson {
  as_of: string;
  schema_version: number;
  models: EntryJson[];
}

export interface EntryJson {
  provider: string;
  model: string;
  canonical_family: string;
  aliases: string[];
  mode: string;
  first_party: boolean;
  context_window: number | null;
  rates: PeriodJson[];
  agreement: string;
  sources: Record<string, unknown>;
  dissent?: string[];
  conflicts?: string[];
}

export type RatesJson = Record<string, number | string | null | undefined>;
export type PeriodJson = RatesJson & {
  effective_from: string | null;
  effective_to: string | null;
  batch_multiplier: number | null;
  tiers: RatesJson[];
};

/** A book of a list, as the database would return it. */
export function bookOf(list: PriceFile): PriceBook {
  const versions = list.entries.flatMap(({ model, periods }) =>
    periods.map(
      (period, index): PriceVersion => ({
        ...period,
        id: `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`,
        provider: model.provider,
        model: model.model,
        recordedAtMicros: 0n,
      }),
    ),
  );
  return PriceBook.from(
    list.entries.map(({ model }) => ({ ...model, updatedAtMicros: 0n })),
    versions,
  );
}

export function shippedBook(): PriceBook {
  return bookOf(readPriceFile(shippedJson()));
}

/** A list of the given entries, each completed with defaults. */
export function listOf(entries: (Partial<EntryJson> & { provider: string; model: string })[]): ListJson {
  return {
    as_of: '2026-11-20',
    schema_version: 1,
    models: entries.map((entry) => ({
      canonical_family: entry.model,
      aliases: [],
      mode: 'chat',
      first_party: true,
      context_window: null,
      rates: [aPeriod({ input: 1, output: 2 })],
      agreement: 'agree',
      sources: {},
      ...entry,
    })),
  };
}

export function aPeriod(
  rates: RatesJson,
  more: Partial<Pick<PeriodJson, 'effective_from' | 'effective_to' | 'batch_multiplier' | 'tiers'>> = {},
): PeriodJson {
  return {
    ...rates,
    effective_from: more.effective_from ?? null,
    effective_to: more.effective_to ?? null,
    batch_multiplier: more.batch_multiplier ?? null,
    tiers: more.tiers ?? [],
  } as PeriodJson;
}

export function microsOf(iso: string): bigint {
  const instant = parseInstant(iso);
  if (!instant) throw new Error(`not a time: ${iso}`);
  return instant.micros;
}

export const AS_OF = microsOf('2026-11-20T12:00:00Z');

/** A call of an ordinary model with cached and uncached input. */
export function aCall(over: Partial<CallToPrice> = {}): CallToPrice {
  return {
    biller: 'openai',
    model: 'gpt-5.6-sol',
    atMicros: AS_OF,
    usage: aUsage({ input: 200, cacheRead: 1000, output: 300 }),
    isBatch: false,
    serviceTier: null,
    ...over,
  };
}
