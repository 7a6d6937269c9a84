import { promptsOf } from './prompts.js';

/**
 * Searches prompts for the organization's banned patterns in this process, so that the verdict alone leaves it. The
 * service has compiled the patterns to tables: a search is one look-up for each character and table, whatever the
 * patterns are.
 */

/** The result of a search, which the service gets instead of the prompts. */
export interface PatternVerdict {
  version: string;
  /** null: no pattern matches. */
  pattern_index: number | null;
  pattern_id?: string;
  match_offset?: number;
  /** Whether every pattern and every prompt was evaluated. */
  complete: boolean;
}

interface Automaton {
  /** The column of each character code below 128. */
  columns: Uint8Array;
  width: number;
  next: Uint16Array;
  begins: Int16Array;
  beginsFirst: Int16Array;
}

/** Prompts of one call that are searched; a search takes some microseconds. */
export const PROMPTS_MAX = 1_000;
const ALPHABET_SIZE = 98;
const STATES_MAX = 65_536;
/** Searched prompts whose result is remembered: each call of a conversation repeats those before. */
const REMEMBERED_MAX = 1_000;

interface Match {
  patternIndex: number;
  offset: number;
}

export class PatternTables {
  readonly version: string;
  readonly #ids = new Map<number, string>();
  readonly #automata: readonly Automaton[];
  readonly #isComplete: boolean;
  #remembered = new Map<string, Match | null>();

  /** @param served the answer of `GET /api/v1/enforcement/patterns`. @throws Error for tables that cannot be used. */
  constructor(served: Record<string, unknown>) {
    const { version, patterns, automata, not_evaluated: notEvaluated } = served;
    if (typeof version !== 'string' || !Array.isArray(patterns) || !Array.isArray(automata))
      throw new Error('the patterns have an unknown form');
    this.version = version;
    for (const { index, id } of patterns as { index: number; id: string }[]) this.#ids.set(index, id);
    this.#automata = automata.map(readAutomaton);
    this.#isComplete = !Array.isArray(notEvaluated) || notEvaluated.length === 0;
  }

  /** Whether there is any pattern to search for, or one that cannot be. */
  get isEmpty(): boolean {
    return this.#automata.length === 0 && this.#isComplete;
  }

  /** The first prompt that a pattern matches counts, and of its patterns the first, by its leftmost match. */
  judge(body: unknown): PatternVerdict {
    const prompts = promptsOf(body);
    const searched = prompts.slice(0, PROMPTS_MAX);
    for (const prompt of searched) {
      const match = this.#searchOnce(prompt);
      if (match)
        return {
          version: this.version,
          pattern_index: match.patternIndex,
          pattern_id: this.#ids.get(match.patternIndex) ?? '',
          match_offset: match.offset,
          complete: this.#isComplete,
        };
    }
    const complete = this.#isComplete && searched.length === prompts.length;
    return { version: this.version, pattern_index: null, complete };
  }

  #searchOnce(text: string): Match | null {
    const known = this.#remembered.get(text);
    if (known !== undefined) return known;
    const match = this.search(text) ?? null;
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered = new Map();
    // A copy: a part of a text would keep the whole text in memory.
    this.#remembered.set(` ${text}`.slice(1), match);
    return match;
  }

  /** @param text the searched part of a prompt. Read from its end, which finds the beginnings of matches. */
  search(text: string): Match | undefined {
    let patternIndex = Number.POSITIVE_INFINITY;
    let offset = 0;
    for (const { columns, width, next, begins, beginsFirst } of this.#automata) {
      let state = 0;
      for (let at = text.length - 1; at >= 0; at -= 1) {
        state = next[state * width + (columns[text.charCodeAt(at)] as number)] as number;
        const begun = begins[state] as number;
        if (begun >= 0 && begun <= patternIndex) {
          patternIndex = begun;
          offset = at + 1;
        }
      }
      const begun = beginsFirst[state] as number;
      if (begun >= 0 && begun <= patternIndex) {
        patternIndex = begun;
        offset = 0;
      }
    }
    return patternIndex === Number.POSITIVE_INFINITY ? undefined : { patternIndex, offset };
  }
}

/** Checks every number, so that a search cannot leave the tables. @throws Error */
function readAutomaton(served: unknown): Automaton {
  const { classes, next, begins, begins_first: beginsFirst } = (served ?? {}) as Record<string, number[]>;
  const states = begins?.length ?? 0;
  const width = (next?.length ?? 0) / states;
  const isSound =
    classes?.length === ALPHABET_SIZE &&
    beginsFirst?.length === states &&
    states <= STATES_MAX &&
    Number.isSafeInteger(width) &&
    classes.every((column) => column >= 0 && column < width) &&
    next?.every((state) => state >= 0 && state < states);
  if (!isSound) throw new Error('a table of patterns has an unknown form');
  const columns = new Uint8Array(128);
  // Tab, line feed and carriage return, then the printable characters.
  for (const [place, column] of classes.entries()) columns[codeAt(place)] = column;
  return {
    columns,
    width,
    next: Uint16Array.from(next as number[]),
    begins: Int16Array.from(begins as number[]),
    beginsFirst: Int16Array.from(beginsFirst),
  };
}

function codeAt(place: number): number {
  return place >= 3 ? place + 29 : ([9, 10, 13][place] as number);
}

/** Verdicts that one timer makes, since a timer for each takes longer than most of them. */
const VERDICTS_OF_A_TIMER = 64;
let waiting: OpenVerdict[] = [];

function makeVerdicts(): void {
  const verdicts = waiting;
  waiting = [];
  for (const verdict of verdicts) {
    try {
      verdict.get();
    } catch {
      // The end of the call meets the same error and reports it.
    }
  }
}

/** The verdict on one call, which is made while the provider works, or at the latest when the call ends. */
export class OpenVerdict {
  readonly #tables: PatternTables;
  #body: unknown;
  #verdict: PatternVerdict | undefined;

  constructor(tables: PatternTables, body: unknown) {
    this.#tables = tables;
    this.#body = body;
    // Where a timer ends with its request, as in a worker of Cloudflare, a later one makes what it has left.
    if (waiting.push(this) % VERDICTS_OF_A_TIMER === 1) setTimeout(makeVerdicts, 0);
  }

  get(): PatternVerdict {
    if (this.#verdict === undefined) {
      this.#verdict = this.#tables.judge(this.#body);
      this.#body = undefined;
    }
    return this.#verdict;
  }
}
