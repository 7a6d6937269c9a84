import { microsOfDay, shiftDay } from '../period.js';
import { type ReportPeriod, weekdayOf } from './report.js';

/** The interval of a scheduled report. */
export const CADENCES = ['weekly', 'monthly'] as const;
export type Cadence = (typeof CADENCES)[number];

export const DELIVERY_TYPES = ['webhook', 'email'] as const;

/** The receivers of a scheduled report: the webhook endpoints of the organization, or an address. */
export type Delivery = { id: string } & ({ type: 'webhook' } | { type: 'email'; to: string });

export const DELIVERIES_MAX = 20;

/** Local hour at which a period's report is made, if the period's last UTC day is over then. */
const HOUR = 6;

/** The period, a week from Monday to Sunday or a month, that is over on a local day. */
export function periodEndedBefore(cadence: Cadence, localDay: string): ReportPeriod {
  if (cadence === 'weekly') {
    const monday = shiftDay(localDay, 1 - weekdayOf(localDay));
    return { fromDay: shiftDay(monday, -7), toDay: shiftDay(monday, -1) };
  }
  const toDay = shiftDay(`${localDay.slice(0, 7)}-01`, -1);
  return { fromDay: `${toDay.slice(0, 7)}-01`, toDay };
}

/** The period that follows. */
export function periodAfter(cadence: Cadence, { toDay }: Pick<ReportPeriod, 'toDay'>): ReportPeriod {
  return periodFrom(cadence, shiftDay(toDay, 1));
}

/** The period that begins on a day. */
export function periodFrom(cadence: Cadence, fromDay: string): ReportPeriod {
  if (cadence === 'weekly') return { fromDay, toDay: shiftDay(fromDay, 6) };
  return { fromDay, toDay: shiftDay(`${shiftDay(fromDay, 31).slice(0, 7)}-01`, -1) };
}

/** Minutes by which a zone's clock is ahead of UTC at a time. */
export function zoneMinutesAt(zone: string, micros: bigint): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' },
  }).formatToParts(new Date(Number(micros / 1_000n)));
  const of = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  const local = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'));
  return Math.round((local - Number(micros / 60_000_000n) * 60_000) / 60_000);
}

/** The day in a zone at a time, `YYYY-MM-DD`. */
export function localDayAt(zone: string, micros: bigint): string {
  const local = Number(micros / 1_000n) + zoneMinutesAt(zone, micros) * 60_000;
  return new Date(local).toISOString().slice(0, 10);
}

/**
 * The local hour at which a zone's reports are made: 06:00, or later where the UTC day before is not over then. It is
 * the same all year, so that a change of the clock moves nothing.
 */
export function scheduleHourOf(zone: string): number {
  const year = 2026;
  const ahead = Array.from({ length: 12 }, (_, month) =>
    zoneMinutesAt(zone, BigInt(Date.UTC(year, month, 15)) * 1_000n),
  );
  return Math.max(HOUR, Math.ceil(Math.max(...ahead) / 60));
}

/** When the report of a period is due: at the schedule's hour of the day after it. */
export function dueMicrosOf({ toDay }: ReportPeriod, zone: string): bigint {
  const local = microsOfDay(shiftDay(toDay, 1)) + BigInt(scheduleHourOf(zone)) * 3_600_000_000n;
  const guess = local - BigInt(zoneMinutesAt(zone, local)) * 60_000_000n;
  return local - BigInt(zoneMinutesAt(zone, guess)) * 60_000_000n;
}
