import { RE2JS, RE2Set } from 're2js';
import { stripText } from '../events/jsonValues.js';
import { PROMPT_SCAN_CHARS, type SkippedPattern } from './policy.js';

export interface PatternMatch {
  /** The pattern's index in `regexes`. */
  patternIndex: number;
  /** Characters of the stripped prompt before the leftmost match. */
  offset: number;
}

/** Memory of a set beside its patterns, bytes; this and the next constant were measured (docs/decisions/0026). */
const BYTES_AROUND = 100_000;
/** Memory of an instruction in all forms in which patterns are compiled, bytes. */
const BYTES_PER_INSTRUCTION = 800;

/** Consecutive patterns, and the index of the first among all searched ones. */
interface Search {
  first: number;
  engine: PatternEngine;
}

/** The patterns of one policy, searched together: RE2 syntax, in linear time, anywhere in a prompt. */
export class PatternSet {
  /** Upper bound of its memory, bytes. */
  readonly bytesMax: number;
  readonly #searches: readonly Search[];
  readonly #regexes: readonly string[];
  /** The indexes in `regexes` of the searched patterns. */
  readonly #places: readonly number[];
  /** Single patterns that find the start of a match; compiled at the first match of each. */
  readonly #single = new Map<number, RE2JS>();

  private constructor(regexes: readonly string[], places: readonly number[]) {
    this.#regexes = regexes;
    this.#places = places;
    let first = 0;
    this.#searches = groupPatterns(places.map((place) => regexes[place] as string)).map((group) => {
      const search = { first, engine: new PatternEngine(group) };
      first += group.length;
      return search;
    });
    this.bytesMax = this.#searches.reduce(
      (sum, { engine }) => sum + engine.bytesKept + engine.programSize * BYTES_PER_INSTRUCTION,
      BYTES_AROUND,
    );
  }

  /** The patterns without the skipped ones; undefined if none is left. */
  static of(regexes: readonly string[], skipped: readonly SkippedPattern[]): PatternSet | undefined {
    const passedOver = new Set(skipped.map(({ index }) => index));
    const places = [...regexes.keys()].filter((index) => !passedOver.has(index));
    return places.length === 0 ? undefined : new PatternSet(regexes, places);
  }

  /** The match in the first prompt that matches, of the first pattern that matches it. */
  find(prompts: readonly string[]): PatternMatch | undefined {
    for (const prompt of prompts) {
      const match = this.findIn(prompt);
      if (match) return match;
    }
    return undefined;
  }

  /** The match of the first matching pattern, in the order of `regexes`. */
  findIn(prompt: string): PatternMatch | undefined {
    const text = scannedPart(prompt);
    for (const { first, engine } of this.#searches) {
      const [hit] = engine.match(text);
      if (hit === undefined) continue;
      const patternIndex = this.#places[first + hit] as number;
      const matcher = this.#singleAt(patternIndex).matcher(text);
      return { patternIndex, offset: matcher.find() ? matcher.start() : 0 };
    }
    return undefined;
  }

  #singleAt(place: number): RE2JS {
    const known = this.#single.get(place);
    if (known) return known;
    const compiled = RE2JS.compile(this.#regexes[place] as string);
    this.#single.set(place, compiled);
    return compiled;
  }
}

/** The searched part of a prompt: its first characters after stripping. */
export function scannedPart(prompt: string): string {
  const head = prompt.slice(0, PROMPT_SCAN_CHARS);
  const stripped = stripText(head);
  // If stripping removed nothing, the head is the whole searched part, and a long prompt need not be read to its
  // end.
  return stripped === head ? head : stripText(prompt).slice(0, PROMPT_SCAN_CHARS);
}

/**
 * Memory of an automaton in one search. Above it the library restarts the automaton, and finally searches without
 * one.
 */
const AUTOMATON_BYTES_MAX = 4 * 1_048_576;
/**
 * Maximum memory that an automaton keeps until the next prompt, bytes by the library's own count, which heap
 * measurements confirm.
 */
const AUTOMATON_BYTES_KEPT = 1_048_576;
/** Automata of smaller patterns keep less: this base, and the amount below for each instruction and character class. */
const BYTES_KEPT_LEAST = 65_536;
const BYTES_KEPT_EACH = 512;
/** Approximate number of instructions of patterns that are searched together. */
const GROUP_SIZE = 4_000;
/** Prompts that are searched without an automaton before another one is tried. */
const PROMPTS_WITHOUT_MEMORY = 256;

/**
 * Searches with an automaton (fast, may exceed its memory) or without (bounded by program × text);
 * docs/benchmarks.md.
 */
export class PatternEngine {
  readonly #patterns: readonly string[];
  readonly #automaton: RE2Set;
  /** Maximum memory that the automaton keeps between two prompts, bytes. */
  readonly bytesKept: number;
  #withoutMemory: RE2Set | undefined;
  #restsFor = 0;

  /** Throws the library's error for an unsupported pattern. */
  constructor(patterns: readonly string[]) {
    this.#patterns = patterns;
    this.#automaton = compileSet(patterns, AUTOMATON_BYTES_MAX);
    const parts = this.programSize + this.#automaton.dfa.numClasses;
    this.bytesKept = Math.min(AUTOMATON_BYTES_KEPT, BYTES_KEPT_LEAST + BYTES_KEPT_EACH * parts);
  }

  /** The indexes among all patterns of those that match anywhere in the text, ascending. */
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

  /** Instructions of the program: the maximum cost per character of a search without an automaton. */
  get programSize(): number {
    return this.#automaton.prog.numInst();
  }

  /** Whether searches currently run without an automaton because it had kept too much memory. */
  get isResting(): boolean {
    return this.#restsFor > 0;
  }
}

/** Groups patterns by estimated size: several small automata are faster than one large one. */
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

/** The search whose time depends only on the patterns' size and not on the text, for worst-case measurements. */
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

/** Syntax of other engines that RE2 lacks, by the part of a pattern at which RE2 stops. */
const UNSUPPORTED: readonly (readonly [part: RegExp, name: string])[] = [
  [/^\(\?<[=!]/, 'look-behind'],
  [/^\(\?[=!]/, 'look-ahead'],
  [/^\\[1-9]/, 'back-references'],
  [/^\\[kg]/, 'back-references'],
  [/^\(\?P=/, 'back-references'],
  [/^\(\?>/, 'atomic groups'],
  [/^[*+?}]\+/, 'possessive repetition'],
  [/^\(\?\(/, 'conditions'],
  [/^\(\?(?:R|&|P>|[+-]?\d)/, 'recursion'],
  [/^\(\?#/, 'comments'],
  [/^\(\?\|/, 'branch reset groups'],
];

/** The unsupported construct at which RE2 stopped; undefined if the pattern is wrong in every engine. */
export function findUnsupportedSyntax(
  pattern: string,
  stoppedAt: string,
): { name: string; part: string } | undefined {
  for (let at = pattern.indexOf(stoppedAt); at >= 0; at = pattern.indexOf(stoppedAt, at + 1)) {
    for (const [part, name] of UNSUPPORTED) {
      const found = part.exec(pattern.slice(at));
      if (found) return { name, part: found[0] };
    }
  }
  return undefined;
}

/** A counted repetition as RE2 reads it; any other brace is a literal. */
const COUNTED = /^\{(\d{1,4})(,(\d{0,4}))?\}/;
/** A named class, a code point or an octal number after its letter. */
const LONG_ESCAPE = /^\\(?:[pP]\{[^}]*\}|[pP].|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)/s;
/** The characters after `(?`: flags, a non-capturing group, a name. */
const GROUP_HEAD = /^\(\?(?:P?<[^>]*>|[a-zA-Z-]*[:)]?)/;

interface Frame {
  /** Instructions of the group's parts so far. */
  total: number;
  /** Instructions of its last part, to which a repetition applies. */
  last: number;
}

/**
 * Estimated number of instructions of a compiled pattern, at least half of the true one. Compiling a bad pattern
 * takes a second.
 */
export function estimateProgramSize(pattern: string): number {
  const frames: Frame[] = [];
  let frame: Frame = { total: 2, last: 0 };
  const atom = (size: number) => {
    frame.total += size;
    frame.last = size;
  };
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at);
    const head = rest[0] as string;
    const counted = head === '{' ? COUNTED.exec(rest) : null;
    if (counted) {
      repeat(frame, Number(counted[1]), counted[2], counted[3]);
      at += counted[0].length;
    } else if (rest.startsWith('\\Q')) {
      const end = rest.indexOf('\\E', 2);
      const literal = end < 0 ? rest.slice(2) : rest.slice(2, end);
      // A following repetition applies to the last character.
      frame.total += literal.length;
      frame.last = 1;
      at += end < 0 ? rest.length : end + 2;
    } else if (head === '\\') {
      atom(1);
      at += LONG_ESCAPE.exec(rest)?.[0].length ?? 1;
    } else if (head === '[') {
      atom(1);
      at += classLength(rest);
    } else if (head === '(') {
      const opened = GROUP_HEAD.exec(rest)?.[0] ?? '(';
      at += opened.length;
      // Flags for the rest of the group, which open no group.
      if (opened.endsWith(')')) continue;
      frames.push(frame);
      frame = { total: 2, last: 0 };
    } else if (head === ')') {
      const { total } = frame;
      frame = frames.pop() ?? { total: 2, last: 0 };
      atom(total);
      at += 1;
    } else {
      if (head === '|') atom(1);
      else if (head === '*' || head === '+' || head === '?') addTo(frame, 1);
      else atom(1);
      at += 1;
    }
  }
  return frames.reduce((sum, { total }) => sum + total, frame.total);
}

function addTo(frame: Frame, size: number): void {
  frame.total += size;
  frame.last += size;
}

export function repeat(
  frame: Frame,
  min: number,
  comma: string | undefined,
  maxText: string | undefined,
): void {
  const isOpen = comma !== undefined && maxText === '';
  const max = comma === undefined ? min : isOpen ? Math.max(min, 1) : Number(maxText);
  // Each repetition adds an instruction, and each optional one a branch.
  const size = Math.max(1, max) * frame.last + (isOpen ? 1 : Math.max(0, max - min));
  frame.total += size - frame.last;
  frame.last = size;
}

/** Characters of a class in brackets; an unclosed bracket reaches to the end. */
function classLength(text: string): number {
  let at = text[1] === '^' ? 2 : 1;
  // A closing bracket at the start of a class is a member of it.
  if (text[at] === ']') at += 1;
  while (at < text.length && text[at] !== ']') {
    const named = text.startsWith('[:', at) ? text.indexOf(':]', at) : -1;
    if (named > 0) at = named + 2;
    else at += text[at] === '\\' ? (LONG_ESCAPE.exec(text.slice(at))?.[0].length ?? 1) : 1;
  }
  return at + 1;
}
