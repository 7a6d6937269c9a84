import { z } from 'zod';
import { DomainError, type ErrorCode, type FieldIssue } from '../domain/errors.js';
import { stripText } from '../domain/events/stripText.js';
import { exclusiveEnd, type Instant, LATEST_MICROS, parseInstant } from '../domain/period.js';
import { findProvider } from '../domain/providers.js';

/**
 * A query string as a record. A parameter given twice is refused: which one counts would be a guess
 * (error invalid_parameter).
 */
export function readQuery(querystring: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of new URLSearchParams(querystring)) {
    if (name in query) {
      throw new DomainError('invalid_parameter', `${name}: given twice; give it once`, {
        issues: [{ in: 'query', field: name.slice(0, 100), message: 'given twice; give it once' }],
      });
    }
    query[name] = value;
  }
  return { ...query };
}

const CODES = {
  query: 'invalid_parameter',
  path: 'invalid_parameter',
  body: 'invalid_body',
  header: 'invalid_parameter',
} as const;

/** What a sender of JSON calls the types of values. */
const JSON_TYPES: Record<string, string> = {
  record: 'an object',
  object: 'an object',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

/** What is wrong in words for whoever wrote the request, where the schema itself says nothing. */
const plainMessage: z.core.$ZodErrorMap = (issue) => {
  if (issue.code !== 'invalid_type') return undefined;
  const wanted = JSON_TYPES[issue.expected];
  if (issue.input === undefined) return wanted === undefined ? 'is missing' : `is missing: give ${wanted}`;
  return wanted === undefined ? undefined : `must be ${wanted}`;
};

/** How much of what nobody asked for an answer repeats. */
const UNKNOWN_NAMES_MAX = 20;
const FIELD_CHARS_MAX = 100;

/** Parses a part of a request by its schema; every fault is listed at once. An issue may name its own code. */
export function validate<S extends z.ZodType>(
  schema: S,
  value: unknown,
  where: FieldIssue['in'],
): z.output<S> {
  const result = schema.safeParse(value, { error: plainMessage });
  if (result.success) return result.data;
  const issues: FieldIssue[] = result.error.issues.flatMap((issue) => {
    const place = issue.path.map(String);
    if (issue.code !== 'unrecognized_keys')
      return [{ in: where, field: place.join('.') || where, message: issue.message }];
    // Each by its own name, cut where somebody made it long.
    return issue.keys.slice(0, UNKNOWN_NAMES_MAX).map((name) => ({
      in: where,
      field: [...place, name.slice(0, FIELD_CHARS_MAX)].join('.'),
      message: 'is not known here; leave it out',
    }));
  });
  const first = result.error.issues[0];
  const custom = first?.code === 'custom' ? (first.params?.code as ErrorCode | undefined) : undefined;
  const missing = first?.code === 'invalid_type' && first.input === undefined && where !== 'body';
  const code: ErrorCode = custom ?? (missing ? 'missing_parameter' : CODES[where]);
  const detail = issues
    .slice(0, 5)
    .map((issue) => `${issue.field}: ${issue.message}`)
    .join('; ');
  throw new DomainError(code, detail, { issues });
}

/** true, false, 1 or 0; nothing else counts as a boolean. */
export const booleanParameter = z
  .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
  .transform((text) => text === 'true' || text === '1');

/** A whole number of decimal digits within bounds. */
export function integerParameter(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, { error: `must be a whole number from ${min} to ${max}` })
    .transform(Number)
    .refine((value) => value >= min && value <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    })
    .meta({
      // What is read is the text of a number; the documents tell the number.
      override: ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
        delete jsonSchema.pattern;
        Object.assign(jsonSchema, { type: 'integer', minimum: min, maximum: max });
      },
    });
}

/** ISO 8601 date or time as an Instant. */
export const instantParameter = z
  .string({
    error: (issue) =>
      issue.input === undefined ? 'is required: an ISO 8601 time' : 'must be an ISO 8601 time',
  })
  .transform((text, context): Instant => {
    // A plus sign that was not escaped arrives as a space.
    const instant = parseInstant(text.replace(/ (\d{2}:?\d{2})$/, '+$1'));
    if (instant) return instant;
    context.addIssue({
      code: 'custom',
      message: 'must be an ISO 8601 time such as 2026-01-31T00:00:00Z, or a date',
    });
    return z.NEVER;
  })
  .meta({
    override: {
      type: 'string',
      anyOf: [{ format: 'date-time' }, { format: 'date' }],
      description: 'ISO 8601 time or date, UTC when it names no offset',
      examples: ['2026-01-31T00:00:00Z', '2026-01-31'],
    },
  });

/** Labels and ids to filter by, stripped as ingest strips them: a caller finds what it sent by what it sent. */
export const filterParameter = z
  .string()
  .max(512, { error: 'must have at most 512 characters' })
  .transform(stripText)
  .meta({ type: 'string' });

export const PAGE_LIMIT_DEFAULT = 100;
export const PAGE_LIMIT_MAX = 1_000;
export const PAGE_OFFSET_MAX = 100_000;

/** A page of a list that is short enough to go through by offset alone. */
export const offsetParameters = (limitMax = PAGE_LIMIT_MAX, limitDefault = PAGE_LIMIT_DEFAULT) => ({
  limit: integerParameter(1, limitMax).default(limitDefault),
  offset: integerParameter(0, PAGE_OFFSET_MAX).default(0),
});

export const pageParameters = {
  ...offsetParameters(),
  cursor: z.string().max(1_024, { error: 'is not a cursor of this list' }).optional(),
};

/** What the answer with a page says of it. */
export const pageFields = { count: z.int(), offset: z.int(), has_more: z.boolean() };

/** A page from one row more than it holds: the extra row tells whether there are more. */
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

/** A provider filter in any of its names; a word that is no provider stays as it is and finds nothing. */
export function providerFilter(word: string | undefined): string | undefined {
  return word === undefined ? undefined : (findProvider(word) ?? word);
}

/**
 * Half-open window from an inclusive pair; either side may be absent. Error invalid_range when the lower bound lies
 * after the upper.
 */
export function windowOf(
  since: Instant | undefined,
  until: Instant | undefined,
  names: readonly [string, string],
): { fromMicros: bigint | undefined; toMicros: bigint | undefined } {
  const fromMicros = since?.micros;
  const toMicros = until && exclusiveEnd(until);
  if (fromMicros !== undefined && toMicros !== undefined && fromMicros >= toMicros) {
    throw new DomainError('invalid_range', `${names[0]} lies after ${names[1]}; swap them`, {
      issues: [{ in: 'query', field: names[0], message: `must not lie after ${names[1]}` }],
    });
  }
  return { fromMicros, toMicros };
}

/** An opaque cursor for a list: the sort position of its last row. */
export function encodeCursor(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** The position in a cursor. Error invalid_parameter for one that is not of this list. */
export function decodeCursor(cursor: string, length: number): string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(parts) && parts.length === length && parts.every((part) => typeof part === 'string'))
      return parts;
  } catch {
    // falls through to the one answer for every bad cursor
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

const UUID_TEXT = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function isUuidText(text: string): boolean {
  return UUID_TEXT.test(text);
}

/**
 * The position in a cursor of a list ordered by time and id, whose ids `isId` knows; undefined without one. Error
 * invalid_parameter.
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

/** As `pageOf`, of a list that a cursor goes through; `positionOf` is where a row stands in the list's order. */
export function cursoredPage<T>(
  found: readonly T[],
  query: { limit: number; offset: number },
  positionOf: (row: T) => readonly [bigint, string],
) {
  const { shown, page } = pageOf(found, query);
  const last = shown.at(-1);
  const cursor = page.has_more && last !== undefined ? encodeCursor(positionOf(last).map(String)) : null;
  return { shown, page: { ...page, next_cursor: cursor } };
}

/** Cursor after an event in a list ordered by time and id. */
export function encodeEventCursor(event: { timestampMicros: bigint; id: string }): string {
  return encodeCursor([event.timestampMicros.toString(), event.id]);
}

/** The event position in a cursor; undefined without one. Error invalid_parameter. */
export function decodeEventCursor(
  cursor: string | undefined,
): { timestampMicros: bigint; id: string } | undefined {
  const position = decodeTimeCursor(cursor, isUuidText);
  return position && { timestampMicros: position.micros, id: position.id };
}

/** The number in a cursor of a list that is ordered by a number of its rows; undefined without one. Error invalid_parameter. */
export function decodeSeqCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const [seq = ''] = decodeCursor(cursor, 1);
  if (!/^\d{1,15}$/.test(seq)) throw notOfThisList();
  return Number(seq);
}

/** The offset in a cursor of a list that is ordered by a sum; `fallback` without a cursor. Error invalid_parameter. */
export function decodeOffsetCursor(cursor: string | undefined, fallback: number): number {
  if (cursor === undefined) return fallback;
  const [offset = ''] = decodeCursor(cursor, 1);
  if (!/^\d{1,9}$/.test(offset)) throw notOfThisList();
  return Number(offset);
}
