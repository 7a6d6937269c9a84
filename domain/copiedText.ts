/**
 * The text form in which Postgres copies rows (its documentation of COPY, "Text Format"): values apart by tabs, a line
 * break behind each row, and control characters as a backslash and a letter.
 */

/** The byte of an absent value, which is the only one of its field. No stored text contains this control character. */
export const COPIED_NULL = 2;

/** The byte that a letter after a backslash represents; any other byte represents itself. */
export const COPIED_ESCAPES: ReadonlyMap<number, number> = new Map(
  Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }).map(([letter, control]) => [
    letter.charCodeAt(0),
    control.charCodeAt(0),
  ]),
);
