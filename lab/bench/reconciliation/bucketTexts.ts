/**
 * Cuts a saved page of a billing API into its buckets without parsing numbers, so that they are served with the
 * digits that were written.
 */

/** The results of one bucket as unparsed text. */
export interface BucketText {
  startSeconds: number;
  endSeconds: number;
  results: string[];
}

/** One element of an array and the position of its end. */
interface Piece {
  text: string;
  end: number;
}

/** The position after the JSON value that begins at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '"') {
      at = endOfString(text, at);
      if (depth === 0) return at + 1;
    } else if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') {
      depth -= 1;
      if (depth === 0) return at + 1;
      if (depth < 0) return at;
    } else if (depth === 0 && (sign === ',' || /\s/.test(sign ?? ''))) return at;
  }
  return text.length;
}

/** The position of the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at;
  }
  throw new RangeError('a string of the page does not end');
}

function skipBlank(text: string, start: number): number {
  let at = start;
  while (at < text.length && /[\s,]/.test(text[at] ?? '')) at += 1;
  return at;
}

/** The elements of the array that begins at `start`. */
function elementsOf(text: string, start: number): Piece[] {
  const pieces: Piece[] = [];
  let at = skipBlank(text, start + 1);
  while (at < text.length && text[at] !== ']') {
    const end = endOfValue(text, at);
    pieces.push({ text: text.slice(at, end), end });
    at = skipBlank(text, end);
  }
  return pieces;
}

/** The fields of an object's text, unparsed. */
function fieldsOf(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  let at = skipBlank(text, 1);
  while (at < text.length && text[at] === '"') {
    const closing = endOfString(text, at);
    const name = JSON.parse(text.slice(at, closing + 1)) as string;
    const value = skipBlank(text, text.indexOf(':', closing) + 1);
    const end = endOfValue(text, value);
    fields.set(name, text.slice(value, end));
    at = skipBlank(text, end);
  }
  return fields;
}

/** Unix seconds (OpenAI) or RFC 3339 (Anthropic). */
function secondsOf(text: string | undefined): number {
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  const seconds = typeof value === 'string' ? Date.parse(value) / 1_000 : value;
  if (typeof seconds !== 'number' || !Number.isFinite(seconds))
    throw new RangeError('a bucket of the document has no time');
  return seconds;
}

/** The buckets of a document: one page, an array of pages, or consecutive pages. */
export function readBucketTexts(document: string): BucketText[] {
  const buckets: BucketText[] = [];
  let at = skipBlank(document, 0);
  while (at < document.length) {
    const end = endOfValue(document, at);
    const pages =
      document[at] === '[' ? elementsOf(document, at).map(({ text }) => text) : [document.slice(at, end)];
    for (const page of pages) {
      for (const { text } of elementsOf(fieldsOf(page).get('data') ?? '[]', 0)) {
        const fields = fieldsOf(text);
        buckets.push({
          startSeconds: secondsOf(fields.get('start_time') ?? fields.get('starting_at')),
          endSeconds: secondsOf(fields.get('end_time') ?? fields.get('ending_at')),
          results: elementsOf(fields.get('results') ?? '[]', 0).map((result) => result.text),
        });
      }
    }
    at = skipBlank(document, end);
  }
  return buckets;
}
