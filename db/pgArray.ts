/**
 * Postgres array literals made by hand: twice as quick as letting the driver serialise JavaScript arrays, and ingest
 * is bound by that.
 */
const NEEDS_ESCAPE = /["\\]/;
const ESCAPE = /["\\]/g;

function quote(text: string): string {
  return `"${NEEDS_ESCAPE.test(text) ? text.replace(ESCAPE, '\\$&') : text}"`;
}

/** `{"a","b",NULL}` for texts. */
export function textArray(values: readonly (string | null)[]): string {
  let literal = '{';
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (i > 0) literal += ',';
    literal += value === null || value === undefined ? 'NULL' : quote(value);
  }
  return `${literal}}`;
}

/** `{1,2,NULL}` for what needs no quotes: numbers, booleans, uuids, decimal texts. */
export function plainArray(values: readonly (string | number | bigint | boolean | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : String(value))).join(',')}}`;
}

/** The items of an array's text whose elements need no quotes. */
export function plainItems(literal: string | null): string[] {
  return literal === null || literal === '{}' ? [] : literal.slice(1, -1).split(',');
}
