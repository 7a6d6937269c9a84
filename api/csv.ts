import { z } from 'zod';
import { csvText } from '../domain/csv.js';
import { decimalFromPico, decimalFromScaled, divideHalfEven, type Pico } from '../domain/money.js';

/** What a resource that answers CSV too is asked for. */
export const formatParameter = z
  .enum(['json', 'csv'], { error: 'must be json or csv' })
  .default('json')
  .meta({ description: 'csv: exact decimals, as an attachment' });

/** A cell of a CSV answer: a text, or a number that is already written out. */
export type CsvCell = string | { number: string } | null;

/** Exact dollars, as a number. */
export function csvUsd(pico: Pico | null): CsvCell {
  return pico === null ? null : { number: decimalFromPico(pico) };
}

export function csvInteger(value: number): CsvCell {
  return { number: String(value) };
}

const SHARE_DIGITS = 6;

/** part ÷ whole to six digits; empty where the whole is zero. */
export function csvShare(part: Pico, whole: Pico): CsvCell {
  if (whole === 0n) return null;
  const scaled = part * 10n ** BigInt(SHARE_DIGITS);
  const value = whole < 0n ? divideHalfEven(-scaled, -whole) : divideHalfEven(scaled, whole);
  return { number: decimalFromScaled(value, SHARE_DIGITS) };
}

function textOf(cell: CsvCell): string {
  if (cell === null) return '';
  return typeof cell === 'string' ? csvText(cell) : cell.number;
}

/**
 * RFC 4180: a row, ended by CRLF. A text that a spreadsheet would run as a formula gets an apostrophe in front; numbers
 * are written as they are.
 */
export function writeCsvRow(row: readonly CsvCell[]): string {
  return `${row.map(textOf).join(',')}\r\n`;
}

export function writeCsv(header: readonly string[], rows: readonly (readonly CsvCell[])[]): string {
  return [header, ...rows].map(writeCsvRow).join('');
}

/** A CSV answer that browsers save under a name. */
export function csvAnswer(filename: string, text: string) {
  return {
    status: 200,
    headers: { 'Content-Disposition': `attachment; filename="${filename}"` },
    content: { type: 'text/csv; charset=utf-8; header=present', data: text },
  };
}

/**
 * A stream whose first item is read before the answer begins: a database that is away is an ordinary 503, not a broken
 * transfer.
 */
export async function readAhead<T>(source: AsyncGenerator<T>): Promise<AsyncGenerator<T>> {
  return startingWith(await source.next(), source);
}

async function* startingWith<T>(
  first: IteratorResult<T, unknown>,
  rest: AsyncGenerator<T>,
): AsyncGenerator<T> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
