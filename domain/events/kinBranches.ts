import type { Pace, Steps } from '../steps.js';
import { NO_PARENT } from './ancestry.js';
import { DisjointSets } from './disjointSets.js';
import { type SpanTree, WALK_STEPS_MAX } from './spanTree.js';

const WORK_OF_CALL = 64;
const NONE = -1;

/** A call inside an outer one. */
export interface InnerCall {
  index: number;
  node: number;
  /** Equal for calls that are known to be one already. */
  group: number;
}

/**
 * Puts calls together that are one already, or of which one lies inside the other. A branch lists its calls from the
 * one that was taken up last, and the branches stand in the order in which they were last joined.
 *
 * The calls are taken up one by one, and each walks up its trace once, not farther than kinship goes. A call above it
 * that is still to come is left a note; the nearest one that has been taken up ends the walk, since it has left notes
 * above itself.
 *
 * @param places a list as long as the tree, filled with -1; it is so again when the work is done.
 */
export function* kinBranches(
  inners: readonly InnerCall[],
  tree: SpanTree,
  places: Int32Array,
  pace: Pace,
): Steps<number[][]> {
  const [only] = inners;
  if (only !== undefined && inners.length === 1) return [[only.index]];
  for (const [at, { node }] of inners.entries()) places[node] = at;
  const branches = new Branches(inners.length);
  const notes = new Notes(inners.length);
  const placeByGroup = new Map<number, number>();
  for (const [at, { node, group }] of inners.entries()) {
    const kin: number[] = [];
    const sameGroup = placeByGroup.get(group);
    if (sameGroup === undefined) placeByGroup.set(group, at);
    else kin.push(sameGroup);
    for (const below of notes.of(at)) kin.push(below);
    let above = tree.parentOf(node);
    let step = 0;
    for (; step < WALK_STEPS_MAX && above !== NO_PARENT && above !== node; step += 1) {
      const place = places[above] as number;
      if (place !== NONE && place < at) {
        kin.push(place);
        break;
      }
      if (place !== NONE) notes.leave(place, at);
      above = tree.parentOf(above);
    }
    branches.add(at, kin);
    if (pace.isDue(step + WORK_OF_CALL)) yield;
  }
  for (const { node } of inners) places[node] = NONE;
  return branches.list().map((branch) => branch.map((at) => (inners[at] as InnerCall).index));
}

/** Places that were left at places that are still to come. */
class Notes {
  readonly #first: number[];
  readonly #next: number[] = [];
  readonly #who: number[] = [];

  constructor(count: number) {
    this.#first = new Array(count).fill(NONE);
  }

  leave(place: number, who: number): void {
    this.#next.push(this.#first[place] as number);
    this.#who.push(who);
    this.#first[place] = this.#who.length - 1;
  }

  *of(place: number): Generator<number> {
    for (let at = this.#first[place] as number; at !== NONE; at = this.#next[at] as number)
      yield this.#who[at] as number;
  }
}

/** Branches as chains of places, so that two are joined without copying either. */
class Branches {
  readonly #sets: DisjointSets;
  /** By what the sets find: when it was last joined, its first place and its last one. */
  readonly #joinedAt: number[] = [];
  readonly #first: number[] = [];
  readonly #last: number[] = [];
  /** By place: the one behind it. */
  readonly #next: number[];

  constructor(count: number) {
    this.#sets = new DisjointSets(count);
    this.#next = new Array(count).fill(NONE);
  }

  /** Adds the next place in front of the branches of its kin. */
  add(place: number, kin: readonly number[]): void {
    const found = [...new Set(kin.map((other) => this.#sets.find(other)))];
    if (found.length > 1) found.sort((a, b) => (this.#joinedAt[a] as number) - (this.#joinedAt[b] as number));
    let last = place;
    for (const branch of found) {
      this.#next[last] = this.#first[branch] as number;
      last = this.#last[branch] as number;
    }
    for (const branch of found) this.#sets.join(place, branch);
    const joined = this.#sets.find(place);
    this.#joinedAt[joined] = place;
    this.#first[joined] = place;
    this.#last[joined] = last;
  }

  list(): number[][] {
    const branches: number[][] = [];
    for (const place of this.#next.keys()) {
      // The place by which a branch was last joined is the first of its chain.
      const branch = this.#sets.find(place);
      if (this.#joinedAt[branch] !== place) continue;
      const chain: number[] = [];
      for (let at = place; at !== NONE; at = this.#next[at] as number) chain.push(at);
      branches.push(chain);
    }
    return branches;
  }
}
