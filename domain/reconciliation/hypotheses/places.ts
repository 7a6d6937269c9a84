/** Which meter of a day a use would have been on, had the bill told it otherwise. */
import type { MeterDay, SeriesDay } from './hypothesis.js';

/** What all of a meter was used under; null where it holds several. */
export interface Place {
  serviceTier: string | null;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
}

export function placeOf({ mix }: MeterDay): Place {
  return {
    serviceTier: one(mix.map((part) => part.circumstances.serviceTier)),
    isBatch: one(mix.map((part) => part.circumstances.isBatch)),
    longContext: one(mix.map((part) => part.circumstances.longContext || part.circumstances.contextBand > 0)),
    region: one(mix.map((part) => part.circumstances.region)),
  };
}

function one<T>(values: readonly T[]): T | null {
  const [first] = values;
  return first !== undefined && values.every((value) => value === first) ? first : null;
}

/** Text that two meters of the same class and place share. */
export function placeKey(meter: MeterDay): string {
  const { serviceTier, isBatch, longContext, region } = placeOf(meter);
  return JSON.stringify([meter.tokenClass, serviceTier, isBatch, longContext, region]);
}

/** The meter of the same class whose place differs by exactly this; undefined where the day has none. */
export function partnerOf(day: SeriesDay, meter: MeterDay, change: Partial<Place>): MeterDay | undefined {
  const own = placeOf(meter);
  const wanted = { ...own, ...change };
  if (sameUse(own, wanted)) return undefined;
  const candidates = day.meters.filter(
    (other) => other.index !== meter.index && other.tokenClass === meter.tokenClass,
  );
  return (
    candidates.find((other) => sameUse(placeOf(other), wanted) && placeOf(other).region === wanted.region) ??
    candidates.find((other) => sameUse(placeOf(other), wanted))
  );
}

function sameUse(a: Place, b: Place): boolean {
  return a.serviceTier === b.serviceTier && a.isBatch === b.isBatch && a.longContext === b.longContext;
}

/** Pairs of every meter that has a partner with that partner: what leaves the first arrives at the second. */
export function pairsBy(
  day: SeriesDay,
  isMeant: (place: Place) => boolean,
  change: Partial<Place>,
): (readonly [MeterDay, MeterDay])[] {
  return day.meters.flatMap((meter) => {
    const partner = isMeant(placeOf(meter)) ? partnerOf(day, meter, change) : undefined;
    return partner ? [[meter, partner] as const] : [];
  });
}

/** The meter of another class at the same place. */
export function partnerOfClass(
  day: SeriesDay,
  meter: MeterDay,
  tokenClass: MeterDay['tokenClass'],
): MeterDay | undefined {
  const own = placeOf(meter);
  const candidates = day.meters.filter(
    (other) => other.tokenClass === tokenClass && sameUse(placeOf(other), own),
  );
  return candidates.find((other) => placeOf(other).region === own.region) ?? candidates[0];
}
