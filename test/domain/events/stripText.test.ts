import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../domain/errors.js';
import { stripJson, stripText } from '../../../domain/events/jsonValues.js';

const KEPT = /^[\t\n\r\x20-\x7e]*$/;

function allStrings(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(allStrings);
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, inner]) => [key, ...allStrings(inner)]);
  return [];
}

describe('character stripping', () => {
  it('keeps tab, line feed, carriage return and printable ASCII, and nothing else', () => {
    const all = Array.from({ length: 0x300 }, (_, code) => String.fromCharCode(code)).join('');
    const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join('');
    expect(stripText(all)).toBe(`\t\n\r${printable}`);
    expect(stripText('na\u0000ïve \ud83d\ude00 \ud800x \ufeff\u202e')).toBe('nave  x ');
  });

  it('strips every string and key of any JSON, and leaves numbers alone', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const stripped = stripJson(value);
        for (const text of allStrings(stripped)) expect(text).toMatch(KEPT);
        expect(stripJson(stripped)).toBe(stripped);
      }),
      { verbose: 1 },
    );
  });

  it('returns the same object when nothing is removed', () => {
    const clean = { a: ['x', { b: 1 }], n: Number.NaN };
    expect(stripJson(clean)).toBe(clean);
  });

  it('lets the later of two keys win that become equal', () => {
    expect(stripJson(JSON.parse('{"key":1,"k\u00e9ey":2}'))).toEqual({ key: 2 });
    expect(stripJson(JSON.parse('{"k\u00e9ey":2,"key":1}'))).toEqual({ key: 1 });
  });

  it('keeps __proto__ and constructor as plain data', () => {
    const stripped = stripJson(JSON.parse('{"__proto__":{"admin":true},"constructor":"\u00e9x"}')) as object;
    expect(Object.getPrototypeOf(stripped)).toBe(Object.prototype);
    expect(Object.hasOwn(stripped, '__proto__')).toBe(true);
    expect(JSON.stringify(stripped)).toBe('{"__proto__":{"admin":true},"constructor":"x"}');
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it('refuses what nests too deep, instead of overflowing the stack', () => {
    const deep = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000));
    expect(() => stripJson(deep)).toThrow(DomainError);
  });
});
