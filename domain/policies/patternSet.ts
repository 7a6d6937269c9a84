import { RE2JS } from 're2js';
import { stripText } from '../events/jsonValues.js';
import { groupPatterns, PatternEngine } from './patternEngine.js';
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
