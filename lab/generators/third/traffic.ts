/** The calls that really happened. */
import { DAY, dayAt, dayOfWeek, HOUR } from './calendar.js';
import type { Period, Series, Service } from './company.js';
import type { Dice } from './dice.js';
import { FRESH, KEEP_LONG, KEEP_SHORT, listPrices, METERS, OUT, READ, stepOn, type Use } from './tariffs.js';

export interface Call {
  series: Series;
  service: Service;
  /** Unix seconds of its end. */
  at: number;
  outcome: 'ok' | 'error' | 'cancelled';
  use: Use;
  /** In the order of METERS; of a failed attempt, what it sent. */
  counts: readonly number[];
  reasoning: number;
}

/** Calls of a service on the days of the period and the day before it. */
export function callsOf(dice: Dice, series: Series, service: Service, period: Period): Call[] {
  const calls: Call[] = [];
  for (let day = period.first - 1; day <= period.last; day += 1) {
    const quiet = dayOfWeek(day) >= 5 ? service.weekendShare : 1;
    const mean = service.callsPerDay * quiet * dice.within(0.75, 1.25);
    for (let left = dice.around(mean, 1.2 * Math.sqrt(mean)); left > 0; left -= 1) {
      // The mean of two shares: most calls are in the middle of the active hours.
      const hour = service.fromHour + (service.hours * (dice.share() + dice.share())) / 2;
      const at = Math.floor(day * DAY + (hour % 24) * HOUR);
      calls.push(callAt(dice, series, service, at));
    }
  }
  return calls;
}

/** One call of a service at a time. */
export function callAt(dice: Dice, series: Series, service: Service, at: number): Call {
  const { tariff } = series;
  const step = stepOn(tariff, dayAt(at));
  const isLong = dice.happens(service.longShare);
  const whole = Math.round(
    isLong
      ? dice.within(1.02 * tariff.longAbove, tariff.largest)
      : dice.magnitude(service.least, service.most),
  );
  const read = Math.floor(whole * service.readShare * dice.within(0.4, 1.2));
  const kept = Math.floor((whole - Math.min(read, whole)) * service.writeShare * dice.within(0.5, 2));
  const outcome = dice.happens(service.errorShare)
    ? 'error'
    : dice.happens(service.cutShare)
      ? 'cancelled'
      : 'ok';
  const out = outcome === 'error' ? 0 : Math.round(dice.magnitude(service.outLeast, service.outMost));
  const counts = METERS.map(() => 0);
  counts[READ] = Math.min(read, whole);
  counts[service.keepsLong ? KEEP_LONG : KEEP_SHORT] = kept;
  counts[FRESH] = whole - Math.min(read, whole) - kept;
  counts[OUT] = out;
  const asked: Use = {
    isLong,
    isBatch: !isLong && dice.happens(service.batchShare),
    tier: dice.happens(service.tierShare) ? service.tier : 'standard',
    isElsewhere: dice.happens(service.elsewhereShare),
  };
  const use = offered(asked, (one) => listPrices(tariff, step, one) !== undefined);
  const reasoning = Math.floor(out * service.reasoningShare * dice.share());
  return { series, service, at, outcome, use, counts, reasoning };
}

/** The nearest use that has a price. */
function offered(asked: Use, hasPrice: (use: Use) => boolean): Use {
  const plain: Use = { ...asked, tier: 'standard' };
  const choices: Use[] = [
    asked.isBatch || asked.isLong ? plain : asked,
    { ...plain, isBatch: false },
    { ...plain, isBatch: false, isLong: false },
  ];
  return choices.find(hasPrice) ?? { ...plain, isBatch: false, isLong: false };
}
