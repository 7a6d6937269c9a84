import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  base62FromBytes,
  composeKey,
  findKeyFault,
  isKeyId,
  KEY_ID_CHARS,
  KEY_PATTERN,
  KEY_SECRET_CHARS,
  parseKey,
} from '../../../domain/access/keyRules.js';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const digit = fc.constantFrom(...BASE62);
const text = (length: number) => fc.string({ unit: digit, minLength: length, maxLength: length });
const key = fc
  .tuple(text(KEY_ID_CHARS), text(KEY_SECRET_CHARS))
  .map(([id, secret]) => composeKey(id, secret));

describe('a key', () => {
  it('has the published form, and parsing it returns its id and its secret', () => {
    fc.assert(
      fc.property(text(KEY_ID_CHARS), text(KEY_SECRET_CHARS), (id, secret) => {
        const composed = composeKey(id, secret);
        expect(composed).toMatch(KEY_PATTERN);
        expect(composed.length).toBe(68);
        expect(parseKey(composed)).toEqual({ keyId: `key_${id}`, secret });
        expect(isKeyId(`key_${id}`)).toBe(true);
      }),
    );
  });

  it('with one wrong character is known as wrong without being looked up', () => {
    fc.assert(
      fc.property(key, fc.integer({ min: 8, max: 67 }), digit, (whole, place, other) => {
        fc.pre(whole[place] !== other && whole[place] !== '_');
        expect(parseKey(whole.slice(0, place) + other + whole.slice(place + 1))).toBeUndefined();
      }),
    );
  });

  it('with two neighbours exchanged is known as wrong', () => {
    fc.assert(
      fc.property(key, fc.integer({ min: 19, max: 66 }), (whole, place) => {
        const [first = '', second = ''] = whole.slice(place, place + 2);
        fc.pre(first !== second);
        const slip = whole.slice(0, place) + second + first + whole.slice(place + 2);
        expect(parseKey(slip)).toBeUndefined();
      }),
    );
  });

  it('that is cut, longer, of another kind or in a line of its own is no key', () => {
    fc.assert(
      fc.property(key, (whole) => {
        const wrong = [
          whole.slice(0, -1),
          `${whole}0`,
          ` ${whole}`,
          `${whole}\n`,
          whole.replace('tu_live_', 'tu_test_'),
          whole.replace('tu_live_', 'TU_LIVE_'),
        ];
        for (const slip of wrong) expect(parseKey(slip), slip).toBeUndefined();
      }),
    );
  });
});

describe('the error for a malformed key', () => {
  it('names what is wrong with it and never repeats it', () => {
    const whole = composeKey('0123456789', 'S'.repeat(43));
    expect(findKeyFault(whole)).toBeUndefined();
    const slips = {
      [whole.replace('S', 'T')]: 'the check sum does not fit',
      [whole.slice(0, -1)]: 'has 68 characters, and this has 67',
      [whole.replace('tu_live_', 'sk_live_')]: 'begins with tu_live_',
      [`${whole.slice(0, 30)}-${whole.slice(31)}`]: 'characters in it that no key has',
    };
    for (const [slip, said] of Object.entries(slips)) {
      expect(findKeyFault(slip)).toContain(said);
      expect(findKeyFault(slip)).not.toContain(slip.slice(20, 40));
    }
  });
});

describe('random characters', () => {
  it('are all equally likely: bytes that would favour the first ones are passed over', () => {
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const drawn = base62FromBytes(everyByte, 248);
    const counts = new Map<string, number>();
    for (const one of drawn) counts.set(one, (counts.get(one) ?? 0) + 1);
    expect(counts.size).toBe(62);
    expect(new Set(counts.values())).toEqual(new Set([4]));
    expect(() => base62FromBytes(everyByte, 249)).toThrow(RangeError);
  });
});
