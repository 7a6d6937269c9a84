import { RE2JS } from 're2js';
import { hexDigest } from '../events/digest.js';
import { PROMPT_SCAN_CHARS, type SkippedPattern } from './policy.js';

/**
 * Banned patterns as tables that a wrapper can apply in the application's process: one look-up for each character of
 * a prompt, whatever the pattern is, with the matches of RE2 in every language (docs/policies.md).
 */

/** The characters of stripped texts, in the order of the tables' columns: tab, line feed, carriage return, printable. */
export const ALPHABET = `\t\n\r${Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)).join('')}`;

/** One automaton reads a prompt from its end to its beginning, which finds where matches begin. State 0 is the first. */
export interface PatternAutomaton {
  /** The column of each character of the alphabet. */
  classes: number[];
  /** The next state, by state and column: row after row. */
  next: number[];
  /** By state: the first pattern of which a match begins after the character just read; -1: none. */
  begins: number[];
  /** By state: the same for the beginning of the prompt, once all characters are read. */
  beginsFirst: number[];
}

export interface PatternTables {
  automata: PatternAutomaton[];
  /** Patterns that a wrapper cannot evaluate, ascending indexes. */
  notEvaluated: number[];
}

/** States of the automaton of one pattern, and of one of several, which are tried apart above it. */
export const STATES_MAX = 4_096;
const STATES_TOGETHER_MAX = 1_000;
/** Instructions of patterns that are tried together. */
const NODES_TOGETHER_MAX = 5_000;
/** Entries of all tables of a policy; each is a small number. */
export const ENTRIES_MAX = 120_000;
/** Automata of a policy: the look-ups for one character. */
export const AUTOMATA_MAX = 8;
/** Elementary steps of building all tables: about a second. */
const STEPS_MAX = 15_000_000;
/** Steps between two pauses: some milliseconds. */
const STEPS_A_TURN = 50_000;

/** Instructions of a compiled pattern, by the library's numbers. */
const OP = { alternative: 1, alternativeMatch: 2, capture: 3, assertion: 4, match: 6, nothing: 7 } as const;
const RUNE_FIRST = 8;
const RUNE_LAST = 11;
const ANY = 10;
const ANY_BUT_LINE = 11;

/** Assertions on a place between two characters, as bits. */
const BEGIN_LINE = 1;
const END_LINE = 2;
const BEGIN_TEXT = 4;
const END_TEXT = 8;
const BOUNDARY = 16;
const NO_BOUNDARY = 32;

interface Instruction {
  op: number;
  out: number;
  arg: number;
  runes: ArrayLike<number>;
  matchRune(code: number): boolean;
}

/** Identifies the list of patterns and the form of the tables: equal versions find the same. */
export function patternsVersion(regexes: readonly string[], skipped: readonly SkippedPattern[]): string {
  const passedOver = skipped.map(({ index }) => index);
  return hexDigest(JSON.stringify(['tables 1', regexes, passedOver]), 32);
}

/** Identifies a pattern across lists without its text. */
export function patternId(regex: string): string {
  return hexDigest(`pattern ${regex}`, 16);
}

/** Builds the tables of the patterns that are not skipped. Yields now and then, so that other work can go on. */
export function* buildTables(
  regexes: readonly string[],
  skipped: readonly SkippedPattern[],
): Generator<void, PatternTables> {
  const passedOver = new Set(skipped.map(({ index }) => index));
  const places = [...regexes.keys()].filter((index) => !passedOver.has(index));
  const budget = { steps: 0, turn: STEPS_A_TURN };
  const tables: PatternTables = { automata: [], notEvaluated: [] };
  let entries = 0;
  // Halves of a list that is too large for one automaton are tried by themselves, in order.
  const waiting = places.length === 0 ? [] : [places];
  for (let group = waiting.pop(); group !== undefined; group = waiting.pop()) {
    const room = tables.automata.length < AUTOMATA_MAX ? ENTRIES_MAX - entries : 0;
    const built = yield* buildAutomaton(regexes, group, room, budget);
    if (built) {
      tables.automata.push(built);
      entries += built.next.length;
    } else if (group.length === 1) {
      tables.notEvaluated.push(group[0] as number);
    } else {
      const half = Math.ceil(group.length / 2);
      waiting.push(group.slice(half), group.slice(0, half));
    }
  }
  tables.notEvaluated.sort((one, other) => one - other);
  return tables;
}

interface Budget {
  steps: number;
  /** The next pause, in steps. */
  turn: number;
}

/** Undefined: the patterns need more states, entries or steps than there may be. */
function* buildAutomaton(
  regexes: readonly string[],
  places: readonly number[],
  entriesMax: number,
  budget: Budget,
): Generator<void, PatternAutomaton | undefined> {
  if (entriesMax <= 0 || budget.steps > STEPS_MAX) return undefined;
  const graph = reversedGraph(regexes, places);
  if (graph === undefined || (places.length > 1 && graph.size > NODES_TOGETHER_MAX)) return undefined;
  const { classes, count, symbols } = partition(graph);
  budget.steps += graph.runes.length * ALPHABET.length;
  const statesMax = places.length === 1 ? STATES_MAX : STATES_TOGETHER_MAX;
  const next: number[] = [];
  const begins: number[] = [];
  const beginsFirst: number[] = [];
  const states = new Map<string, number>();
  const open: { nodes: readonly number[]; right: Side }[] = [];
  const stateOf = (nodes: readonly number[], right: Side, begun: number): number => {
    const key = `${begun} ${right} ${nodes.join(' ')}`;
    const known = states.get(key);
    if (known !== undefined) return known;
    const number = open.length;
    states.set(key, number);
    open.push({ nodes, right });
    begins.push(begun);
    return number;
  };
  stateOf([], graph.hasAssertions ? 'end' : 'other', -1);
  for (let number = 0; number < open.length; number += 1) {
    if (open.length > statesMax || open.length * count > entriesMax) return undefined;
    const { nodes, right } = open[number] as { nodes: readonly number[]; right: Side };
    const closures = new Map<number, Closure>();
    const closureFor = (left: Side): Closure => {
      const flags = graph.hasAssertions ? flagsBetween(left, right) : 0;
      const known = closures.get(flags);
      if (known) return known;
      const closure = closeBackward(graph, nodes, flags);
      budget.steps += closure.size;
      closures.set(flags, closure);
      return closure;
    };
    for (let column = 0; column < count; column += 1) {
      const symbol = symbols[column] as number;
      const side = sideOf(symbol);
      const closure = closureFor(side);
      const stepped: number[] = [];
      for (const node of closure.runes) if (graph.matches(node, symbol)) stepped.push(node);
      budget.steps += closure.runes.length + 1;
      next.push(stateOf(stepped, graph.hasAssertions ? side : 'other', closure.first));
    }
    beginsFirst.push(closureFor('end').first);
    if (budget.steps > STEPS_MAX) return undefined;
    if (budget.steps > budget.turn) {
      budget.turn = budget.steps + STEPS_A_TURN;
      yield;
    }
  }
  return { classes, next, begins, beginsFirst };
}

/** The kind of character on one side of a place, as far as assertions ask; `end`: there is none. */
type Side = 'end' | 'line' | 'word' | 'other';

function sideOf(code: number): Side {
  if (code === 10) return 'line';
  return /\w/.test(String.fromCharCode(code)) ? 'word' : 'other';
}

function flagsBetween(left: Side, right: Side): number {
  let flags = (left === 'word') !== (right === 'word') ? BOUNDARY : NO_BOUNDARY;
  if (left === 'end') flags |= BEGIN_TEXT | BEGIN_LINE;
  if (left === 'line') flags |= BEGIN_LINE;
  if (right === 'end') flags |= END_TEXT | END_LINE;
  if (right === 'line') flags |= END_LINE;
  return flags;
}

/** The programs of several patterns as one graph whose edges lead from the end of a match to its beginning. */
interface Graph {
  size: number;
  /** By node: nodes that lead to it without a character, and the assertions on which they do. */
  before: { node: number; assertions: number }[][];
  /** By node: nodes that lead to it by a character. */
  runesBefore: number[][];
  runes: readonly number[];
  ends: readonly number[];
  /** By node: the pattern that begins there. */
  patternAt: ReadonlyMap<number, number>;
  hasAssertions: boolean;
  matches(node: number, code: number): boolean;
  signOf(node: number): string;
}

/** Undefined: a program has an instruction that is not known. */
function reversedGraph(regexes: readonly string[], places: readonly number[]): Graph | undefined {
  const instructions: Instruction[] = [];
  const before: Graph['before'] = [];
  const runesBefore: number[][] = [];
  const runes: number[] = [];
  const ends: number[] = [];
  const patternAt = new Map<number, number>();
  let hasAssertions = false;
  for (const place of places) {
    const { prog } = RE2JS.compile(regexes[place] as string).re2();
    const offset = instructions.length;
    const program = prog.inst as Instruction[];
    for (const instruction of program) {
      instructions.push(instruction);
      before.push([]);
      runesBefore.push([]);
    }
    patternAt.set(offset + Number(prog.start), place);
    for (const [at, { op, out, arg }] of program.entries()) {
      const node = offset + at;
      const link = (to: number, assertions: number) => before[offset + to]?.push({ node, assertions });
      if (op >= RUNE_FIRST && op <= RUNE_LAST) {
        runes.push(node);
        runesBefore[offset + out]?.push(node);
      } else if (op === OP.alternative || op === OP.alternativeMatch) {
        link(out, 0);
        link(arg, 0);
      } else if (op === OP.capture || op === OP.nothing) link(out, 0);
      else if (op === OP.assertion) {
        hasAssertions = true;
        link(out, arg);
      } else if (op === OP.match) ends.push(node);
      else if (op > RUNE_LAST) return undefined;
    }
  }
  const matches = (node: number, code: number): boolean => {
    const instruction = instructions[node] as Instruction;
    if (instruction.op === ANY) return true;
    return instruction.op === ANY_BUT_LINE ? code !== 10 : instruction.matchRune(code);
  };
  const signOf = (node: number): string => {
    const { op, arg, runes: ranges } = instructions[node] as Instruction;
    return `${op} ${arg} ${Array.from(ranges).join(' ')}`;
  };
  return {
    signOf,
    size: instructions.length,
    before,
    runesBefore,
    runes,
    ends,
    patternAt,
    hasAssertions,
    matches,
  };
}

interface Closure {
  /** Nodes that a character can reach this place from, ascending. */
  runes: readonly number[];
  /** The first pattern of which a match begins here; -1: none. */
  first: number;
  size: number;
}

/** Every node from which the end of a match is reached from this place. A match may end anywhere. */
function closeBackward(graph: Graph, nodes: readonly number[], flags: number): Closure {
  const seen = new Set<number>(nodes);
  for (const end of graph.ends) seen.add(end);
  const runes = new Set<number>();
  let first = -1;
  // A set shows what is added while it is read.
  for (const node of seen) {
    const place = graph.patternAt.get(node);
    if (place !== undefined && (first < 0 || place < first)) first = place;
    for (const { node: earlier, assertions } of graph.before[node] ?? [])
      if ((assertions & ~flags) === 0) seen.add(earlier);
    for (const rune of graph.runesBefore[node] ?? []) runes.add(rune);
  }
  return { runes: [...runes].sort((one, other) => one - other), first, size: seen.size + runes.size };
}

/** Characters that no pattern distinguishes share a column. */
function partition(graph: Graph): { classes: number[]; count: number; symbols: number[] } {
  const groups = new Map<string, number>();
  const symbols: number[] = [];
  const sets = distinctSets(graph);
  const classes = [...ALPHABET].map((char) => {
    const code = char.charCodeAt(0);
    const sign = `${graph.hasAssertions ? sideOf(code) : ''}${sets.map((set) => (set.includes(char) ? 1 : 0)).join('')}`;
    const known = groups.get(sign);
    if (known !== undefined) return known;
    groups.set(sign, symbols.length);
    symbols.push(code);
    return symbols.length - 1;
  });
  return { classes, count: symbols.length, symbols };
}

/** The sets of characters that the patterns' nodes match. Nodes with one sign have one set. */
function distinctSets(graph: Graph): string[] {
  const sets = new Map<string, string>();
  for (const node of graph.runes) {
    const sign = graph.signOf(node);
    if (sets.has(sign)) continue;
    sets.set(sign, [...ALPHABET].filter((char) => graph.matches(node, char.charCodeAt(0))).join(''));
  }
  return [...new Set(sets.values())];
}

/**
 * The first pattern that matches the text, and the place of its leftmost match. Wrappers do the same.
 *
 * @param text stripped, at most `PROMPT_SCAN_CHARS` characters
 */
export function searchTables(
  automata: readonly PatternAutomaton[],
  text: string,
): { patternIndex: number; offset: number } | undefined {
  let patternIndex = Number.POSITIVE_INFINITY;
  let offset = 0;
  for (const { classes, next, begins, beginsFirst } of automata) {
    const width = next.length / begins.length;
    let state = 0;
    for (let at = Math.min(text.length, PROMPT_SCAN_CHARS) - 1; at >= 0; at -= 1) {
      state = next[state * width + (classes[columnOf(text.charCodeAt(at))] as number)] as number;
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

/** The place of a character in the alphabet. */
function columnOf(code: number): number {
  if (code >= 32) return code - 29;
  return code === 9 ? 0 : code === 10 ? 1 : 2;
}
