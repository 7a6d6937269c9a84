import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  inspectPatterns,
  type Pace,
  PROGRAM_SIZE_MAX,
  PROGRAM_SIZE_TOTAL_MAX,
} from '../../../domain/policies/inspectPatterns.js';
import { PatternSet } from '../../../domain/policies/patternSet.js';
import { REGEX_CHARS_MAX, REGEXES_MAX } from '../../../domain/policies/policy.js';
import { anyPattern, writePattern } from './support/plainPattern.js';

/** As the API uses it: the process's working time. */
const WORK: Pace = {
  workedMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  pause: () => new Promise((resolve) => setImmediate(resolve)),
};
/** A clock that stands still. */
const STILL: Pace = { workedMs: () => 0, pause: async () => undefined };

const placesOf = async (regexes: string[], pace = STILL) =>
  (await inspectPatterns(regexes, pace)).map(({ index, code }) => [index, code]);

describe('a pattern is passed over', () => {
  it.each([
    ['looking ahead', '(?=x)'],
    ['looking ahead for nothing', 'a(?!b)'],
    ['looking behind', '(?<=a)b'],
    ['looking behind for nothing', '(?<!a)b'],
    ['what a group has matched', '(a)\\1'],
    ['what a named group has matched', '(?P<n>a)(?P=n)'],
    ['an atomic group', '(?>a)'],
    ['a possessive repetition', 'a++'],
    ['a condition', '(a)?(?(1)b|c)'],
    ['a group without its end', '('],
    ['an end without its group', ')'],
    ['a class without its end', '[a-'],
    ['a range that runs backwards', '[z-a]'],
    ['a repetition of nothing', '*a'],
    ['a repetition beyond a thousand', 'a{1001}'],
    ['repetitions that make more than a thousand together', '(a{100}){11}'],
    ['an escape that means nothing', '\\y'],
    ['a flag that means nothing', '(?x)a'],
    ['a script that there is not', '\\p{Klingon}'],
  ])('that RE2 does not take: %s', async (_, regex) => {
    const [skipped, ...more] = await inspectPatterns(['fine', regex], STILL);
    expect(more).toEqual([]);
    expect(skipped).toEqual({
      index: 1,
      code: 'invalid',
      reason: expect.stringMatching(/RE2 (?:syntax|does not support .+): ./),
    });
  });

  it.each([
    ['(?<=x)y', 'look-behind', '(?<='],
    ['(?<!x)y', 'look-behind', '(?<!'],
    ['\\d(?=x)', 'look-ahead', '(?='],
    ['a(?!x)', 'look-ahead', '(?!'],
    ['(a)\\1', 'back-references', '\\1'],
    ['(?<n>a)\\k<n>', 'back-references', '\\k'],
    ['(?P<n>a)(?P=n)', 'back-references', '(?P='],
    ['(?P<n>a(?P>n)?)', 'recursion', '(?P>'],
    ['a(?R)?b', 'recursion', '(?R'],
    ['(a)(?1)', 'recursion', '(?1'],
    ['(?>a)', 'atomic groups', '(?>'],
    ['a++', 'possessive repetition', '++'],
    ['a*+', 'possessive repetition', '*+'],
    ['(a)?(?(1)b|c)', 'conditions', '(?('],
    ['a(?#why)b', 'comments', '(?#'],
    ['(?|a|b)', 'branch reset groups', '(?|'],
  ])('names the part of %s that RE2 does not support: %s', async (regex, name, part) => {
    expect(await inspectPatterns([regex], STILL)).toEqual([
      {
        index: 0,
        code: 'invalid',
        reason: `RE2 does not support ${name}: write the pattern without "${part}"`,
      },
    ]);
  });

  it.each(['(?<n', '(?<é>a)', '(?P', '(?', 'a**', '\\', '\\y', '(?x)a', '[z-a]'])(
    'shows the error of RE2 for %s, which few engines or none accept',
    async (regex) => {
      const [skipped] = await inspectPatterns([regex], STILL);
      expect(skipped?.reason).toMatch(/^not a regular expression in RE2 syntax: [a-z]/);
    },
  );

  it('that compiles to more than its share, and one that does with those before it', async () => {
    const [alone] = await inspectPatterns([`a{${PROGRAM_SIZE_MAX}}`], STILL);
    expect(alone).toMatchObject({ index: 0, code: 'slow' });
    expect(alone?.reason).toContain(`more than ${PROGRAM_SIZE_MAX} steps`);
    const large = `a{${PROGRAM_SIZE_MAX - 10}}`;
    const fitting = Math.floor(PROGRAM_SIZE_TOTAL_MAX / (PROGRAM_SIZE_MAX - 10));
    expect(await placesOf([...Array.from({ length: fitting + 2 }, () => large), 'b'])).toEqual([
      [fitting, 'slow'],
      [fitting + 1, 'slow'],
    ]);
  });

  it('that would take seconds to compile, without being compiled: a hundred of them are refused at once', async () => {
    const huge = 'a{1000}'.repeat(73);
    const unicode = '\\pL{1000}'.repeat(56);
    const regexes = Array.from({ length: 100 }, (_, index) => (index % 2 ? huge : unicode));
    expect((await placesOf(regexes)).length).toBe(100);
  });

  it('that is among the slowest, where all together take too long; the others are kept', async () => {
    const heavy = Array.from({ length: 20 }, (_, index) => `\\pL{${90 + index}}\\d`);
    const regexes = ['(?i)secret', ...heavy, '\\bkey\\b'];
    const skipped = await inspectPatterns(regexes, WORK);
    expect(skipped.length).toBeGreaterThan(0);
    const places = skipped.map(({ index }) => index);
    expect([places.includes(0), places.includes(regexes.length - 1)]).toEqual([false, false]);
    expect(new Set(skipped.map(({ code }) => code))).toEqual(new Set(['slow']));
    expect(PatternSet.of(regexes, skipped)?.find(['my Secret'])).toEqual({ patternIndex: 0, offset: 3 });
  });
});

describe('a pattern is kept', () => {
  it('where people write it: a hundred of them, and those that let a backtracking search try without end', async () => {
    const words = Array.from({ length: 90 }, (_, index) => `(?i)\\bproject[ _-]?${index}\\b`);
    const usual = [
      '\\b\\d{3}-\\d{2}-\\d{4}\\b',
      '\\b(?:\\d[ -]*?){13,16}\\b',
      'AKIA[0-9A-Z]{16}',
      '-----BEGIN [A-Z ]*PRIVATE KEY-----',
      '[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}',
      '(?i)ignore.{0,50}instructions',
      '(?s)BEGIN.*END',
      '(?m)^SYSTEM:',
      '(a+)+$',
      '(x+x+)+y',
    ];
    expect(await inspectPatterns([...words, ...usual], WORK)).toEqual([]);
  });

  it('where a hundred of them are as long as they may be, and each of them is found', async () => {
    const letter = (one: number, at: number) => String.fromCharCode(97 + ((one * 7 + at * at * 3) % 26));
    const regexes = Array.from({ length: REGEXES_MAX }, (_, one) =>
      Array.from({ length: REGEX_CHARS_MAX }, (_, at) => letter(one, at)).join(''),
    );
    expect(await inspectPatterns(regexes, STILL)).toEqual([]);
    const set = PatternSet.of(regexes, []);
    expect(set?.find([regexes[REGEXES_MAX - 1] as string])).toEqual({
      patternIndex: regexes.indexOf(regexes[REGEXES_MAX - 1] as string),
      offset: 0,
    });
    expect(set?.find([`${regexes[40]}x`])).toMatchObject({ offset: 0 });
    expect(set?.find(['nothing of it'])).toBeUndefined();
  });

  it('whatever it is made of, and then it is searched for without a failure', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyPattern, { minLength: 1, maxLength: 3 }), async (patterns) => {
        const regexes = patterns.map(writePattern);
        const skipped = await inspectPatterns(regexes, STILL);
        expect(skipped).toEqual([]);
        PatternSet.of(regexes, skipped)?.find(['ab', 'A7\n']);
      }),
    );
  });

  it('or passed over, whatever text it is: nothing fails', async () => {
    const text = fc.string({ unit: fc.constantFrom(...'ab\\[](){}|*+?^$:<>=!Pp1,9QEd-.'), maxLength: 24 });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 4 }), async (regexes) => {
        const skipped = await inspectPatterns(regexes, STILL);
        PatternSet.of(regexes, skipped)?.find(['ab', 'x'.repeat(600)]);
      }),
      { numRuns: 500 },
    );
  });
});

describe('the verdict', () => {
  it('takes turns with other work while it is found', async () => {
    let turns = 0;
    const pace: Pace = {
      workedMs: WORK.workedMs,
      pause: async () => {
        turns += 1;
      },
    };
    await inspectPatterns(
      Array.from({ length: 16 }, (_, index) => `[a-z].{${40 + (index % 9)}}\\d`),
      pace,
    );
    expect(turns).toBeGreaterThan(1);
  });

  it('is the same in the same words each time', async () => {
    const regexes = ['(?=x)', `a{${PROGRAM_SIZE_MAX}}`, 'fine'];
    expect(await inspectPatterns(regexes, WORK)).toEqual(await inspectPatterns(regexes, WORK));
  });
});
