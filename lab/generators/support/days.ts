/** Days as whole numbers since 1970-01-01, UTC. */
export const DAY_SECONDS = 86_400;
export const HOUR_SECONDS = 3_600;

export const dayText = (day: number): string =>
  new Date(day * DAY_SECONDS * 1_000).toISOString().slice(0, 10);
export const dayNumber = (text: string): number => Date.parse(`${text}T00:00:00Z`) / 1_000 / DAY_SECONDS;
export const dayOf = (seconds: number): number => Math.floor(seconds / DAY_SECONDS);
export const rfc3339 = (seconds: number): string =>
  new Date(seconds * 1_000).toISOString().replace('.000', '');

/** 0 = Sunday. */
export const weekday = (day: number): number => (((day + 4) % 7) + 7) % 7;

/**
 * Seconds that Pacific time is behind UTC: seven hours from the second Sunday of March to the first of November, 2
 * a.m. local time each, else eight.
 */
export function pacificOffsetSeconds(seconds: number): number {
  const year = new Date(seconds * 1_000).getUTCFullYear();
  const sunday = (month: number, nth: number): number => {
    const first = dayNumber(`${year}-${String(month).padStart(2, '0')}-01`);
    return first + ((7 - weekday(first)) % 7) + (nth - 1) * 7;
  };
  const begins = sunday(3, 2) * DAY_SECONDS + 10 * HOUR_SECONDS;
  const ends = sunday(11, 1) * DAY_SECONDS + 9 * HOUR_SECONDS;
  return (seconds >= begins && seconds < ends ? 7 : 8) * HOUR_SECONDS;
}
