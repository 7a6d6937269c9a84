/**
 * Mistakes that begin or end within a day. The provider's usage report, or else the calls, show what each line had in each
 * hour, so the hours in which a mistake holds give every line a share of its own. It begins and ends at any minute: of the
 * hours in which it does some part is wrong, and all of the hours between.
 */

import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../../events/event.js';
import { groupBy } from '../../../groupBy.js';
import { MICROS_PER_HOUR, microsOfDay } from '../../../period.js';
import { isUsageOf, takesCalls } from '../../matching/lineUse.js';
import type { MeterPart } from '../../matching/meters.js';
import { HOUR_SLACK, HOURS_OF_DAY, OPEN_WINDOWS } from '../calibration.js';
import type { MeterDay, SeriesDay, Variant } from './cause.js';
import { amountAs } from './predict.js';

/** A line of a day: what a mistake changes in each of its hours, and what is wrong of it, with the tolerance of that. */
export interface HourlyLine {
  readonly byHour: readonly number[];
  readonly wrong: number;
  readonly slack: number;
}

/** Uses of a line in an hour of the day, 0 to 23. */
type PartAtHour = readonly [hour: number, part: MeterPart];

/**
 * Nats by which some hours of the day give the lines their shares better than a share of its own for each line would, if any
 * share were as likely; minus infinity where no hours give them.
 */
export function natsOfHours(lines: readonly HourlyLine[]): number {
  const count = HOURS_OF_DAY;
  const sums = lines.map(({ byHour }) => {
    let sum = 0;
    return [0, ...byHour.map((one) => (sum += one))];
  });
  let density = 0;
  for (let from = 0; from <= count; from += 1)
    for (let to = from; to <= count; to += 1) {
      if (from === 0 && to === count) continue;
      // A mistake goes on beyond the day, or begins and ends within it.
      const isOpen = from === 0 || to === count;
      let own = isOpen ? OPEN_WINDOWS / (2 * count) : (1 - OPEN_WINDOWS) / ((count * (count - 1)) / 2);
      lines.forEach(({ wrong, slack }, at) => {
        const until = (hour: number) => sums[at]?.[Math.min(count, Math.max(0, hour))] ?? 0;
        const [whole, atMost] = [until(to) - until(from), until(to + 1) - until(from - 1)];
        const isWithin = wrong >= Math.min(whole, atMost) - slack && wrong <= Math.max(whole, atMost) + slack;
        own *= isWithin ? Math.abs(until(count)) / Math.max(Math.abs(atMost - whole), 2 * slack) : 0;
      });
      density += own;
    }
  return Math.log(density);
}

/**
 * The count of a class in each hour of the day, in 1e-12 tokens: by the usage report, else by the calls; undefined where
 * neither has all counted hours.
 */
export function hoursOfClass(day: SeriesDay, tokenClass: TokenClass, counted: number): number[] | undefined {
  const place = TOKEN_CLASSES.indexOf(tokenClass);
  const reported = day.evidence.usage.flatMap((cell) =>
    cell.tokenClass === tokenClass ? (cell.hours ?? []) : [],
  );
  const called = day.evidence.observed.flatMap(({ status, hours = [] }) => (status === 'error' ? [] : hours));
  return [
    summed(reported.map((one) => [hourOf(day, one.hourMicros), Number(one.quantity)])),
    summed(
      called.map((one) => [hourOf(day, one.hourMicros), (one.tokens[place] ?? 0) * Number(QUANTITY_ONE)]),
    ),
  ].find((byHour) => isDivided(byHour, counted));
}

/** Whether the hours of the day hold what is counted of it. */
const isDivided = (byHour: readonly number[], counted: number): boolean =>
  byHour.length === HOURS_OF_DAY &&
  Math.abs(byHour.reduce((sum, one) => sum + one, 0) - counted) <= HOUR_SLACK * Math.abs(counted);

const hourOf = ({ day }: SeriesDay, micros: bigint): number =>
  Number((micros - microsOfDay(day)) / MICROS_PER_HOUR);

function summed(counts: readonly (readonly [hour: number, count: number])[]): number[] {
  const byHour = Array.from({ length: HOURS_OF_DAY }, () => 0);
  for (const [hour, count] of counts) byHour[hour] = (byHour[hour] ?? 0) + count;
  return byHour;
}

/**
 * The excess of the variant in each hour of the line, pico-dollars; undefined where the known hours are not those of the
 * billed amount, whose excess is `whole`.
 */
export function dearerByHour(
  day: SeriesDay,
  of: MeterDay,
  variant: Variant,
  whole: number,
): number[] | undefined {
  if (of.meter.crossed) return undefined;
  for (const partsOf of [reportedParts, calledParts]) {
    const parts = groupBy(partsOf(day, of), ([hour]) => hour);
    if (parts.size === 0) continue;
    const byHour = summed(
      [...parts].map(([hour, those]) => {
        const mix = those.map(([, part]) => part);
        const quantity = mix.reduce((sum, one) => sum + one.quantity, 0n);
        const own = { ...of, mix };
        const [wrong, right] = [variant.amountOf(own, quantity), amountAs(day, own, quantity)];
        return [hour, wrong === null || right === null ? Number.NaN : Number(wrong - right)];
      }),
    );
    if (isDivided(byHour, whole)) return byHour;
  }
  return undefined;
}

const othersOf = ({ meters }: SeriesDay, of: MeterDay) =>
  meters.flatMap((one) => (one !== of && one.tokenClass === of.tokenClass ? [one.meter] : []));

function reportedParts(day: SeriesDay, of: MeterDay): PartAtHour[] {
  const { meter } = of;
  const others = othersOf(day, of);
  return day.evidence.usage.flatMap(({ hours = [], ...cell }) => {
    const serviceTier = day.agreed.tier(cell.serviceTier);
    if (hours.length === 0 || !isUsageOf(meter, others, { ...cell, serviceTier })) return [];
    const circumstances = {
      serviceTier,
      isBatch: cell.isBatch ?? meter.isBatch ?? false,
      longContext: meter.longContext ?? cell.longContext ?? false,
      contextBand: 0,
      region: cell.region,
    };
    return hours.map(
      ({ hourMicros, quantity }): PartAtHour => [hourOf(day, hourMicros), { circumstances, quantity }],
    );
  });
}

function calledParts(day: SeriesDay, of: MeterDay): PartAtHour[] {
  const { meter } = of;
  const others = othersOf(day, of);
  const place = TOKEN_CLASSES.indexOf(of.tokenClass);
  return day.evidence.observed.flatMap(({ status, hours = [], contextBand, isBatch, ...cell }) => {
    const calls = { serviceTier: day.agreed.tier(cell.serviceTier), isBatch, longContext: contextBand > 0 };
    if (status === 'error' || !takesCalls(meter, others, calls)) return [];
    const circumstances = { ...calls, contextBand, region: meter.region };
    return hours.map(
      ({ hourMicros, tokens }): PartAtHour => [
        hourOf(day, hourMicros),
        { circumstances, quantity: BigInt(tokens[place] ?? 0) * QUANTITY_ONE },
      ],
    );
  });
}
