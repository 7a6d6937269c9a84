/** Estimates the clocks of a world's providers as gap runs do (usecases/reconciliation/planRun.ts). */
import { knownOffsetHours } from '../../../domain/billing/billingDay.js';
import { dayOf, MICROS_PER_DAY, MICROS_PER_HOUR, microsOfDay, shiftDay } from '../../../domain/period.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { PROVIDERS, type Provider } from '../../../domain/providers.js';
import {
  findDayOffset,
  findOffsetOfDays,
  type HourOfBoth,
  OFFSET_DAYS,
} from '../../../domain/reconciliation/evidence/dayOffset.js';
import type { BilledCell, ObservedCell, UsageCell } from '../../../domain/reconciliation/matching/cells.js';
import type { ByDay } from './cells.js';

export interface ClockInputs {
  billed: ByDay<BilledCell>;
  usage: ByDay<UsageCell>;
  /** Calls by UTC day and hour. */
  observed: ByDay<ObservedCell>;
}

/** Hours by which each provider's clock is ahead of UTC; providers without an offset are left out. */
export type Clocks = ReadonlyMap<Provider, number>;

export function clocksOf(inputs: ClockInputs, book: PriceBook): Clocks {
  const clocks = new Map<Provider, number>();
  for (const provider of PROVIDERS) {
    if (knownOffsetHours(provider) !== undefined) continue;
    const hours = hoursOfBoth(provider, inputs);
    const offset = hours.some(({ billed }) => billed > 0)
      ? findDayOffset(hours)
      : offsetOfDays(provider, inputs, book);
    if (offset) clocks.set(provider, offset);
  }
  return clocks;
}

const HOURS_DAYS = 14;

function hoursOfBoth(provider: Provider, { usage, observed }: ClockInputs): HourOfBoth[] {
  const billed = newest(usage, provider, HOURS_DAYS).flatMap(({ cells }) =>
    cells.flatMap(({ hourMicros, tokenClass, quantity }) =>
      hourMicros === null || tokenClass === 'requests' || tokenClass === 'other'
        ? []
        : [{ hour: hourOf(hourMicros), billed: Number(quantity) / 1e12, observed: 0 }],
    ),
  );
  const days = new Set(newest(usage, provider, HOURS_DAYS).map(({ day }) => day));
  const seen = cellsOf(observed, provider, days).map(({ hourMicros, tokens }) => ({
    hour: hourOf(hourMicros),
    billed: 0,
    observed: Object.values(tokens).reduce((sum, one) => sum + Number(one), 0),
  }));
  return [...billed, ...seen];
}

function offsetOfDays(
  provider: Provider,
  { billed, observed }: ClockInputs,
  book: PriceBook,
): number | undefined {
  const days = newest(billed, provider, OFFSET_DAYS);
  const uses = days.flatMap(({ day, cells }) =>
    cells.flatMap(({ model, tokenClass, quantity, amountPico }) =>
      model === null || tokenClass === 'requests'
        ? []
        : [
            {
              ...{ model, tokenClass, quantity, amountPico },
              day: Number(microsOfDay(day) / MICROS_PER_DAY),
            },
          ],
    ),
  );
  const calls = cellsOf(observed, provider, new Set(days.map(({ day }) => day)))
    .filter(({ status }) => status !== 'error')
    .map((cell) => ({ ...cell, hour: hourOf(cell.hourMicros) }));
  return findOffsetOfDays(uses, calls, (model) => book.canonicalModel(provider, model));
}

const hourOf = (micros: bigint): number => Number(micros / MICROS_PER_HOUR);

/** The provider's days of the newest span, oldest first. */
function newest<Cell>(
  byDay: ByDay<Cell>,
  provider: Provider,
  count: number,
): { day: string; cells: Cell[] }[] {
  const days = [...byDay]
    .flatMap(([key, cells]) =>
      key.startsWith(`${provider} `) ? [{ day: key.slice(provider.length + 1), cells }] : [],
    )
    .sort((a, b) => (a.day < b.day ? -1 : 1));
  const last = days.at(-1)?.day;
  return last === undefined ? [] : days.filter(({ day }) => day > shiftDay(last, -count));
}

const cellsOf = (observed: ByDay<ObservedCell>, provider: Provider, days: ReadonlySet<string>) =>
  [...observed].flatMap(([key, cells]) =>
    key.startsWith(`${provider} `) ? cells.filter((cell) => days.has(dayOf(cell.hourMicros))) : [],
  );
