/**
 * The mistakes of providers, each as a change of one call's booking. A mistake has a window that begins and ends at any
 * minute, and may concern one key or one place only. Several mistakes may change one booking, one after the other;
 * each has as impact what it adds.
 */
import { dearerThan } from '../booking.js';
import { DAY, numberOfDay } from '../calendar.js';
import type { Period, Series } from '../company.js';
import type { Dice } from '../dice.js';
import type { Call } from '../traffic.js';
import { COUNT_KINDS } from './counts.js';
import type { Kind, Mistake } from './kind.js';
import { RATE_KINDS } from './rates.js';

export const KINDS: readonly Kind[] = [...RATE_KINDS, ...COUNT_KINDS];

/** Four fifths of the series have one to four mistakes; their windows may overlap. */
export function planMistakes(
  dice: Dice,
  series: Series,
  company: readonly Series[],
  period: Period,
): Mistake[] {
  const possible = KINDS.filter((kind) => kind.isPossible(series, company, period));
  const mistakes: Mistake[] = [];
  const count = dice.happens(0.8) ? dice.count(1, 4) : 0;
  while (mistakes.length < count) {
    const left = possible.filter(({ cause }) => mistakes.every(({ kind }) => kind.cause !== cause));
    const kind = dice.weighted(left);
    if (!kind) break;
    mistakes.push(planMistake(dice, kind, series, company, period, mistakes.length + 1));
  }
  return mistakes.sort((a, b) => a.kind.order - b.kind.order);
}

function planMistake(
  dice: Dice,
  kind: Kind,
  series: Series,
  company: readonly Series[],
  period: Period,
  number: number,
): Mistake {
  const { from, to } = windowOf(dice, kind, series, period);
  const keys = [...new Set(series.services.map(({ keyId }) => keyId))];
  const hasPlaces = series.services.some(({ elsewhereShare }) => elsewhereShare > 0);
  const draw = dice.share();
  // Costs and usage of Azure name no key.
  const isOneKey =
    draw < 0.3 && keys.length > 1 && !kind.intruders && series.account.provider !== 'azure_openai';
  const isOnePlace = !isOneKey && draw < 0.45 && hasPlaces && kind.cause !== 'region_uplift_misapplied';
  return {
    id: `${series.id}!${number}`,
    kind,
    series,
    from,
    to,
    keyId: isOneKey ? dice.oneOf(keys) : undefined,
    isElsewhere: isOnePlace ? dice.happens(0.5) : undefined,
    drawn: dice.count(0, 999),
    partner: kind.cause === 'model_misattribution' ? dearerThan(series, company) : undefined,
  };
}

/** A third lasts about a day, a sixth three weeks. It never fills the period, and begins and ends at any minute. */
function windowOf(dice: Dice, kind: Kind, series: Series, period: Period): { from: number; to: number } {
  const draw = dice.share();
  const drawn =
    draw < 0.32
      ? dice.within(0.7, 1.4)
      : draw < 0.65
        ? dice.within(2, 6)
        : draw < 0.84
          ? dice.within(7, 14)
          : dice.within(18, 22);
  const days = Math.min(drawn, kind.longest ?? drawn);
  const step = series.tariff.steps.at(-1)?.from ?? '';
  // An old price is kept from the day on which the new one should have begun.
  if (kind.form === 'old_price_kept') {
    const from = numberOfDay(step) * DAY;
    return { from, to: Math.floor(from + Math.max(days, 1.5) * DAY) };
  }
  const earliest = (period.first + 2) * DAY;
  const latest = (period.last - 1) * DAY - days * DAY;
  const from = Math.floor(dice.within(earliest, latest));
  return { from, to: Math.floor(from + days * DAY) };
}

/** Whether a mistake concerns a call. */
export function concerns({ from, to, keyId, isElsewhere }: Mistake, { at, service, use }: Call): boolean {
  if (at < from || at >= to) return false;
  if (keyId !== undefined && service.keyId !== keyId) return false;
  return isElsewhere === undefined || use.isElsewhere === isElsewhere;
}
