const NAMES = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

export type DateStyle = 'long' | 'short' | 'day_first' | 'iso' | 'dotted';

export function iso(year: number, month: number, day: number): string {
  return new Date(Date.UTC(year, month - 1, day)).toISOString().slice(0, 10);
}

export function later(day: string, days: number): string {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  return iso(year, month, date + days);
}

export function writtenDate(day: string, style: DateStyle): string {
  const [year = '', month = '', date = ''] = day.split('-');
  const name = NAMES[Number(month) - 1] ?? '';
  switch (style) {
    case 'long':
      return `${name} ${Number(date)}, ${year}`;
    case 'short':
      return `${name.slice(0, 3)} ${Number(date)}, ${year}`;
    case 'day_first':
      return `${Number(date)} ${name.slice(0, 3)} ${year}`;
    case 'dotted':
      return `${date}.${month}.${year}`;
    case 'iso':
      return day;
  }
}

/** Both ends, the last day included. */
export function writtenSpan(from: string, to: string, style: DateStyle, dash: string): string {
  if (style === 'short' || style === 'long') {
    const start = writtenDate(from, style);
    return `${from.slice(0, 4) === to.slice(0, 4) ? start.slice(0, -6) : start}${dash}${writtenDate(to, style)}`;
  }
  return `${writtenDate(from, style)}${dash}${writtenDate(to, style)}`;
}
