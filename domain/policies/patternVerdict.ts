import type { Json } from '../events/event.js';
import { patternId, patternsVersion } from './patternAutomata.js';
import type { PatternMatch } from './patternSet.js';
import { PROMPT_SCAN_CHARS, type SkippedPattern } from './policy.js';

/**
 * The result of a wrapper that has searched the prompts of a call for the banned patterns itself, so that no prompt
 * leaves its process (docs/policies.md).
 */
export interface PatternVerdict {
  /** The list of patterns that was searched for. */
  version: string;
  /** null: no pattern matches. */
  match: { patternIndex: number; patternId: string; offset: number } | null;
  /** Whether every pattern and every prompt was evaluated. */
  isComplete: boolean;
}

/** The field of `_service` with a verdict. */
const FIELD = 'policy_verdict';

/** The verdict in the `_service` block of a call; undefined: there is none, or it cannot be read. */
export function readPatternVerdict(service: Json): PatternVerdict | undefined {
  const given = fieldsOf(fieldsOf(service)?.[FIELD] ?? null);
  if (given === undefined || typeof given.version !== 'string') return undefined;
  const { version, pattern_index: index, pattern_id: id, match_offset: offset } = given;
  const isComplete = given.complete !== false;
  if (index === undefined || index === null) return { version, match: null, isComplete };
  if (!isCount(index) || !isCount(offset) || offset > PROMPT_SCAN_CHARS || typeof id !== 'string')
    return undefined;
  return { version, match: { patternIndex: index, patternId: id, offset }, isComplete };
}

function fieldsOf(value: Json): { [name: string]: Json } | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}

function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Reads verdicts by the present list of patterns. */
export class VerdictReader {
  readonly #version: string;
  readonly #ids: readonly string[];
  /** Indexes of the searched patterns, by their ids. */
  readonly #places = new Map<string, number>();

  constructor(regexes: readonly string[], skipped: readonly SkippedPattern[]) {
    this.#version = patternsVersion(regexes, skipped);
    this.#ids = regexes.map(patternId);
    const passedOver = new Set(skipped.map(({ index }) => index));
    for (const [index, id] of this.#ids.entries()) {
      if (!passedOver.has(index) && !this.#places.has(id)) this.#places.set(id, index);
    }
  }

  /**
   * The match that the verdict reports. The verdict of another list counts if its pattern is still banned, by the
   * present index of the pattern.
   */
  matchIn({ version, match }: PatternVerdict): PatternMatch | undefined {
    if (match === null) return undefined;
    const present = this.#places.get(match.patternId);
    if (present === undefined) return undefined;
    // Of two equal patterns in the present list the reported one counts.
    const isPresent = version === this.#version && this.#ids[match.patternIndex] === match.patternId;
    return { patternIndex: isPresent ? match.patternIndex : present, offset: match.offset };
  }

  /** The reason why a call without prompts is not judged completely; undefined: it is, or it is flagged. */
  unjudged(
    verdict: PatternVerdict | undefined,
  ): 'prompts_unknown' | 'verdict_outdated' | 'verdict_incomplete' | undefined {
    if (verdict === undefined) return 'prompts_unknown';
    if (this.matchIn(verdict)) return undefined;
    if (verdict.version !== this.#version) return 'verdict_outdated';
    return verdict.isComplete ? undefined : 'verdict_incomplete';
  }
}
