/**
 * Measures the search of prompts for banned patterns: microseconds of CPU time per prompt of 512 characters, for
 * each search method of the library and for the engine that chooses between them, and the time to find slow
 * patterns. `npx tsx lab/bench/patterns.ts`; docs/benchmarks.md has the figures, docs/decisions/0026 the decision.
 */
import { RE2JS, RE2Set } from 're2js';
import {
  COMMON_PROBES,
  drawn,
  inspectPatterns,
  ownProbes,
  SEARCH_TIMES_MAX,
} from '../../domain/policies/inspectPatterns.js';
import { PatternEngine, searchWithoutMemory } from '../../domain/policies/patternSet.js';
import { PROMPT_SCAN_CHARS } from '../../domain/policies/policy.js';

const PROMPTS = 200;
const MEBIBYTE = 1_048_576;
const WORDS =
  'please write the report for our customer and send it to the team with all numbers of last month before friday so that they can read what was said about costs models keys tokens and plans'.split(
    ' ',
  );

const usual = [
  '(?i)secret',
  '(?i)password\\s*[:=]\\s*\\S+',
  '\\b\\d{3}-\\d{2}-\\d{4}\\b',
  '\\b(?:\\d[ -]*?){13,16}\\b',
  'AKIA[0-9A-Z]{16}',
  '(?i)api[_-]?key',
  'sk-[A-Za-z0-9]{20,48}',
  '(?i)ignore (all )?previous instructions',
  '-----BEGIN [A-Z ]*PRIVATE KEY-----',
  '[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}',
  '(?i)internal use only',
  '\\beyJ[A-Za-z0-9_-]{10,}\\.',
  '(?i)project\\s+(falcon|eagle|condor)',
  'ghp_[A-Za-z0-9]{36}',
  'xox[baprs]-[A-Za-z0-9-]{10,}',
  '(?i)social security',
  '(?i)\\bssn\\b',
  '(?s)BEGIN.*END',
  '(?m)^SYSTEM:',
  '(?i)do not share',
];
const of = (count: number, pattern: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => pattern(index));
const LISTS: Record<string, string[]> = {
  '20 usual': usual,
  '100 words': of(100, (index) => `(?i)\\b${WORDS[index % WORDS.length]}${index}[ _-]?(id|key)\\b`),
  '5 with a gap of 60 to 88': of(
    5,
    (index) =>
      `(?i)\\b(${WORDS[index]}|${WORDS[index + 9]})\\b.{0,${60 + 7 * index}}\\b${WORDS[index + 5]}x\\b`,
  ),
  '(a+)+$': ['(a+)+$'],
  '(a|b)*a(a|b){66}c': ['(a|b)*a(a|b){66}c'],
  'x.{900}y': ['x.{900}y'],
  '18 of [a-z].{45}[0-9]': of(18, (index) => `[${'abcdefghijklmnopqr'[index]}-z].{${45 + (index % 5)}}[0-9]`),
  '60 of [a-z].{45}[0-9]': of(
    60,
    (index) => `[${'abcdefghijklmnop'[index % 16]}-z].{${45 + (index % 5)}}[0-9]`,
  ),
  '\\pL{300}\\d': ['\\pL{300}\\d'],
  '(\\pL|\\d|_){1,240}$': ['(\\pL|\\d|_){1,240}$'],
  '(\\pL|\\d|_){1,500}$': ['(\\pL|\\d|_){1,500}$'],
};

function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Microseconds per prompt over many different ones, after a warm-up over as many. */
function microsOf(
  search: (text: string) => unknown,
  textOf: (seed: number) => string,
  untilMs = 700,
): number {
  const began = workedMs();
  for (let seed = 0; seed < PROMPTS && workedMs() - began < untilMs; seed += 1) search(textOf(seed));
  const texts = of(PROMPTS, (seed) => textOf(PROMPTS + seed));
  let count = 0;
  const from = workedMs();
  while (count < PROMPTS && workedMs() - from < untilMs) search(texts[count++] as string);
  return ((workedMs() - from) * 1_000) / count;
}

/**
 * The kind of text that is slowest for the patterns without an automaton; each seed returns another text of this
 * kind.
 */
function worstKind(patterns: string[]): (seed: number) => string {
  const search = searchWithoutMemory(patterns);
  const characters = [...new Set(ownProbes(patterns).join(''))].join('') || 'a';
  const kinds: ((seed: number) => string)[] = [
    (seed) => drawn(seed, WORDS, ' '),
    (seed) => drawn(seed, characters),
    (seed) => drawn(seed, 'abcdefghijklmnopqrstuvwxyz 0123456789'),
    () => 'a'.repeat(PROMPT_SCAN_CHARS),
    (seed) => drawn(seed, 'ab'),
  ];
  const timed = kinds.map((kind) => ({ kind, micros: microsOf(search, kind, 100) }));
  return timed.reduce((worst, one) => (one.micros > worst.micros ? one : worst)).kind;
}

const shown = (micros: number) =>
  micros < 100 ? micros.toFixed(1) : Math.round(micros).toLocaleString('en-US');

async function measure(name: string, patterns: string[]): Promise<string> {
  const compiled = workedMs();
  const set = new RE2Set(RE2Set.UNANCHORED, 0, 8 * MEBIBYTE);
  for (const pattern of patterns) set.add(pattern);
  set.compile();
  const compileMs = workedMs() - compiled;
  const engine = new PatternEngine(patterns);
  const prose = (seed: number) => drawn(seed, WORDS, ' ');
  const worst = worstKind(patterns);
  const without = searchWithoutMemory(patterns);
  const [first = ''] = patterns;
  const single = RE2JS.compile(first);
  const began = workedMs();
  const skipped = await inspectPatterns(patterns, { workedMs, pause: async () => undefined });
  const inspectMs = workedMs() - began;
  return [
    name,
    String(engine.programSize),
    compileMs.toFixed(1),
    shown(microsOf((text) => engine.match(text), prose)),
    shown(microsOf((text) => engine.match(text), worst)),
    shown(microsOf((text) => set.match(text), worst)),
    shown(microsOf(without, worst)),
    shown(microsOf((text) => single.matcher(text).find(), worst)),
    inspectMs.toFixed(0),
    String(skipped.length),
  ].join(' | ');
}

console.log(
  `limit: ${SEARCH_TIMES_MAX} searches of the reference; probes: ${COMMON_PROBES.length} common ones`,
);
console.log(
  'patterns | steps | compile ms | ordinary text | worst text | automaton alone | without memory | one pattern’s place | to inspect ms | passed over',
);
for (const [name, patterns] of Object.entries(LISTS)) console.log(await measure(name, patterns));
