const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);

/** A day as `2026-08-31`. */
export type Day = string;

export function addDays(day: Day, days: number): Day {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

export function daysBetween(start: Day, end: Day): number {
  return Math.round((Date.parse(`${end}T00:00:00Z`) - Date.parse(`${start}T00:00:00Z`)) / 86_400_000);
}

export function monthStart(year: number, month: number): Day {
  return `${year}-${String(month).padStart(2, '0')}-01`;
}

export function monthEnd(year: number, month: number): Day {
  return new Date(Date.UTC(year, month, 0)).toISOString().slice(0, 10);
}

function parts(day: Day): { year: string; month: string; date: number } {
  const [year = '', month = '', date = ''] = day.split('-');
  return { year, month: MONTHS[Number(month) - 1] as string, date: Number(date) };
}

/** `March 26, 2026` */
export function longDate(day: Day): string {
  const { year, month, date } = parts(day);
  return `${month} ${date}, ${year}`;
}

/** `Mar 26, 2026` */
export function shortDate(day: Day): string {
  const { year, month, date } = parts(day);
  return `${month.slice(0, 3)} ${date}, ${year}`;
}

/** `03/26/2026` */
export function slashDate(day: Day): string {
  const [year, month, date] = day.split('-');
  return `${month}/${date}/${year}`;
}

/** `Aug 23 – Sep 23, 2026`, and both years where they differ. */
export function rangeText(start: Day, end: Day, dash: string): string {
  const from = shortDate(start);
  return `${start.slice(0, 4) === end.slice(0, 4) ? from.replace(/, \d+$/, '') : from}${dash}${shortDate(end)}`;
}
