import { RE2JS, RE2Set } from 're2js';
import { stripText } from '../events/jsonValues.js';
import { PROMPT_SCAN_CHARS, type SkippedPattern } from './policy.js';

export interface PatternMatch {
  /** The pattern's place in `regexes`. */
  patternIndex: number;
  /** Characters from the beginning of the stripped prompt to where the leftmost match begins. */
  offset: number;
}

/** What stands around compiled patterns, bytes; this and the next as measured (docs/decisions/0026). */
const BYTES_AROUND = 100_000;
/** What an instruction takes in all the forms in which patterns are compiled, bytes. */
const BYTES_PER_INSTRUCTION = 800;

/** Some of the patterns, one after the other, and the place of the first of them among all that are searched for. */
interface Search {
  first: number;
  engine: PatternEngine;
}

/** Patterns of one policy that are searched together: RE2 syntax, in linear time, anywhere in a prompt. */
export class PatternSet {
  /** What it may come to in memory, bytes. */
  readonly bytesMax: number;
  readonly #searches: readonly Search[];
  readonly #regexes: readonly string[];
  /** The places in `regexes` of the patterns that are searched for. */
  readonly #places: readonly number[];
  /** Compiled apart, for where a match begins: when one of them has matched for the first time. */
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

  /** The patterns without those that are passed over; undefined where none is left. */
  static of(regexes: readonly string[], skipped: readonly SkippedPattern[]): PatternSet | undefined {
    const passedOver = new Set(skipped.map(({ index }) => index));
    const places = [...regexes.keys()].filter((index) => !passedOver.has(index));
    return places.length === 0 ? undefined : new PatternSet(regexes, places);
  }

  /** In the first prompt that any pattern matches, the match of the first pattern that does. */
  find(prompts: readonly string[]): PatternMatch | undefined {
    for (const prompt of prompts) {
      const match = this.findIn(prompt);
      if (match) return match;
    }
    return undefined;
  }

  /** The match of the first pattern that matches a prompt, told from the others by the order of `regexes`. */
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

/** What is searched of a prompt: its first characters after stripping. */
export function scannedPart(prompt: string): string {
  const head = prompt.slice(0, PROMPT_SCAN_CHARS);
  const stripped = stripText(head);
  // Nothing had to go: the head is the whole of what is searched, and a long prompt need not be read to its end.
  return stripped === head ? head : stripText(prompt).slice(0, PROMPT_SCAN_CHARS);
}

/** Memory of an automaton in one search; the library restarts it above, and at last searches without memory. */
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

/** Searches with an automaton (fast, may outgrow its memory) or without (bounded by program × text); docs/benchmarks.md. */
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

/** Groups patterns by estimated size: several small automata are quicker than one large one. */
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

/** Syntax of other engines that RE2 leaves out, by the part of a pattern at which RE2 stops. */
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

/** The unsupported construct where RE2 stopped; undefined when the pattern is wrong in every engine. */
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

/** A repetition with its counts, as RE2 reads it; anything else behind a brace is the brace itself. */
const COUNTED = /^\{(\d{1,4})(,(\d{0,4}))?\}/;
/** A named class, a code point or an octal number after its letter. */
const LONG_ESCAPE = /^\\(?:[pP]\{[^}]*\}|[pP].|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)/s;
/** What stands behind `(?`: flags, a group that captures nothing, a name. */
const GROUP_HEAD = /^\(\?(?:P?<[^>]*>|[a-zA-Z-]*[:)]?)/;

interface Frame {
  /** Instructions of what was read of the group. */
  total: number;
  /** Those of its last part, which a repetition repeats. */
  last: number;
}

/** About how many instructions a pattern compiles to, at least half of it; compiling a bad one takes a second. */
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
      // A repetition behind it repeats its last character.
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
      // Flags for what follows: no group.
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
  // Each time once more, and a branch for each that may be missing.
  const size = Math.max(1, max) * frame.last + (isOpen ? 1 : Math.max(0, max - min));
  frame.total += size - frame.last;
  frame.last = size;
}

/** Characters of a class in brackets; a bracket that is never closed reaches to the end. */
function classLength(text: string): number {
  let at = text[1] === '^' ? 2 : 1;
  // First in a class, a closing bracket is a member of it.
  if (text[at] === ']') at += 1;
  while (at < text.length && text[at] !== ']') {
    const named = text.startsWith('[:', at) ? text.indexOf(':]', at) : -1;
    if (named > 0) at = named + 2;
    else at += text[at] === '\\' ? (LONG_ESCAPE.exec(text.slice(at))?.[0].length ?? 1) : 1;
  }
  return at + 1;
}
