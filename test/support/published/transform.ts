/** Changes of a published case that change the expected result in a known way. */
import { type Calls, type Day, type PublishedCase, shiftDay } from './case.js';

/** The same case with this many times the calls. */
export function scaled(one: PublishedCase, numerator: number, denominator: number): PublishedCase {
  const times = ({ count, ...rest }: Calls): Calls => {
    if ((count * numerator) % denominator !== 0) throw new RangeError(`${count} calls cannot be divided`);
    return { ...rest, count: (count * numerator) / denominator };
  };
  return { ...one, days: one.days.map((day) => ({ ...day, calls: day.calls.map(times) })) };
}

/** Another model of the same prices. */
export function renamed(one: PublishedCase, model: string): PublishedCase {
  if (one.override) return { ...one, model, override: { ...one.override, model } };
  const prices = {
    provider: one.provider,
    from: one.prices?.from ?? one.model,
    shiftDays: 0,
    ...one.prices,
    model,
  };
  return { ...one, model, prices };
}

/** The same case some days later, at the prices of those days. */
export function onLaterDays(one: PublishedCase, by: number): PublishedCase {
  return {
    ...one,
    days: one.days.map((day): Day => ({ ...day, day: shiftDay(day.day, by) })),
    fault: { ...one.fault, days: one.fault.days.map((day) => shiftDay(day, by)) },
  };
}

/** The same case some days later, with its prices. */
export function shifted(one: PublishedCase, by: number): PublishedCase {
  const moved = renamed(onLaterDays(one, by), one.override ? one.model : `${one.model}-shifted`);
  const { prices, override } = moved;
  return {
    ...moved,
    ...(prices ? { prices: { ...prices, shiftDays: by } } : {}),
    ...(override ? { override: { ...override, fromDay: shiftDay(override.fromDay, by) } } : {}),
  };
}

/** The mistake the other way round; undefined where there is no such thing. */
export function mirrored(one: PublishedCase): PublishedCase | undefined {
  return typeof one.mirror === 'string' ? undefined : { ...one, fault: one.mirror };
}
