import { RE2JS, RE2Set } from 're2js';
import { stripText } from '../events/stripText.js';
import { PROMPT_SCAN_CHARS, type SkippedPattern } from './policy.js';

export interface PatternMatch {
  /** The pattern's place in `regexes`. */
  patternIndex: number;
  /** Characters from the beginning of the stripped prompt to where the leftmost match begins. */
  offset: number;
}

/** Patterns of one policy that are searched together: RE2 syntax, in linear time, anywhere in a prompt. */
export class PatternSet {
  readonly #set: RE2Set;
  readonly #regexes: readonly string[];
  /** The places in `regexes` of the patterns in the set. */
  readonly #places: readonly number[];

  private constructor(set: RE2Set, regexes: readonly string[], places: readonly number[]) {
    this.#set = set;
    this.#regexes = regexes;
    this.#places = places;
  }

  /** The patterns without those that are passed over; undefined where none is left. */
  static of(regexes: readonly string[], skipped: readonly SkippedPattern[]): PatternSet | undefined {
    const passedOver = new Set(skipped.map(({ index }) => index));
    const places: number[] = [];
    const set = new RE2Set(RE2Set.UNANCHORED, 0);
    for (const [index, regex] of regexes.entries()) {
      if (passedOver.has(index)) continue;
      set.add(regex);
      places.push(index);
    }
    if (places.length === 0) return undefined;
    set.compile();
    return new PatternSet(set, regexes, places);
  }

  /** The first prompt that any pattern matches, by the first of its patterns. */
  find(prompts: readonly string[]): PatternMatch | undefined {
    for (const prompt of prompts) {
      const text = scannedPart(prompt);
      const hits = this.#set.match(text);
      if (hits.length > 0) return this.#matchIn(text, Math.min(...hits));
    }
    return undefined;
  }

  #matchIn(text: string, hit: number): PatternMatch {
    const patternIndex = this.#places[hit] ?? 0;
    const matcher = RE2JS.compile(this.#regexes[patternIndex] ?? '').matcher(text);
    return { patternIndex, offset: matcher.find() ? matcher.start() : 0 };
  }
}

/** What is searched of a prompt: its first characters after stripping. */
export function scannedPart(prompt: string): string {
  const head = prompt.slice(0, PROMPT_SCAN_CHARS);
  const stripped = stripText(head);
  // Nothing had to go: the head is the whole of what is searched, and a long prompt need not be read to its end.
  return stripped === head ? head : stripText(prompt).slice(0, PROMPT_SCAN_CHARS);
}
