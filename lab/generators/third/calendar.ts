/** Days as `YYYY-MM-DD` and as numbers since 1970, and the times at which providers close them. */
export const HOUR = 3_600;
export const DAY = 24 * HOUR;

export const numberOfDay = (text: string): number => Date.parse(`${text}T00:00:00Z`) / (DAY * 1_000);
export const textOfDay = (day: number): string => new Date(day * DAY * 1_000).toISOString().slice(0, 10);
export const dayAt = (seconds: number): number => Math.floor(seconds / DAY);
export const instant = (seconds: number): string =>
  `${new Date(seconds * 1_000).toISOString().slice(0, 19)}Z`;

/** 0 = Monday. 1970-01-01 was a Thursday. */
export const dayOfWeek = (day: number): number => (day + 3) % 7;

/** The first day of the month after the day's month. */
export function nextMonth(day: number): number {
  const date = new Date(day * DAY * 1_000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / (DAY * 1_000);
}

/**
 * When a provider no longer restates a day, Unix seconds: OpenAI and Anthropic the second day after it, Azure five
 * days after the end of the month. Cost Explorer marks its days as estimated until the bill is issued, here on the
 * sixth.
 */
export function closesAt(provider: string, day: number): number {
  if (provider === 'azure_openai') return (nextMonth(day) + 5) * DAY;
  if (provider === 'aws_bedrock') return (nextMonth(day) + 6) * DAY;
  return (day + 2) * DAY;
}
