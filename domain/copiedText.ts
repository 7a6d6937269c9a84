/**
 * The text form in which Postgres copies rows (its documentation of COPY, "Text Format"): values apart by tabs, a line
 * break behind each row, and control characters as a backslash and a letter. Each line is the body of a message, whose
 * header precedes it: a code, and four bytes with the length of the message without its code.
 */

/** Bytes of the header before each line. */
export const COPIED_HEADER = 5;

/** Index of the line break of the line whose header begins at `at`; past the end where the header is incomplete. */
export function copiedLineEnd(lines: Buffer, at: number): number {
  return at + COPIED_HEADER > lines.length ? lines.length : at + lines.readUInt32BE(at + 1);
}

/** The byte of an absent value, which is the only one of its field. No stored text contains this control character. */
export const COPIED_NULL = 2;

/** The byte that a letter after a backslash represents; any other byte represents itself. */
export const COPIED_ESCAPES: ReadonlyMap<number, number> = new Map(
  Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }).map(([letter, control]) => [
    letter.charCodeAt(0),
    control.charCodeAt(0),
  ]),
);
