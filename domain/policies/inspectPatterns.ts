import { RE2JS, RE2JSSyntaxException } from 're2js';
import { compare } from '../compare.js';
import { estimateProgramSize, findUnsupportedSyntax, searchWithoutMemory } from './patternSet.js';
import { PROMPT_SCAN_CHARS, type SkippedPattern } from './policy.js';

/** Instructions that one pattern may compile to. */
export const PROGRAM_SIZE_MAX = 1_000;
/** Instructions of all patterns of a policy: as many as the longest lists of plain words come to. */
export const PROGRAM_SIZE_TOTAL_MAX = 52_000;
/** A pattern whose size was estimated above this is not even compiled, which takes up to a second: no estimate is less than half. */
const ESTIMATE_MAX = 4 * PROGRAM_SIZE_MAX;

/** A search's limit, in searches of the reference pattern rather than time, so that all machines judge alike. */
export const SEARCH_TIMES_MAX = 8;
/** It counts what it repeats, and the text keeps it counting. */
const REFERENCE = { pattern: '(a|b)*a(a|b){66}c', text: drawn(7, 'ab') };

/** So often a search is made whose time counts, and so often one that seems slow: the quickest tells what it takes. */
const SEARCHES_MIN = 4;
const SEARCHES_MAX = 9;
/** So many searches of the reference it may take to measure patterns alone, some seconds; what is not measured by then counts as slower than the rest. */
const INSPECTION_TIMES_MAX = 2_500;
/** So long nothing else gets a turn. */
const WORK_MS_MAX = 20;

/** How time is told, and how others are given a turn. */
export interface Pace {
  /** What the process has worked so far, milliseconds: time that other processes had is none of it. */
  workedMs(): number;
  pause(): Promise<void>;
}

/** Patterns to skip: invalid, too large, or the slowest beyond the time limit. Stored, so that all instances agree. */
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

/** The pattern compiled, or why it is passed over, as far as no clock is needed to tell. */
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

/** What of a pattern RE2 does not support, else the sentence of the library, which names the part that is wrong. */
function reasonOf(regex: string, error: unknown): string {
  const stoppedAt = error instanceof RE2JSSyntaxException ? error.getPattern() : null;
  const unsupported = stoppedAt ? findUnsupportedSyntax(regex, stoppedAt) : undefined;
  if (unsupported)
    return `RE2 does not support ${unsupported.name}: write the pattern without "${unsupported.part}"`;
  const said = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : '';
  return `not a regular expression in RE2 syntax: ${said}`;
}

/** The fewest of the slowest patterns without which a prompt is searched in time. */
async function findSlowest(
  patterns: readonly Candidate[],
  bench: Bench,
): Promise<{ index: number; isAlone: boolean }[]> {
  if (patterns.length === 0) return [];
  const bySize = [...patterns].sort((a, b) => a.size - b.size);
  // Mostly that is it.
  if (await isInTime(bySize, bench)) return [];
  const measured: (Candidate & { times: number })[] = [];
  for (const one of bySize)
    measured.push({
      ...one,
      times: bench.isSpent ? Number.POSITIVE_INFINITY : await bench.timesOf([one.regex], SEARCHES_MIN),
    });
  const isTooSlow = ({ times }: { times: number }) => times > SEARCH_TIMES_MAX && Number.isFinite(times);
  const tooSlow = measured.filter(isTooSlow);
  // Those that were not measured come last, the smaller ones before the larger.
  const others = measured
    .filter((one) => !isTooSlow(one))
    .sort((a, b) => compare(a.times, b.times) || a.size - b.size || a.index - b.index);
  // How many from the quickest on are searched in time: with one more it takes longer.
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

/** Of patterns that are measured together, so many of the last also with texts of their own. */
const SLOWEST_APART = 4;

/** Measures searches, in turns with everything else that the process does. */
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

  /** Whether measuring has gone on for so long that no more patterns are to be measured alone. */
  get isSpent(): boolean {
    return this.#pace.workedMs() - this.#startedMs > INSPECTION_TIMES_MAX * this.#referenceMs;
  }

  async turn(): Promise<void> {
    if (this.#pace.workedMs() - this.#beganMs < WORK_MS_MAX) return;
    await this.#pace.pause();
    this.#beganMs = this.#pace.workedMs();
  }

  /** The worst search of known bad texts, in searches of the reference; stops after one that is too slow. */
  async timesOf(patterns: readonly string[], searches = 1): Promise<number> {
    const search = searchWithoutMemory(patterns);
    const apart = patterns.length === 1 ? [] : patterns.slice(-SLOWEST_APART);
    const texts = [...COMMON_PROBES, ...ownProbes(patterns), ...apart.flatMap((one) => ownProbes([one]))];
    let reference = Number.POSITIVE_INFINITY;
    for (let count = 0; count < SEARCHES_MIN; count += 1)
      reference = Math.min(reference, this.#timeReference());
    // By a clock of coarse steps nothing takes any time: then the sizes alone decide.
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
      // What is far below the limit need not be known more exactly.
      slowest = Math.max(
        slowest,
        times < SEARCH_TIMES_MAX / 2 ? times : await this.#timesBeside(search, text),
      );
      if (slowest > SEARCH_TIMES_MAX) break;
    }
    return slowest;
  }

  /** The quickest of several searches, beside several of the reference: what disturbs the one disturbs the other. */
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
/** What a pattern says of itself and not of the text: escapes, counts, and signs of the syntax. */
const SYNTAX = /\\[pP]\{[^}]*\}|\\[pP].|\\.|\{\d+(?:,\d*)?\}|\[:\w+:\]|\(\?[a-zA-Z-]*[:)]|[()[\]{}|*+?^$.]/g;

/** A sequence that looks like chance and is the same each time: the same pattern is held against the same texts. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** As many characters as are searched of a prompt, drawn from parts of one or more. */
export function drawn(seed: number, parts: readonly string[] | string, glue = ''): string {
  const next = numbersFrom(seed);
  let text = '';
  while (text.length < PROMPT_SCAN_CHARS) text += `${parts[next(parts.length)]}${glue}`;
  return text.slice(0, PROMPT_SCAN_CHARS);
}

/** Texts against which every list of patterns is measured: as people write, one character, noise, words and numbers. */
export const COMMON_PROBES: readonly string[] = [
  drawn(1, WORDS, ' '),
  'a'.repeat(PROMPT_SCAN_CHARS),
  drawn(2, `${PRINTABLE}\n`),
  drawn(3, `${LETTERS}${LETTERS.toUpperCase()}0123456789   \n`),
];

/** Texts made of the patterns' own characters: where they begin to match again and again without coming to an end. */
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
