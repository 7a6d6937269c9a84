import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAnswerKept, parseIdempotencyKey } from '../../../domain/access/idempotencyKey.js';
import { DomainError } from '../../../domain/errors.js';

const CHARS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-'];
const key = fc.string({ unit: fc.constantFrom(...CHARS), minLength: 1, maxLength: 128 });

function codeOf(header: string): string {
  try {
    parseIdempotencyKey(header);
    return 'taken';
  } catch (error) {
    return error instanceof DomainError ? error.code : 'another error';
  }
}

describe('an Idempotency-Key', () => {
  it('is the same key bare and as a quoted string of structured fields', () => {
    fc.assert(
      fc.property(key, (text) => {
        expect(parseIdempotencyKey(text)).toBe(text);
        expect(parseIdempotencyKey(`"${text}"`)).toBe(text);
      }),
    );
  });

  it('is 1 to 128 characters', () => {
    expect(parseIdempotencyKey('x'.repeat(128))).toHaveLength(128);
    for (const header of ['', '""', 'x'.repeat(129), `"${'x'.repeat(129)}"`])
      expect(codeOf(header)).toBe('invalid_idempotency_key');
  });

  it('with any other character, or with anything beside it, is refused', () => {
    const other = fc
      .integer({ min: 0, max: 0xffff })
      .map((code) => String.fromCharCode(code))
      .filter((char) => !CHARS.includes(char));
    fc.assert(
      fc.property(key, other, fc.nat(), (text, char, place) => {
        const at = place % (text.length + 1);
        const header = text.slice(0, at) + char + text.slice(at);
        expect(codeOf(header)).toBe('invalid_idempotency_key');
      }),
    );
    for (const header of [
      '"a',
      'a"',
      '"a";p=1',
      '"a", "b"',
      'a, b',
      ' a',
      'a ',
      "'a'",
      'a\r\nSet-Cookie: x',
      'é',
    ])
      expect(codeOf(header)).toBe('invalid_idempotency_key');
  });

  it('for any text at all is a key of that form or a refusal that names the header', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (header) => {
        try {
          expect(parseIdempotencyKey(header)).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
        } catch (error) {
          expect(error).toBeInstanceOf(DomainError);
          expect((error as DomainError).issues).toMatchObject([{ in: 'header', field: 'idempotency-key' }]);
        }
      }),
    );
  });
});

describe('an answer', () => {
  it('is kept when it is a success or what the operation decided, never when it failed for now', () => {
    fc.assert(
      fc.property(fc.integer({ min: 200, max: 599 }), (status) => {
        expect(isAnswerKept(status)).toBe(status < 400 || [404, 409, 410, 422].includes(status));
      }),
    );
    for (const status of [400, 401, 403, 413, 415, 429, 500, 502, 503, 504])
      expect(isAnswerKept(status)).toBe(false);
  });
});
