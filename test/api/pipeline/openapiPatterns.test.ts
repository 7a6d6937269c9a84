import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { buildOpenApi } from '../../../api/openapi.js';

const document = JSON.stringify(buildOpenApi(ENDPOINTS, {} as Parameters<typeof buildOpenApi>[1]));
const patterns = [
  ...new Set([...document.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, text = '']) => text)),
].map((text) => JSON.parse(text) as string);

const CLASS_ITEM = String.raw`(?:\\x[0-9a-f]{2}|\\[\\\]^-]|[^\\\]])`;
/**
 * Tokens that JavaScript, Python, Go and Java read equally: \d, \w, \s and \u differ or are missing in some of them.
 */
const TOKEN = new RegExp(
  [
    '[\\^$|)]',
    String.raw`\((?:\?:|(?!\?))`,
    String.raw`\[\^?${CLASS_ITEM}+\]`,
    String.raw`\\x[0-9a-f]{2}|\\[.()[\]{}*+?^$|\\/-]`,
    String.raw`(?:[*+?]\??|\{\d+(?:,\d*)?\})(?![*+?{])`,
    String.raw`[^\\()[\]{}*+?^$|.]`,
  ].join('|'),
  'y',
);

function firstForeignPart(pattern: string): string | undefined {
  for (let at = 0; at < pattern.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    if (!TOKEN.test(pattern)) return pattern.slice(at);
  }
  return undefined;
}

describe('a pattern of /openapi.json', () => {
  it('is among several', () => {
    expect(patterns.length).toBeGreaterThan(4);
  });

  it.each(patterns)('%s has only syntax that JavaScript, Python, Go and Java read alike', (pattern) => {
    expect(firstForeignPart(pattern)).toBeUndefined();
    expect(() => new RegExp(pattern, 'u')).not.toThrow();
    expect(() => new RegExp(pattern)).not.toThrow();
    // The syntax of Go.
    expect(() => RE2JS.compile(pattern)).not.toThrow();
  });

  it.each([
    '^\\P{Cc}*$',
    '^\\d+$',
    '\\w',
    '\\u0041',
    '(?<n>a)',
    '(?=a)',
    '(a)\\1',
    'a++',
    '[\\s]',
    '(?i)a',
    '.',
  ])('would be refused with %s in it', (pattern) => {
    expect(firstForeignPart(pattern)).toBeDefined();
  });

  it('keeps control characters out of a webhook description, and nothing else', () => {
    const pattern = patterns.find((one) => one.startsWith('^[^\\x00'));
    const [plain, named] = [new RegExp(pattern ?? '', 'u'), /^\P{Cc}*$/u];
    const differing: number[] = [];
    for (let point = 0; point <= 0x10_ffff; point += 1) {
      const text = String.fromCodePoint(point);
      if (plain.test(text) !== named.test(text)) differing.push(point);
    }
    expect(differing).toEqual([]);
  });
});
