import { DomainError } from './errors.js';

/** Deepest nesting that a JSON body may have. */
export const JSON_DEPTH_MAX = 64;

const BACKSLASH = 0x5c;

/** Refuses JSON nested deeper than `JSON_DEPTH_MAX`, on which recursive walks of the value would overflow the stack. */
function assertJsonDepth(text: string): void {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === 0x22) {
      at = endOfString(text, at);
    } else if (char === 0x7b || char === 0x5b) {
      depth += 1;
      if (depth > JSON_DEPTH_MAX) {
        throw new DomainError(
          'json_too_deep',
          `the JSON body nests deeper than ${JSON_DEPTH_MAX} levels; flatten it`,
        );
      }
    } else if (char === 0x7d || char === 0x5d) {
      depth -= 1;
    }
  }
}

/** Index of the quote that ends the string that begins at `start`; the length of the text if none does. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, start, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

/** Whether an odd number of backslashes precedes the character of the string that begins at `start`. */
function isEscaped(text: string, start: number, at: number): boolean {
  let before = at - 1;
  while (before > start && text.charCodeAt(before) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 0;
}

/** Bytes → JSON value; invalid UTF-8 is replaced, a byte order mark skipped. Errors: invalid_json, json_too_deep. */
export function parseJson(bytes: Buffer): unknown {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const text = bytes.toString('utf8', start);
  assertJsonDepth(text);
  if (text.trim() === '') throw new DomainError('invalid_json', 'the body is empty; send a JSON value');
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200).replace(/[^\x20-\x7e]/g, '?') : '';
    throw new DomainError('invalid_json', `the body is not JSON: ${reason}`);
  }
}
