import { useSearchParams } from 'wouter';
import { useSetFilters } from '../../app/filters';
import { DateField } from './DateField';
import css from './Period.module.css';
import { Segments } from './Segments';
import { useKey } from './useKey';

type Preset = '7d' | '30d' | '90d';
const PRESETS: readonly Preset[] = ['7d', '30d', '90d'];
const OPTIONS = [
  ...PRESETS.map((value) => ({ value, label: value, name: `Last ${value.slice(0, -1)} days` })),
  { value: 'custom' as const, label: 'Custom' },
];
const DAY_MS = 86_400_000;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Days of UTC, both included, with the days of equal number before them. */
export interface Days {
  /** The preset, or "custom" where the URL names the days. */
  name: Preset | 'custom';
  from: string;
  to: string;
  days: number;
  previous: { from: string; to: string };
}

export const addDays = (day: string, days: number) =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);

/** Every day from the first to the last. */
export function daysBetween(from: string, to: string): string[] {
  const length = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  return Array.from({ length: Math.max(0, length) }, (_, at) => addDays(from, at));
}

const today = () => new Date().toISOString().slice(0, 10);

/** The period of the screen: `?period=30d`, or `?from=2026-10-01&to=2026-10-31`. */
export function usePeriod(fallback: Preset = '30d'): Days {
  const [params] = useSearchParams();
  const from = params.get('from') ?? '';
  const to = params.get('to') ?? '';
  if (isDay(from) && isDay(to) && from <= to) return span('custom', from, to);
  const preset = PRESETS.find((one) => one === params.get('period')) ?? fallback;
  const last = today();
  return span(preset, addDays(last, 1 - Number.parseInt(preset, 10)), last);
}

function isDay(text: string): boolean {
  return DAY.test(text) && !Number.isNaN(Date.parse(text));
}

function span(name: Days['name'], from: string, to: string): Days {
  const days = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  return { name, from, to, days, previous: { from: addDays(from, -days), to: addDays(from, -1) } };
}

/** Buttons for the last 7, 30 or 90 days, and two fields for days of choice. `[` and `]` move by one period. */
export function Period({ fallback = '30d' }: { fallback?: Preset }) {
  const period = usePeriod(fallback);
  const setFilters = useSetFilters();
  const setDays = (from: string, to: string) => setFilters({ period: undefined, from, to });
  const move = (direction: 1 | -1) => {
    const from = addDays(period.from, direction * period.days);
    const to = addDays(period.to, direction * period.days);
    if (from <= today()) setDays(from, to > today() ? today() : to);
  };
  useKey('[', () => move(-1));
  useKey(']', () => move(1));
  return (
    <div className={css.period}>
      <Segments
        label="Period, UTC days"
        value={period.name}
        options={OPTIONS}
        onChange={(name) => {
          if (name === 'custom') setDays(period.from, period.to);
          else setFilters({ period: name === fallback ? undefined : name, from: undefined, to: undefined });
        }}
      />
      {period.name === 'custom' ? (
        <>
          <DateField
            label="From (UTC)"
            value={period.from}
            onChange={(from) => isDay(from) && setDays(from, from > period.to ? from : period.to)}
          />
          <DateField
            label="To (UTC)"
            value={period.to}
            onChange={(to) => isDay(to) && setDays(to < period.from ? to : period.from, to)}
          />
        </>
      ) : (
        <span className={css.days}>
          {period.from} – {period.to} UTC
        </span>
      )}
    </div>
  );
}
