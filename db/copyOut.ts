import pg from 'pg';
import type { SqlValue } from './orgDb.js';

/** The text of an absent value: no stored text contains the character, since control characters are stripped. */
const NULL_TEXT = '\u0002';

/** The characters that Postgres writes with a backslash in the text form of COPY. */
const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/**
 * `COPY (select …) TO STDOUT` as a query of the driver: the cheapest way to read rows as texts, since Postgres sends a
 * row as one text and the driver creates no object for it. Stored texts are ASCII.
 */
export class CopyOut extends pg.Query {
  /** The rows so far, each value its text or null. */
  readonly texts: (string | null)[][] = [];

  /** COPY takes no parameters, so the values of `$1…` are written into the statement as literals. */
  constructor(sql: string, values: readonly SqlValue[], done: (error: Error | undefined) => void) {
    const select = sql.replaceAll(/\$(\d+)/g, (_, number) => literalOf(values[Number(number) - 1] ?? null));
    super(`copy (${select}) to stdout (null '${NULL_TEXT}')`, done);
  }

  /** Called by the driver for each row; the bytes are valid during the call only. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    this.texts.push(fieldsOf(chunk.toString('latin1', 0, chunk.length - 1)));
  }
}

function literalOf(value: SqlValue): string {
  if (value === null) return 'null';
  return pg.escapeLiteral(String(value));
}

function fieldsOf(line: string): (string | null)[] {
  const fields: (string | null)[] = line.split('\t');
  const isEscaped = line.includes('\\');
  for (let index = 0; index < fields.length; index += 1) {
    const field = fields[index] as string;
    if (field === NULL_TEXT) fields[index] = null;
    else if (isEscaped && field.includes('\\')) fields[index] = unescaped(field);
  }
  return fields;
}

function unescaped(field: string): string {
  return field.replaceAll(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter);
}
