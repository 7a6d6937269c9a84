import { z } from 'zod';
import { DomainError } from '../domain/errors.js';
import { isUuidText } from '../domain/ids.js';
import { LATEST_MICROS } from '../domain/period.js';
import { integerParameter, withDefault } from './query.js';

export const PAGE_LIMIT_DEFAULT = 100;
export const PAGE_LIMIT_MAX = 1_000;
export const PAGE_OFFSET_MAX = 100_000;

/** Parameters of a short list that is paged by offset alone. */
export const offsetParameters = (limitMax = PAGE_LIMIT_MAX, limitDefault = PAGE_LIMIT_DEFAULT) => ({
  limit: withDefault(integerParameter(1, limitMax), limitDefault),
  offset: withDefault(integerParameter(0, PAGE_OFFSET_MAX), 0),
});

/** Parameters of a list that is paged by cursor. */
export const pageParametersOf = (limitMax: number, limitDefault: number) => ({
  ...offsetParameters(limitMax, limitDefault),
  cursor: z.string().max(1_024, { error: 'is not a cursor of this list' }).optional(),
});

export const pageParameters = pageParametersOf(PAGE_LIMIT_MAX, PAGE_LIMIT_DEFAULT);

/** Fields of an answer with one page. */
export const pageFields = { count: z.int(), offset: z.int(), has_more: z.boolean() };

/** The same fields for a list with cursors. */
export const cursoredPageFields = { ...pageFields, next_cursor: z.string().nullable() };

/** Builds a page from one row more than it holds: the extra row shows that more exist. */
export function pageOf<T>(
  found: readonly T[],
  query: { limit: number; offset: number },
): { shown: T[]; page: z.output<z.ZodObject<typeof pageFields>> } {
  const shown = found.slice(0, query.limit);
  return {
    shown,
    page: { count: shown.length, offset: query.offset, has_more: found.length > query.limit },
  };
}

/** Encodes the sort position of a list's last row as an opaque cursor. */
export function encodeCursor(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Decodes the position in a cursor. Error: invalid_parameter for a cursor of another list. */
function decodeCursor(cursor: string, length: number): string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(parts) && parts.length === length && parts.every((part) => typeof part === 'string'))
      return parts;
  } catch {
    // Every malformed cursor gets the error below.
  }
  throw notOfThisList();
}

function notOfThisList(): DomainError {
  return new DomainError(
    'invalid_parameter',
    'cursor: is not a cursor of this list; take next_cursor of the last answer',
    {
      issues: [{ in: 'query', field: 'cursor', message: 'take next_cursor of the last answer' }],
    },
  );
}

/**
 * The position in a cursor of a list ordered by time and id; `isId` validates the id; undefined without a cursor.
 * Error: invalid_parameter.
 */
export function decodeTimeCursor(
  cursor: string | undefined,
  isId: (text: string) => boolean,
): { micros: bigint; id: string } | undefined {
  if (cursor === undefined) return undefined;
  const [micros = '', id = ''] = decodeCursor(cursor, 2);
  if (!/^\d{1,18}$/.test(micros) || BigInt(micros) > LATEST_MICROS || !isId(id)) throw notOfThisList();
  return { micros: BigInt(micros), id };
}

/** A row's position in the order of its list. */
type Position = readonly (bigint | number | string)[];

/** The cursor after the last shown row; null at the end of the list. */
export function nextCursor<T>(
  shown: readonly T[],
  hasMore: boolean,
  positionOf: (row: T) => Position,
): string | null {
  const last = shown.at(-1);
  return hasMore && last !== undefined ? encodeCursor(positionOf(last).map(String)) : null;
}

/** `pageOf` for a list with cursors. */
export function cursoredPage<T>(
  found: readonly T[],
  query: { limit: number; offset: number },
  positionOf: (row: T) => Position,
) {
  const { shown, page } = pageOf(found, query);
  return { shown, page: { ...page, next_cursor: nextCursor(shown, page.has_more, positionOf) } };
}

/** A call's position in a list ordered by time and id. */
export function eventPosition(event: { timestampMicros: bigint; id: string }): Position {
  return [event.timestampMicros, event.id];
}

/** The event position in a cursor; undefined without a cursor. Error: invalid_parameter. */
export function decodeEventCursor(
  cursor: string | undefined,
): { timestampMicros: bigint; id: string } | undefined {
  const position = decodeTimeCursor(cursor, isUuidText);
  return position && { timestampMicros: position.micros, id: position.id };
}

/**
 * The run and the place in its result where a page begins; the run's id prevents a page of another result. undefined
 * without a cursor. Error: invalid_parameter.
 */
export function decodeResultCursor(
  cursor: string | undefined,
): { runId: string; timestampMicros: bigint; id: string } | undefined {
  if (cursor === undefined) return undefined;
  const [runId = '', micros = '', id = ''] = decodeCursor(cursor, 3);
  if (!isUuidText(runId) || !/^\d{1,18}$/.test(micros) || !isUuidText(id)) throw notOfThisList();
  if (BigInt(micros) > LATEST_MICROS) throw notOfThisList();
  return { runId, timestampMicros: BigInt(micros), id };
}

/**
 * The position in a cursor of a list ordered by size and id; `isId` validates the id; undefined without a cursor.
 * Error: invalid_parameter.
 */
export function decodeSizeCursor(
  cursor: string | undefined,
  isId: (text: string) => boolean,
): { sizePico: bigint; id: string } | undefined {
  if (cursor === undefined) return undefined;
  const [size = '', id = ''] = decodeCursor(cursor, 2);
  if (!/^\d{1,24}$/.test(size) || !isId(id)) throw notOfThisList();
  return { sizePico: BigInt(size), id };
}

/** The number in a cursor of a list ordered by a number; undefined without a cursor. Error: invalid_parameter. */
export function decodeSeqCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const [seq = ''] = decodeCursor(cursor, 1);
  if (!/^\d{1,15}$/.test(seq)) throw notOfThisList();
  return Number(seq);
}

/** The offset in a cursor of a list ordered by a sum; `fallback` without a cursor. Error: invalid_parameter. */
export function decodeOffsetCursor(cursor: string | undefined, fallback: number): number {
  if (cursor === undefined) return fallback;
  const [offset = ''] = decodeCursor(cursor, 1);
  if (!/^\d{1,9}$/.test(offset)) throw notOfThisList();
  return Number(offset);
}

const PICO_DIGITS = /^-?\d{1,30}$/;

/**
 * The position in a cursor of a list ordered by amount and id; `isId` validates the id; undefined without a cursor.
 * Error: invalid_parameter.
 */
export function decodeAmountCursor(
  cursor: string | undefined,
  isId: (text: string) => boolean,
): { pico: bigint; id: string } | undefined {
  if (cursor === undefined) return undefined;
  const [pico = '', id = ''] = decodeCursor(cursor, 2);
  if (!PICO_DIGITS.test(pico) || !isId(id)) throw notOfThisList();
  return { pico: BigInt(pico), id };
}

/**
 * The position in a cursor of a list ordered by time and amount, and the index among rows with equal values; undefined
 * without a cursor. Error: invalid_parameter.
 */
export function decodeTimeAmountCursor(
  cursor: string | undefined,
): { micros: bigint; pico: bigint; place: number } | undefined {
  if (cursor === undefined) return undefined;
  const [micros = '', pico = '', place = ''] = decodeCursor(cursor, 3);
  if (!/^\d{1,18}$/.test(micros) || BigInt(micros) > LATEST_MICROS) throw notOfThisList();
  if (!PICO_DIGITS.test(pico) || !/^\d{1,9}$/.test(place)) throw notOfThisList();
  return { micros: BigInt(micros), pico: BigInt(pico), place: Number(place) };
}
