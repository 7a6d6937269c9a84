import { z } from 'zod';
import { parseMonth } from '../domain/billing/periods.js';
import { DomainError, type ErrorCode, type FieldIssue } from '../domain/errors.js';
import { stripText } from '../domain/events/jsonValues.js';
import {
  dayOf,
  exclusiveEnd,
  type Instant,
  MICROS_PER_DAY,
  microsOfDay,
  parseInstant,
  shiftDay,
  startOfDay,
} from '../domain/period.js';
import { findProvider } from '../domain/providers.js';

/**
 * A query string as a record. A repeated parameter is refused (error invalid_parameter), since choosing one value would
 * be a guess.
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

/** Longest text that is read as a public id, which has at most 36 characters. */
const ID_CHARS_MAX = 64;

/** A public id in a path or a body, such as `clm_…`; the stored rows decide whether it exists. `of`: a noun, with its article. */
export const publicIdText = (of: string) => z.string().max(ID_CHARS_MAX, { error: `is not the id of ${of}` });

const CODES = {
  query: 'invalid_parameter',
  path: 'invalid_parameter',
  body: 'invalid_body',
  header: 'invalid_parameter',
} as const;

/** JSON's names of value types, for messages. */
const JSON_TYPES: Record<string, string> = {
  record: 'an object',
  object: 'an object',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

/** The message for the client where the schema has none. */
const plainMessage: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code !== 'invalid_type') return undefined;
  const wanted = JSON_TYPES[issue.expected];
  if (issue.input === undefined)
    return wanted === undefined ? 'is missing: give it' : `is missing: give ${wanted}`;
  return wanted === undefined ? undefined : `must be ${wanted}`;
};

/** Most unknown fields that an error names. */
const UNKNOWN_NAMES_MAX = 20;
const FIELD_CHARS_MAX = 100;

/** Parses a part of a request by its schema; the error lists every fault. An issue may set its error code. */
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
    // Lists each unknown field; long names are cut.
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

/** true, false, 1 or 0; any other word is refused. */
export const booleanParameter = z
  .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
  .transform((text) => text === 'true' || text === '1');

/** A whole number in decimal digits, within bounds. */
export function integerParameter(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, { error: `must be a whole number from ${min} to ${max}` })
    .transform(Number)
    .refine((value) => value >= min && value <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    })
    .meta({
      // The query parameter is a number as text; the OpenAPI document shows a number.
      override: ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
        delete jsonSchema.pattern;
        Object.assign(jsonSchema, { type: 'integer', minimum: min, maximum: max });
      },
    });
}

/**
 * A parameter with a default value. The default is documented explicitly, because the generator omits it where a text
 * is transformed.
 */
export function withDefault<S extends z.ZodType>(parameter: S, value: Exclude<z.output<S>, undefined>) {
  return parameter.default(value).meta({
    override: ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
      jsonSchema.default = value;
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
    // An unescaped plus sign arrives as a space.
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

/** An ISO 8601 time or date in a body, as microseconds; a date means its first moment. */
export const momentField = (rule: string, description: string) =>
  z
    .string({ error: rule })
    .transform((word, context): bigint => {
      const instant = parseInstant(word);
      if (instant) return instant.micros;
      context.addIssue({ code: 'custom', message: rule });
      return z.NEVER;
    })
    .meta({ type: 'string', description });

/** Labels and ids to filter by, stripped as ingest strips them, so that the text of a sent call finds it. */
export const filterParameter = z
  .string()
  .max(512, { error: 'must have at most 512 characters' })
  .transform(stripText)
  .meta({ type: 'string' });

/**
 * A filter by a word of a list, in any letter case. A word outside the list is refused as a typing error. `spell`
 * converts to the case of the list.
 */
export const wordParameter = <const T extends readonly [string, ...string[]]>(
  words: T,
  spell = (word: string) => word.toLowerCase(),
) =>
  z
    .string()
    .transform((word) => spell(word.trim()))
    .pipe(z.enum(words, { error: `must be one of ${words.join(', ')}` }))
    .meta({ enum: [...words] });

/** A name that a user chooses. */
export const nameField = z
  .string()
  .trim()
  .min(1, { error: 'must not be empty' })
  .max(256, { error: 'must have at most 256 characters' });

/** A provider filter under any of the provider's names. An unknown word stays unchanged and matches nothing. */
export function providerFilter(word: string | undefined): string | undefined {
  return word === undefined ? undefined : (findProvider(word) ?? word);
}

/**
 * The half-open window of an inclusive pair; either bound may be absent. Error: invalid_range when the lower bound is
 * after the upper one.
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

/** Days that lists cover when no lower bound is set. */
const WINDOW_DAYS = 30;

/**
 * Half-open days from an inclusive pair of times; a day is included when its beginning lies between them. Default: up
 * to today, and the 30 days before the end. Error: invalid_range when the lower bound is after the upper one.
 */
export function dayWindowOf(
  from: Instant | undefined,
  to: Instant | undefined,
  nowMicros: bigint,
): { fromDay: string; toDay: string } {
  const window = windowOf(from, to, ['from', 'to']);
  // A day is included when its first moment lies within the bounds.
  const firstFrom = (micros: bigint) => {
    const day = startOfDay(micros);
    return shiftDay(dayOf(day), day === micros ? 0 : 1);
  };
  const toDay = firstFrom(window.toMicros ?? startOfDay(nowMicros) + MICROS_PER_DAY);
  const fromDay =
    window.fromMicros === undefined ? shiftDay(toDay, -WINDOW_DAYS) : firstFrom(window.fromMicros);
  return { fromDay, toDay };
}

/** A UTC month, as its first day. */
export const monthParameter = z
  .string({ error: 'is required: a month such as 2026-10' })
  .refine((text) => parseMonth(text) !== undefined, { error: 'must be a month such as 2026-10' })
  .transform((month) => `${month}-01`)
  .meta({ type: 'string', description: 'UTC month, YYYY-MM', example: '2026-10' });

/** Refuses a month of bills that has not begun. Error: invalid_parameter naming `period`. */
export function assertMonthBegun(firstDay: string, nowMicros: bigint): void {
  if (microsOfDay(firstDay) <= nowMicros) return;
  const message = `${firstDay.slice(0, 7)} has not begun; ask for a month up to the current one`;
  throw new DomainError('invalid_parameter', `period: ${message}`, {
    issues: [{ in: 'query', field: 'period', message }],
  });
}

/** Seconds for which a rotated secret stays valid. */
export const graceField = (max: number, byDefault: number, description: string) =>
  z
    .int({ error: `must be a whole number from 0 to ${max}` })
    .min(0, { error: 'must not be negative' })
    .max(max, { error: `must be at most ${max}: a week` })
    .default(byDefault)
    .meta({ description });
