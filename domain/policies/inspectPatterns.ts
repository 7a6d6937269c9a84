import { RE2JS, RE2Set } from 're2js';
import { PatternEngine } from './patternEngine.js';
import type { SkippedPattern } from './policy.js';
import { COMMON_PROBES, drawn, ownProbes } from './probeTexts.js';
import { estimateProgramSize } from './programSize.js';

/** Instructions that one pattern may compile to. */
export const PROGRAM_SIZE_MAX = 1_000;
/** Instructions of all patterns of a policy: what bounds the time of a prompt, whatever stands in it. */
export const PROGRAM_SIZE_TOTAL_MAX = 4_000;
/** A pattern whose size was estimated above this is not compiled to find out: no estimate is less than half. */
const ESTIMATE_MAX = 4 * PROGRAM_SIZE_MAX;

/**
 * What a search of one prompt for all patterns may take, in searches of the reference: some milliseconds. Told in its
 * measure and not in time, so that a slow machine, or one that does other things too, judges as a quick one.
 */
export const SEARCH_TIMES_MAX = 8;
/** It counts what it repeats, and the text keeps it counting. */
const REFERENCE = { pattern: '(a|b)*a(a|b){66}c', text: drawn(7, 'ab') };

/** So often a search that seems too slow is made: the quickest tells what it takes. */
const SEARCHES_MAX = 9;
/** So long nothing else gets a turn. */
const WORK_MS_MAX = 20;

/** How time is told, and how others are given a turn. */
export interface Pace {
  /** A clock that never goes back, milliseconds. */
  nowMs(): number;
  pause(): Promise<void>;
}

/**
 * Patterns that are not searched for: those that RE2 does not take, those that compile to too much, and of the others
 * so many of the slowest that the rest is searched in time. The verdict is stored with the policy, so that every
 * instance passes over the same ones; the reasons say nothing of the moment, so that the same verdict reads alike.
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

/** The pattern compiled, or why it is passed over, as far as no clock is needed to tell. */
function judgePattern(regex: string, index: number, room: number): Candidate | SkippedPattern {
  const slow = (reason: string): SkippedPattern => ({ index, code: 'slow', reason });
  const tooLarge = slow(
    `it compiles to more than ${PROGRAM_SIZE_MAX} steps: repeat less, or bound its repetitions more tightly`,
  );
  try {
    if (estimateProgramSize(regex) > ESTIMATE_MAX) {
      // Only read, which is quick: one that is no pattern is told as such.
      new RE2Set(RE2Set.UNANCHORED, 0).add(regex);
      return tooLarge;
    }
    const size = RE2JS.compile(regex).programSize();
    if (size > PROGRAM_SIZE_MAX) return tooLarge;
    if (size > room)
      return slow(
        `with the patterns before it it compiles to more than ${PROGRAM_SIZE_TOTAL_MAX} steps: repeat less, or leave others out`,
      );
    return { index, regex, size };
  } catch (error) {
    return { index, code: 'invalid', reason: reasonOf(error) };
  }
}

/** The library's sentence: it names the part of the pattern, in the words of RE2. */
function reasonOf(error: unknown): string {
  const said = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : '';
  return `not a regular expression in RE2 syntax: ${said}`;
}

/** The fewest of the slowest patterns without which a prompt is searched in time. */
async function findSlowest(
  patterns: readonly Candidate[],
  bench: Bench,
): Promise<{ index: number; isAlone: boolean }[]> {
  // Mostly that is it.
  if (patterns.length === 0 || (await isInTime(patterns, bench))) return [];
  const measured: (Candidate & { times: number })[] = [];
  for (const one of patterns) measured.push({ ...one, times: await timesOf([one], bench) });
  const tooSlow = measured.filter(({ times }) => times > SEARCH_TIMES_MAX);
  const others = measured
    .filter(({ times }) => times <= SEARCH_TIMES_MAX)
    .sort((a, b) => a.times - b.times || a.index - b.index);
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
  return (await timesOf(patterns, bench)) <= SEARCH_TIMES_MAX;
}

/** What a search for the patterns takes of the text that is worst for them, as far as it is looked for. */
function timesOf(patterns: readonly Candidate[], bench: Bench): Promise<number> {
  const engine = new PatternEngine(patterns.map(({ regex }) => regex));
  const texts = [...COMMON_PROBES, ...patterns.flatMap(({ regex }) => ownProbes(regex))];
  return bench.slowest((text) => engine.matchWithoutMemory(text), texts);
}

/** Measures searches, in turns with everything else that the process does. */
class Bench {
  readonly #pace: Pace;
  readonly #reference = new PatternEngine([REFERENCE.pattern]);
  #referenceMs = Number.POSITIVE_INFINITY;
  #beganMs: number;

  constructor(pace: Pace) {
    this.#pace = pace;
    this.#beganMs = pace.nowMs();
  }

  async turn(): Promise<void> {
    if (this.#pace.nowMs() - this.#beganMs < WORK_MS_MAX) return;
    await this.#pace.pause();
    this.#beganMs = this.#pace.nowMs();
  }

  /** What the slowest of the texts takes, in searches of the reference; looks no further after one that takes too long. */
  async slowest(search: (text: string) => unknown, texts: readonly string[]): Promise<number> {
    if (this.#referenceMs === Number.POSITIVE_INFINITY)
      for (let count = 0; count < SEARCHES_MAX; count += 1)
        this.#referenceMs = Math.min(this.#referenceMs, this.#timeReference());
    let slowest = 0;
    for (const text of texts) {
      await this.turn();
      const times = this.#time(() => search(text)) / this.#referenceMs;
      slowest = Math.max(
        slowest,
        times <= SEARCH_TIMES_MAX ? times : await this.#timesOf(() => search(text)),
      );
      if (slowest > SEARCH_TIMES_MAX) break;
    }
    return slowest;
  }

  /** By the quickest of several, each beside a search of the reference: what the machine does besides, both suffer from. */
  async #timesOf(search: () => unknown): Promise<number> {
    let [quickest, reference] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let count = 0; count < SEARCHES_MAX; count += 1) {
      await this.turn();
      reference = Math.min(reference, this.#timeReference());
      quickest = Math.min(quickest, this.#time(search));
    }
    return quickest / reference;
  }

  #timeReference(): number {
    return this.#time(() => this.#reference.matchWithoutMemory(REFERENCE.text));
  }

  #time(work: () => unknown): number {
    const began = this.#pace.nowMs();
    work();
    return this.#pace.nowMs() - began;
  }
}
