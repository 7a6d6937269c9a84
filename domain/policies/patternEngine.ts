import { RE2Set } from 're2js';
import { estimateProgramSize } from './programSize.js';

/**
 * What an automaton may remember of one prompt's search, bytes; more is begun anew by the library, and at last given up
 * for the search without memory.
 */
const AUTOMATON_BYTES_MAX = 4 * 1_048_576;
/** What any may keep until the next prompt, bytes by the library's own count, which the heap confirms. */
const AUTOMATON_BYTES_KEPT = 1_048_576;
/** Of smaller patterns less: so much, and so much for each instruction and each class of characters that they tell apart. */
const BYTES_KEPT_LEAST = 65_536;
const BYTES_KEPT_EACH = 512;
/** Instructions of the patterns that are searched for together, about. */
const GROUP_SIZE = 4_000;
/** Prompts that are searched without memory before another automaton is tried. */
const PROMPTS_WITHOUT_MEMORY = 256;

/**
 * Several patterns as one search. The library has two ways to search, which find the same. One remembers each set of
 * places at which the patterns can stand (a DFA, built while it searches): some microseconds for a prompt, however many
 * patterns. Of patterns that count what they repeat there can be a new set at each character, each as dear as the
 * program is long, and then all that was remembered is of no use. The other follows the patterns without remembering
 * anything: dearer for ordinary patterns, but by no text dearer than program times characters. So the second stands in
 * for a while wherever the first has filled its room (figures: docs/benchmarks.md).
 */
export class PatternEngine {
  readonly #patterns: readonly string[];
  readonly #automaton: RE2Set;
  /** What the automaton may keep between two prompts, bytes. */
  readonly bytesKept: number;
  #withoutMemory: RE2Set | undefined;
  #restsFor = 0;

  /** Throws an error of the library for a pattern that it does not take. */
  constructor(patterns: readonly string[]) {
    this.#patterns = patterns;
    this.#automaton = compileSet(patterns, AUTOMATON_BYTES_MAX);
    const parts = this.programSize + this.#automaton.dfa.numClasses;
    this.bytesKept = Math.min(AUTOMATON_BYTES_KEPT, BYTES_KEPT_LEAST + BYTES_KEPT_EACH * parts);
  }

  /** The places in the list of all patterns that match anywhere in the text, ascending. */
  match(text: string): number[] {
    if (this.#restsFor > 0) {
      this.#restsFor -= 1;
      this.#withoutMemory ??= compileSet(this.#patterns, 0);
      return this.#withoutMemory.match(text);
    }
    const { dfa } = this.#automaton;
    const statesBefore = dfa.stateCount;
    const hits = this.#automaton.match(text);
    if (dfa.maxMem - dfa.memBudget > this.bytesKept || dfa.stateCount < statesBefore) {
      dfa.clearCache();
      this.#restsFor = PROMPTS_WITHOUT_MEMORY;
    }
    return hits;
  }

  /** Instructions of the program: what a search without memory costs at most, for each character. */
  get programSize(): number {
    return this.#automaton.prog.numInst();
  }

  /** Whether the search without memory has its turn: what the automaton kept had become too much. */
  get isResting(): boolean {
    return this.#restsFor > 0;
  }
}

/**
 * The patterns in their order as searches of a size each: a new set of places costs an automaton as much as its program
 * is long, so several small ones are quicker than one large one. Told by estimated sizes, alike on every instance.
 */
export function groupPatterns(patterns: readonly string[]): string[][] {
  const groups: string[][] = [];
  let room = 0;
  for (const pattern of patterns) {
    const size = estimateProgramSize(pattern);
    if (size > room || groups.length === 0) {
      groups.push([]);
      room = GROUP_SIZE;
    }
    groups.at(-1)?.push(pattern);
    room -= size;
  }
  return groups;
}

/** The search whose time no text makes longer than the patterns' size allows: to measure what they take at worst. */
export function searchWithoutMemory(patterns: readonly string[]): (text: string) => number[] {
  let first = 0;
  const sets = groupPatterns(patterns).map((group) => {
    const set = { first, search: compileSet(group, 0) };
    first += group.length;
    return set;
  });
  return (text) => sets.flatMap((set) => set.search.match(text).map((hit) => set.first + hit));
}

function compileSet(patterns: readonly string[], automatonBytesMax: number): RE2Set {
  const set = new RE2Set(RE2Set.UNANCHORED, 0, automatonBytesMax);
  for (const pattern of patterns) set.add(pattern);
  set.compile();
  return set;
}
