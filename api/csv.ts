import type { Readable } from 'node:stream';
import { z } from 'zod';
import { csvText } from '../domain/csv.js';
import {
  decimalFromPico,
  decimalFromScaled,
  divideHalfEven,
  type Pico,
  parseScaled,
} from '../domain/money.js';

/** The `format` parameter of resources that answer JSON or CSV. */
export const formatParameter = z
  .enum(['json', 'csv'], { error: 'must be json or csv' })
  .default('json')
  .meta({ description: 'csv: exact decimals, as an attachment' });

/** A cell of a CSV answer: text, or a number that is already formatted. */
export type CsvCell = string | { number: string } | null;

/** Exact dollars as a CSV number. */
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
 * Writes one row by RFC 4180, ended by CRLF. Text that a spreadsheet would run as a formula gets a leading apostrophe;
 * numbers are written unchanged.
 */
export function writeCsvRow(row: readonly CsvCell[]): string {
  return `${row.map(textOf).join(',')}\r\n`;
}

export function writeCsv(header: readonly string[], rows: readonly (readonly CsvCell[])[]): string {
  return [header, ...rows].map(writeCsvRow).join('');
}

/** A CSV answer with a file name for browsers. */
export function csvAnswer(filename: string, data: string | Readable) {
  return {
    status: 200,
    headers: { 'Content-Disposition': `attachment; filename="${filename}"` },
    content: { type: 'text/csv; charset=utf-8; header=present', data },
  };
}

/** The columns of a list as CSV, in their order. */
export type CsvColumns<T> = readonly (readonly [name: string, cell: (row: T) => CsvCell])[];

/** The answer of an endpoint with `csv` besides its body: the same rows, written only where they are requested. */
export interface CsvTable {
  /** A name that is safe in a header: letters, digits, dots and hyphens. */
  filename: string;
  header: string;
  rows(): string;
}

export function csvTable<T>(name: string, columns: CsvColumns<T>, rows: readonly T[]): CsvTable {
  return {
    filename: `${name.replace(/[^A-Za-z0-9._-]/g, '-')}.csv`,
    header: writeCsvRow(columns.map(([column]) => column)),
    rows: () => rows.map((row) => writeCsvRow(columns.map(([, cell]) => cell(row)))).join(''),
  };
}

/**
 * Reads a stream's first item before the answer begins, so that an unreachable database is an ordinary 503 and not a
 * broken transfer.
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

/** A list whose JSON rows are the rows of a CSV answer too. */
export interface CsvList {
  /** Of the file. */
  name: string;
  /** The list in the body. */
  field: string;
  /** Paths of the columns in a row. */
  columns: readonly (readonly string[])[];
}

/**
 * Every field of a row that is one value, or a list of single values, becomes a column; a field of an object in the row
 * is named after both.
 */
export function csvList(name: string, field: string, row: z.ZodType): CsvList {
  return { name, field, columns: leavesOf(row, []) };
}

/** The rows of a body's list as CSV; without a field its only, or first, list of objects. */
export function csvListOf(name: string, body: z.ZodType, field?: string): CsvList {
  for (const [key, schema] of Object.entries((body as z.ZodObject).shape)) {
    const { type, element } = (schema as unknown as { def: { type: string; element?: z.ZodType } }).def;
    if (field === undefined ? type === 'array' && element?.def.type === 'object' : key === field)
      return csvList(name, key, element as z.ZodType);
  }
  throw new TypeError(`the answer of ${name}.csv has no list`);
}

const SINGLE = new Set(['string', 'number', 'int', 'boolean', 'enum', 'literal']);
const DEPTH_MAX = 2;

function leavesOf(schema: z.ZodType, path: readonly string[]): (readonly string[])[] {
  const { def } = schema as unknown as { def: { type: string; innerType?: z.ZodType; element?: z.ZodType } };
  if (def.innerType) return leavesOf(def.innerType, path);
  if (SINGLE.has(def.type)) return [path];
  if (def.type === 'array') return def.element && isSingle(def.element) ? [path] : [];
  if (def.type !== 'object' || path.length >= DEPTH_MAX) return [];
  const { shape } = schema as z.ZodObject;
  return Object.entries(shape).flatMap(([name, field]) => leavesOf(field as z.ZodType, [...path, name]));
}

const isSingle = (schema: z.ZodType): boolean =>
  SINGLE.has((schema as unknown as { def: { type: string } }).def.type);

/** The rows of a body as CSV, with the same figures. */
export function tableOfList({ name, field, columns }: CsvList, body: unknown): CsvTable {
  const rows = (body as Record<string, readonly object[]>)[field] ?? [];
  const cells: CsvColumns<object> = columns.map((path) => [
    path.join('_'),
    (row) =>
      cellOf(path.reduce<unknown>((value, key) => (value as Record<string, unknown> | null)?.[key], row)),
  ]);
  return csvTable(name, cells, rows);
}

function cellOf(value: unknown): CsvCell {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number') return { number: decimalFromNumber(value) };
  return Array.isArray(value) ? value.join('; ') : String(value);
}

/** More digits than any number has after its point. */
const DIGITS_MAX = 350;

/** The shortest decimal of a JSON number, without an exponent. */
function decimalFromNumber(value: number): string {
  const text = String(value);
  return text.includes('e') ? decimalFromScaled(parseScaled(text, DIGITS_MAX) ?? 0n, DIGITS_MAX) : text;
}
