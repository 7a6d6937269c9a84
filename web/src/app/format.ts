const dollars = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const downDollars = new Intl.NumberFormat('en-US', {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
  roundingMode: 'trunc',
});
const exactDollars = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 12 });
const counts = new Intl.NumberFormat('en-US');
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const shortSmall = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });
/** Below it one decimal would give neighbouring marks of an axis the same label. */
const SMALL = 10;

/** A decimal as the API sends it: a JSON number, or a string with all digits. */
export type Decimal = number | string;

/** US dollars with two decimals; negative in parentheses: `$1,234.50`, `($3.20)`. */
export function usd(value: Decimal): string {
  return signed(value, dollars);
}

/** The same rounded toward zero, as the API writes what can be asked back. */
export function usdDown(value: Decimal): string {
  return signed(value, downDollars);
}

/** The same amount with all its digits. */
export function exactUsd(value: Decimal): string {
  return signed(value, exactDollars);
}

function signed(value: Decimal, format: Intl.NumberFormat): string {
  // Intl reads a string exactly, without a float between.
  const text = format.format(value as number);
  if (!text.startsWith('-')) return `$${text}`;
  // An amount that rounds to zero has no sign.
  return /[1-9]/.test(text) ? `($${text.slice(1)})` : `$${text.slice(1)}`;
}

export const count = (value: number) => counts.format(value);
/** A number beside an axis: `1.2K`, `0.105`. */
export const compact = (value: number) => (Math.abs(value) < SMALL ? shortSmall : short).format(value);
export const percent = (share: number, digits = 1) => `${(share * 100).toFixed(digits)} %`;

let timeZone = 'UTC';

/** Sets the organization's zone, in which times are shown beside UTC. */
export function setTimeZone(zone: string): void {
  timeZone = zone;
}

const minutes = new Map<string, Intl.DateTimeFormat>();

/** `2026-11-23 14:05` in the zone; a zone that the browser does not know counts as UTC. */
function minuteIn(zone: string, at: Date): string {
  let format = minutes.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
    minutes.set(zone, format);
  }
  return format.format(at);
}

/** `2026-11-23 14:05 UTC`; `2026-11-23 15:05 Berlin (14:05 UTC)` where the organization has a zone. */
export function time(iso: string, zone = timeZone): string {
  const at = new Date(iso);
  const utc = minuteIn('UTC', at);
  if (zone === 'UTC') return `${utc} UTC`;
  try {
    const local = minuteIn(zone, at);
    const isSameDay = local.slice(0, 10) === utc.slice(0, 10);
    return `${local} ${zone.replace(/^.*\//, '').replaceAll('_', ' ')} (${isSameDay ? utc.slice(11) : utc} UTC)`;
  } catch {
    // RangeError: the browser does not know the zone.
    return `${utc} UTC`;
  }
}

export const day = (iso: string) => iso.slice(0, 10);

const shortDays = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', month: 'short', day: 'numeric' });

/** `Nov 5`: a day below an axis. */
export const shortDay = (iso: string) => shortDays.format(new Date(iso));
