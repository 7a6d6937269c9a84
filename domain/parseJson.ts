import { DomainError } from './errors.js';

/** Deepest nesting that a JSON body may have. */
export const JSON_DEPTH_MAX = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Refuses JSON nested deeper than `JSON_DEPTH_MAX`, on which recursive walks of the value would overflow the stack. */
export function assertJsonDepth(bytes: Uint8Array): void {
  let depth = 0;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      i += 1;
      while (i < bytes.length && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > JSON_DEPTH_MAX) {
        throw new DomainError(
          'json_too_deep',
          `the JSON body nests deeper than ${JSON_DEPTH_MAX} levels; flatten it`,
        );
      }
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
    }
  }
}

/** Bytes → JSON value; invalid UTF-8 is replaced, a byte order mark skipped. Errors: invalid_json, json_too_deep. */
export function parseJson(bytes: Buffer): unknown {
  assertJsonDepth(bytes);
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const text = bytes.toString('utf8', start);
  if (text.trim() === '') throw new DomainError('invalid_json', 'the body is empty; send a JSON value');
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200).replace(/[^\x20-\x7e]/g, '?') : '';
    throw new DomainError('invalid_json', `the body is not JSON: ${reason}`);
  }
}
