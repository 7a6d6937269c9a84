import type { DocumentTable } from '../claims/evidence/documentRates.js';
import { counted, dayText, grouped, spanText, timeText } from '../claims/evidence/documentTexts.js';
import { dollarsText } from '../claims/financialSummary.js';
import { divideHalfEven } from '../money.js';
import { isoFromMicros } from '../period.js';
import { daysOfPeriod, grainOf, type ReportPeriod, type ReportSection } from './report.js';

/** A section as it appears: every number is a text, so that the template does no arithmetic. */
export interface DocumentSection {
  key: ReportSection;
  title: string;
  /** There is nothing to show, and the sentences say so. */
  isEmpty: boolean;
  sentences: readonly string[];
  chart: DocumentChart | null;
  tables: readonly SectionTable[];
  /** The sources of the figures and their meaning. */
  sources: string;
}

export interface SectionTable {
  title: string;
  /** A sentence below the table; '' where there is none. */
  note: string;
  table: DocumentTable;
}

/** A drawing of figures that a table of the section has; drawn, never read. */
export interface DocumentChart {
  title: string;
  /** For readers who do not see it. */
  alt: string;
  drawing: ChartDrawing;
}

export type ChartDrawing =
  /** Columns over time; several series are stacked, the first at the bottom. */
  | { kind: 'columns'; unit: ChartUnit; series: readonly string[]; points: readonly ChartPoint[] }
  /** Lines over time, the first one strong. */
  | { kind: 'lines'; unit: ChartUnit; series: readonly string[]; points: readonly ChartPoint[] }
  /** A bar a row, with its text behind it. */
  | { kind: 'rows'; rows: readonly { label: string; value: number; text: string }[] };

export type ChartUnit = 'dollars' | 'count';

export interface ChartPoint {
  label: string;
  /** One a series; undefined where the series has ended. */
  values: readonly (number | undefined)[];
}

/** Cents as a document shows them, with a real minus sign. */
export const moneyText = (cents: bigint): string => dollarsText(cents).replace('-', '−');

export const countText = (count: number | bigint): string => grouped(String(count));

/** A share or a change in percent, to a tenth: `11.1%`. */
export function percentText(part: bigint, whole: bigint): string {
  if (whole === 0n) return '–';
  const size = whole < 0n ? -whole : whole;
  const tenths = divideHalfEven(part * 1_000n, size);
  const digits = (tenths < 0n ? -tenths : tenths).toString().padStart(2, '0');
  return `${tenths < 0n ? '−' : ''}${grouped(digits.slice(0, -1))}.${digits.slice(-1)}%`;
}

/** The change of a figure, for a column of changes: `+11.1%`, `new`, `–`. */
export function changeText(current: bigint, previous: bigint): string {
  if (current === previous) return '0.0%';
  if (previous === 0n) return 'new';
  const change = percentText(current - previous, previous);
  return change.startsWith('−') ? change : `+${change}`;
}

/** `in the 31 days before`; the days are those of the period. */
export const beforeText = (period: ReportPeriod): string => {
  const days = daysOfPeriod(period);
  return days === 1 ? 'on the day before' : `in the ${days} days before`;
};

/** The comparison of an amount or a count, as the end of a sentence: `$1.00 (10.0%) more than in the 31 days before`. */
export function comparisonText(
  current: bigint,
  previous: bigint,
  period: ReportPeriod,
  shown: (value: bigint) => string,
): string {
  const before = beforeText(period);
  if (current === previous) return `as much as ${before}`;
  if (previous === 0n) return `after none ${before}`;
  const change = current - previous;
  const size = change < 0n ? -change : change;
  const share = percentText(size, previous);
  return `${shown(size)} (${share}) ${change < 0n ? 'less' : 'more'} than ${before}`;
}

export const periodText = ({ fromDay, toDay }: ReportPeriod): string => spanText(fromDay, toDay);

/** The label of a point of a trend, short enough for an axis. */
export function partLabel(part: ReportPeriod, period: ReportPeriod): string {
  if (grainOf(period) === 'month') return dayText(part.fromDay).split(' ').slice(1).join(' ');
  return dayText(part.fromDay).slice(0, -5);
}

/** The name of a row of a trend. */
export function partName(part: ReportPeriod, period: ReportPeriod): string {
  if (grainOf(period) !== 'month') return periodText(part);
  const isWhole = part.fromDay.endsWith('-01') && daysOfPeriod(part) >= 28;
  return isWhole ? partLabel(part, period) : periodText(part);
}

/** `as of 23 Nov 2026 19:31:00 UTC`. */
export const asOfText = (micros: bigint): string => `as of ${timeText(isoFromMicros(micros))} UTC`;

export const callsText = (count: number): string => counted(count, 'call');

/** Cents of amounts that are whole cents already. */
export const centsOfWhole = (pico: bigint): bigint => pico / 10_000_000_000n;

export const sumOf = (values: readonly bigint[]): bigint => values.reduce((sum, value) => sum + value, 0n);
