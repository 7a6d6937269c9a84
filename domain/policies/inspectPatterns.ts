import { RE2JS, RE2JSSyntaxException } from 're2js';
import { compare } from '../compare.js';
import { estimateProgramSize, findUnsupportedSyntax, searchWithoutMemory } from './patternSet.js';
import { PROMPT_SCAN_CHARS, type SkippedPattern } from './policy.js';

/** Maximum instructions of one compiled pattern. */
export const PROGRAM_SIZE_MAX = 1_000;
/** Maximum instructions of all patterns of a policy, which allows the longest lists of plain words. */
export const PROGRAM_SIZE_TOTAL_MAX = 52_000;
/**
 * A pattern with a higher estimate is not compiled, which would take up to a second. No estimate is less than half
 * of the true size.
 */
const ESTIMATE_MAX = 4 * PROGRAM_SIZE_MAX;

/**
 * Maximum time of a search in searches of the reference pattern instead of seconds, so that all machines judge
 * alike.
 */
export const SEARCH_TIMES_MAX = 8;
/** The reference pattern counts repetitions, and its text forces it to count all along. */
const REFERENCE = { pattern: '(a|b)*a(a|b){66}c', text: drawn(7, 'ab') };

/** Repetitions of a measured search, and of one that seems slow. The fastest repetition is its time. */
const SEARCHES_MIN = 4;
const SEARCHES_MAX = 9;
/**
 * Maximum time for measuring patterns alone, in searches of the reference pattern: some seconds. Unmeasured
 * patterns count as the slowest.
 */
const INSPECTION_TIMES_MAX = 2_500;
/** Milliseconds of work without a pause for other tasks. */
const WORK_MS_MAX = 20;

/** The clock of the measurement and its pauses. */
export interface Pace {
  /** CPU time of this process so far, milliseconds, without that of other processes. */
  workedMs(): number;
  pause(): Promise<void>;
}

/**
 * The patterns to skip: invalid, too large, or the slowest beyond the time limit. The result is stored, so that
 * all instances agree.
 */
export async function inspectPatterns(regexes: readonly string[], pace: Pace): Promise<SkippedPattern[]> {
  const work = new Bench(pace);
  const skipped: SkippedPattern[] = [];
  const kept: Candidate[] = [];
  let total = 0;
  for (const [index, regex] of regexes.entries()) {
    await work.turn();
    const found = judgePattern(regex, index, PROGRAM_SIZE_TOTAL_MAX - total);
    if ('code' in found) skipped.push(found);
    else {
      kept.push(found);
      total += found.size;
    }
  }
  for (const { index, isAlone } of await findSlowest(kept, work))
    skipped.push({ index, code: 'slow', reason: isAlone ? SLOW_ALONE : SLOW_TOGETHER });
  return skipped.sort((a, b) => a.index - b.index);
}

const SLOW_ALONE = 'it takes too long to search a prompt for it: bound its repetitions more tightly';
const SLOW_TOGETHER =
  'it takes too long to search a prompt for all patterns, and this is one of the slowest: bound its repetitions more tightly, or leave others out';

interface Candidate {
  index: number;
  regex: string;
  size: number;
}

/** The compiled pattern, or the reason to skip it, as far as no measurement is needed. */
function judgePattern(regex: string, index: number, room: number): Candidate | SkippedPattern {
  const slow = (reason: string): SkippedPattern => ({ index, code: 'slow', reason });
  const tooLarge = slow(
    `it compiles to more than ${PROGRAM_SIZE_MAX} steps: repeat less, or bound its repetitions more tightly`,
  );
  try {
    if (estimateProgramSize(regex) > ESTIMATE_MAX) return tooLarge;
    const size = RE2JS.compile(regex).programSize();
    if (size > PROGRAM_SIZE_MAX) return tooLarge;
    if (size > room)
      return slow(
        `with the patterns before it it compiles to more than ${PROGRAM_SIZE_TOTAL_MAX} steps: repeat less, or leave others out`,
      );
    return { index, regex, size };
  } catch (error) {
    return { index, code: 'invalid', reason: reasonOf(regex, error) };
  }
}

/** The part of a pattern that RE2 does not support, else the library's message, which names the wrong part. */
function reasonOf(regex: string, error: unknown): string {
  const stoppedAt = error instanceof RE2JSSyntaxException ? error.getPattern() : null;
  const unsupported = stoppedAt ? findUnsupportedSyntax(regex, stoppedAt) : undefined;
  if (unsupported)
    return `RE2 does not support ${unsupported.name}: write the pattern without "${unsupported.part}"`;
  const said = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : '';
  return `not a regular expression in RE2 syntax: ${said}`;
}

/** The smallest number of slowest patterns without which a search of a prompt is fast enough. */
async function findSlowest(
  patterns: readonly Candidate[],
  bench: Bench,
): Promise<{ index: number; isAlone: boolean }[]> {
  if (patterns.length === 0) return [];
  const bySize = [...patterns].sort((a, b) => a.size - b.size);
  // The usual case: all patterns together are fast enough.
  if (await isInTime(bySize, bench)) return [];
  const measured: (Candidate & { times: number })[] = [];
  for (const one of bySize)
    measured.push({
      ...one,
      times: bench.isSpent ? Number.POSITIVE_INFINITY : await bench.timesOf([one.regex], SEARCHES_MIN),
    });
  const isTooSlow = ({ times }: { times: number }) => times > SEARCH_TIMES_MAX && Number.isFinite(times);
  const tooSlow = measured.filter(isTooSlow);
  // Unmeasured patterns come last, the smaller ones before the larger.
  const others = measured
    .filter((one) => !isTooSlow(one))
    .sort((a, b) => compare(a.times, b.times) || a.size - b.size || a.index - b.index);
  // Binary search for the number of fastest patterns that are fast enough together; one more is too slow.
  let [least, most] = [0, others.length];
  while (least < most) {
    const count = Math.ceil((least + most) / 2);
    if (await isInTime(others.slice(0, count), bench)) least = count;
    else most = count - 1;
  }
  return [
    ...tooSlow.map(({ index }) => ({ index, isAlone: true })),
    ...others.slice(least).map(({ index }) => ({ index, isAlone: false })),
  ];
}

async function isInTime(patterns: readonly Candidate[], bench: Bench): Promise<boolean> {
  return (await bench.timesOf(patterns.map(({ regex }) => regex))) <= SEARCH_TIMES_MAX;
}

/** This number of the last of the patterns measured together are also measured with texts made of them. */
const SLOWEST_APART = 4;

/** Measures searches and pauses for all other work of the process. */
class Bench {
  readonly #pace: Pace;
  readonly #reference = searchWithoutMemory([REFERENCE.pattern]);
  readonly #startedMs: number;
  #referenceMs = Number.POSITIVE_INFINITY;
  #beganMs: number;

  constructor(pace: Pace) {
    this.#pace = pace;
    this.#startedMs = pace.workedMs();
    this.#beganMs = this.#startedMs;
  }

  /** Whether the time for measuring patterns alone is used up. */
  get isSpent(): boolean {
    return this.#pace.workedMs() - this.#startedMs > INSPECTION_TIMES_MAX * this.#referenceMs;
  }

  async turn(): Promise<void> {
    if (this.#pace.workedMs() - this.#beganMs < WORK_MS_MAX) return;
    await this.#pace.pause();
    this.#beganMs = this.#pace.workedMs();
  }

  /** The slowest search of known bad texts, in searches of the reference; stops after one that is too slow. */
  async timesOf(patterns: readonly string[], searches = 1): Promise<number> {
    const search = searchWithoutMemory(patterns);
    const apart = patterns.length === 1 ? [] : patterns.slice(-SLOWEST_APART);
    const texts = [...COMMON_PROBES, ...ownProbes(patterns), ...apart.flatMap((one) => ownProbes([one]))];
    let reference = Number.POSITIVE_INFINITY;
    for (let count = 0; count < SEARCHES_MIN; count += 1)
      reference = Math.min(reference, this.#timeReference());
    // A coarse clock can measure zero: then only the sizes decide.
    if (reference === 0) return 0;
    this.#referenceMs = reference;
    let slowest = 0;
    for (const text of texts) {
      await this.turn();
      let quickest = Number.POSITIVE_INFINITY;
      for (let count = 0; count < searches; count += 1)
        quickest = Math.min(
          quickest,
          this.#time(() => search(text)),
        );
      const times = quickest / reference;
      // Times far below the limit need no greater precision.
      slowest = Math.max(
        slowest,
        times < SEARCH_TIMES_MAX / 2 ? times : await this.#timesBeside(search, text),
      );
      if (slowest > SEARCH_TIMES_MAX) break;
    }
    return slowest;
  }

  /** The fastest of several searches, alternating with the reference search, so that disturbances affect both. */
  async #timesBeside(search: (text: string) => unknown, text: string): Promise<number> {
    let [quickest, reference] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let count = 0; count < SEARCHES_MAX; count += 1) {
      await this.turn();
      reference = Math.min(reference, this.#timeReference());
      quickest = Math.min(
        quickest,
        this.#time(() => search(text)),
      );
    }
    return reference > 0 ? quickest / reference : 0;
  }

  #timeReference(): number {
    return this.#time(() => this.#reference(REFERENCE.text));
  }

  #time(work: () => unknown): number {
    const began = this.#pace.workedMs();
    work();
    return this.#pace.workedMs() - began;
  }
}

const WORDS =
  'the of and a to in is you that it for on are with as this be have from or one had by word but not what all were when your can said there use each which do how their if will up other about out many then them write code key password token secret account email 2026 4111-1111 user@example.com'.split(
    ' ',
  );
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const PRINTABLE = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)).join('');
/** The syntax of a pattern, which is not text to match: escapes, counts and signs. */
const SYNTAX = /\\[pP]\{[^}]*\}|\\[pP].|\\.|\{\d+(?:,\d*)?\}|\[:\w+:\]|\(\?[a-zA-Z-]*[:)]|[()[\]{}|*+?^$.]/g;

/** Pseudorandom numbers with a fixed seed: a pattern is always measured with the same texts. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A text of as many characters as a search reads of a prompt, drawn from the parts. */
export function drawn(seed: number, parts: readonly string[] | string, glue = ''): string {
  const next = numbersFrom(seed);
  let text = '';
  while (text.length < PROMPT_SCAN_CHARS) text += `${parts[next(parts.length)]}${glue}`;
  return text.slice(0, PROMPT_SCAN_CHARS);
}

/** Texts with which every list of patterns is measured: prose, one character, noise, words and numbers. */
export const COMMON_PROBES: readonly string[] = [
  drawn(1, WORDS, ' '),
  'a'.repeat(PROMPT_SCAN_CHARS),
  drawn(2, `${PRINTABLE}\n`),
  drawn(3, `${LETTERS}${LETTERS.toUpperCase()}0123456789   \n`),
];

/**
 * Texts made of the patterns' own characters, on which they begin to match again and again without completing a
 * match.
 */
export function ownProbes(patterns: readonly string[]): string[] {
  const literal = patterns
    .join(' ')
    .replace(SYNTAX, ' ')
    .replace(/[^\t\n\r\x20-\x7e]/g, '');
  const pieces = literal.split(' ').filter((piece) => piece !== '');
  const characters = [...new Set(literal)].join('');
  if (pieces.length === 0) return [];
  return [
    drawn(5, characters),
    drawn(6, [...pieces, ...pieces.map((piece) => piece.slice(0, -1)), ' ']),
    pieces.join('').repeat(PROMPT_SCAN_CHARS).slice(0, PROMPT_SCAN_CHARS),
  ];
}
