import { compare } from '../../compare.js';
import { Pace, type Steps } from '../../steps.js';
import {
  type CallReport,
  canBeOneCall,
  compareRichness,
  traitsOf,
  wholeInput,
  wholeOutput,
} from '../callReport.js';
import { trustIn } from '../clients.js';
import type { CallRecord, TokenUsage } from '../event.js';

/**
 * Pairs reports of one process that two instrumentations made of one call without a common id (docs/decisions/0001).
 *
 * Reports of one scope are never paired with each other, and each counts or is paired with one report of another scope.
 * So n calls that both scopes report are n calls, also when equal calls run at once and nothing shows which two reports
 * belong together. In such a group always the same scope counts, so that no later report makes a superseded one count
 * again.
 */

const INPUT_FACTOR = 0x9e3779b97f4a7c15n;
const OUTPUT_FACTOR = 0xc2b2ae3d27d4eb4fn;

/**
 * A number that is equal for reports of one process with equal counts of input and output, and otherwise almost never;
 * null: the report cannot be one of a pair, since its process, scope or usage is unknown. Of two reports with equal
 * counts the numbers are equal only if their processes' hashes are.
 */
export function pairKeyOf({ process, scopeName, usage, status }: PairedCall): bigint | null {
  if (process === null || scopeName === '' || usage === null || status === 'blocked') return null;
  const [input, output] = [wholeInput(usage), wholeOutput(usage)];
  if (input + output === 0) return null;
  const counts = BigInt(input) * INPUT_FACTOR + BigInt(output) * OUTPUT_FACTOR;
  return BigInt.asIntN(64, process.hash ^ counts);
}

type PairedCall = Pick<CallRecord, 'process' | 'scopeName' | 'usage' | 'status'>;

/** The pair key of a report whose process other requests can name too; null: there is none. */
export function lastingPairKeyOf(call: PairedCall): bigint | null {
  return call.process?.isIdentified === true ? pairKeyOf(call) : null;
}

/** Microseconds by which the inner interval may begin before the outer one, or end after it. */
export const PAIR_TOLERANCE_MICROS = 50_000n;
/** Most reports of one process with equal counts at one time that are compared with each other. */
const COMPARED_MAX = 512;
const WORK_OF_COMPARISON = 24;
const WORK_OF_REPORT = 256;

/** A report that is not blocked and has usage. Reports that are paired with each other have one process. */
export interface PairableReport {
  id: string;
  call: CallReport;
  /** The report that it was paired with before and that counts instead of it; null: it counts itself. */
  pairedWith: string | null;
  /** Other scopes whose report of this call is known by an id. */
  takenScopes: readonly string[];
}

/** Two reports of one call. */
export interface ReportPair {
  /** Counts no more. */
  loserId: string;
  /** Counts for the call. */
  winnerId: string;
}

/** Whether two reports can be of one call; their processes are known to be the same. */
export function canBePaired(one: CallReport, other: CallReport): boolean {
  return (
    one.scopeName !== other.scopeName &&
    one.provider === other.provider &&
    (one.responseId === null || other.responseId === null) &&
    isNested(one, other) &&
    canBeOneCall(traitsOf(one), traitsOf(other)) &&
    hasEqualUsage(one, other)
  );
}

function isNested(one: CallReport, other: CallReport): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

function isWithin(inner: CallReport, outer: CallReport): boolean {
  return (
    inner.startMicros >= outer.startMicros - PAIR_TOLERANCE_MICROS &&
    inner.endMicros <= outer.endMicros + PAIR_TOLERANCE_MICROS
  );
}

/** Whether all counts are equal that both clients can report. */
function hasEqualUsage(one: CallReport, other: CallReport): boolean {
  if (one.usage === null || other.usage === null) return false;
  if (wholeInput(one.usage) !== wholeInput(other.usage)) return false;
  if (wholeOutput(one.usage) !== wholeOutput(other.usage)) return false;
  const missing = new Set([...one.origin.usageMissing, ...other.origin.usageMissing]);
  const isEqual = (name: string, count: (usage: TokenUsage) => number) =>
    missing.has(name) || count(one.usage as TokenUsage) === count(other.usage as TokenUsage);
  return (
    isEqual('cache_read', ({ cacheRead }) => cacheRead) &&
    isEqual('cache_write_5m', ({ cacheCreation }) => cacheCreation) &&
    isEqual('audio', ({ inputAudio }) => inputAudio) &&
    isEqual('audio', ({ outputAudio }) => outputAudio) &&
    isEqualWhereKnown(one.usage.cacheCreation1h, other.usage.cacheCreation1h)
  );
}

function isEqualWhereKnown(one: number | null, other: number | null): boolean {
  return one === null || other === null || one === other;
}

/**
 * Order of reports of two scopes, the one that counts last: with a response id, with more classes, of the more trusted
 * convention. It does not depend on times, so that of equal calls always the reports of one scope count.
 */
export function compareScopes(one: CallReport, other: CallReport): number {
  return (
    compareRichness(one, other) ||
    trustIn(one.origin.usageSource) - trustIn(other.origin.usageSource) ||
    compare(other.scopeName, one.scopeName)
  );
}

/**
 * The new pairs among reports with one pair key: as many as possible, one to one for each two scopes, in order of start.
 * Earlier pairs stay. Where one of them occupies the only partner of a report, the report is paired with the partner that
 * the earlier pair could have had: which of equal calls each report is of, nothing shows.
 */
export function* pairReports(
  reports: readonly PairableReport[],
  pace: Pace = new Pace(),
): Steps<ReportPair[]> {
  const pairs: ReportPair[] = [];
  const ordered = [...reports].sort(compareStarts);
  let cluster: PairableReport[] = [];
  let endMicros = 0n;
  for (const report of ordered) {
    const isApart = report.call.startMicros > endMicros + PAIR_TOLERANCE_MICROS;
    if (cluster.length > 0 && (isApart || cluster.length === COMPARED_MAX)) {
      pairs.push(...(yield* pairCluster(cluster, pace)));
      cluster = [];
      endMicros = 0n;
    }
    cluster.push(report);
    if (report.call.endMicros > endMicros) endMicros = report.call.endMicros;
    if (pace.isDue(WORK_OF_REPORT)) yield;
  }
  pairs.push(...(yield* pairCluster(cluster, pace)));
  return pairs;
}

function compareStarts(
  { call: one, id }: PairableReport,
  { call: other, id: otherId }: PairableReport,
): number {
  return (
    compare(one.startMicros, other.startMicros) ||
    compare(one.endMicros, other.endMicros) ||
    compare(id, otherId)
  );
}

/** Pairs reports that overlap, each scope with all that rank above it, from the highest one down. */
function* pairCluster(cluster: readonly PairableReport[], pace: Pace): Steps<ReportPair[]> {
  const scopes = scopesByRank(cluster);
  if (scopes.length < 2) return [];
  const winnerOf = new Map<string, string>();
  for (const { id, pairedWith } of cluster) if (pairedWith !== null) winnerOf.set(id, pairedWith);
  const pairs: ReportPair[] = [];
  for (const scope of scopes) {
    const losers = cluster.filter(({ call }) => call.scopeName === scope);
    const winners = cluster.filter(({ call, id }) => call.scopeName !== scope && !winnerOf.has(id));
    const matching = new Matching(losers, winners, knownScopes(cluster, winnerOf, scope), winnerOf);
    yield* matching.complete(pace);
    for (const pair of matching.newPairs()) {
      winnerOf.set(pair.loserId, pair.winnerId);
      pairs.push(pair);
    }
  }
  return pairs;
}

/**
 * The scopes that have a report of each call: its own, those known by an id, and those of its pairs, except pairs with
 * `movable`, which may move.
 */
function knownScopes(
  cluster: readonly PairableReport[],
  winnerOf: ReadonlyMap<string, string>,
  movable: string,
): ReadonlyMap<string, ReadonlySet<string>> {
  const known = new Map(
    cluster.map(({ id, call, takenScopes }) => [id, new Set([call.scopeName, ...takenScopes])]),
  );
  for (const { id, call } of cluster) {
    if (winnerOf.has(id) && call.scopeName !== movable) known.get(endOf(id, winnerOf))?.add(call.scopeName);
  }
  return known;
}

/** The scopes of the reports, the scope of the report that would count first. */
function scopesByRank(cluster: readonly PairableReport[]): string[] {
  const best = new Map<string, CallReport>();
  for (const { call } of cluster) {
    const known = best.get(call.scopeName);
    if (known === undefined || compareScopes(call, known) > 0) best.set(call.scopeName, call);
  }
  return [...best].sort(([, one], [, other]) => compareScopes(other, one)).map(([scope]) => scope);
}

const NONE = -1;

/** A one-to-one matching of the reports of one scope, the losers, with reports that rank above them. */
class Matching {
  readonly #losers: readonly PairableReport[];
  readonly #winners: readonly PairableReport[];
  /** By loser: the winner, and the winner before; by winner: the loser. */
  readonly #winnerOf: number[];
  readonly #before: readonly number[];
  readonly #loserOf: number[];
  /** By loser: winners that it can be paired with, in order of start. */
  readonly #choices: (readonly number[] | undefined)[] = [];
  readonly #scopesOf: ReadonlyMap<string, ReadonlySet<string>>;

  constructor(
    losers: readonly PairableReport[],
    winners: readonly PairableReport[],
    scopesOf: ReadonlyMap<string, ReadonlySet<string>>,
    winnerOf: ReadonlyMap<string, string>,
  ) {
    this.#losers = losers;
    this.#winners = winners;
    const places = new Map(winners.map(({ id }, at) => [id, at]));
    this.#loserOf = winners.map(() => NONE);
    this.#scopesOf = scopesOf;
    this.#before = losers.map(({ id }) => {
      const winner = winnerOf.get(id);
      return winner === undefined ? NONE : (places.get(endOf(winner, winnerOf)) ?? NONE);
    });
    this.#winnerOf = [...this.#before];
    this.#before.forEach((winner, loser) => {
      if (winner !== NONE) this.#loserOf[winner] = loser;
    });
  }

  /** Pairs as many losers as possible. */
  *complete(pace: Pace): Steps<void> {
    for (const [loser, { pairedWith }] of this.#losers.entries()) {
      if (this.#winnerOf[loser] !== NONE || pairedWith !== null) continue;
      yield* this.#augment(loser, pace);
    }
  }

  /** The new pairs; losers of moved pairs keep their winner, and leave theirs in the matching to the new loser. */
  newPairs(): ReportPair[] {
    const before = new Set(this.#before);
    const added = this.#losers.flatMap((_, loser) =>
      this.#before[loser] === NONE && this.#winnerOf[loser] !== NONE ? [loser] : [],
    );
    const isFree = (winner: number) => this.#loserOf[winner] !== NONE && !before.has(winner);
    const direct = new Map(
      added.flatMap((loser) => {
        const winner = this.#winnerOf[loser] as number;
        return isFree(winner) ? [[loser, winner] as const] : [];
      }),
    );
    const used = new Set(direct.values());
    const left = [...this.#winners.keys()].filter((winner) => isFree(winner) && !used.has(winner)).values();
    return added.map((loser) => {
      const winner = direct.get(loser) ?? (left.next().value as number);
      return {
        loserId: (this.#losers[loser] as PairableReport).id,
        winnerId: (this.#winners[winner] as PairableReport).id,
      };
    });
  }

  /** Looks for a free winner, breadth first: that of a loser is free if the loser can take another one. */
  *#augment(start: number, pace: Pace): Steps<void> {
    const from = new Map<number, number>();
    const queue = [start];
    for (const loser of queue) {
      for (const winner of this.#choicesOf(loser)) {
        if (from.has(winner)) continue;
        from.set(winner, loser);
        const holder = this.#loserOf[winner] as number;
        if (holder === NONE) {
          this.#assign(winner, from, start);
          return;
        }
        queue.push(holder);
      }
      if (pace.isDue(this.#winners.length * WORK_OF_COMPARISON)) yield;
    }
  }

  /** Assigns each winner of the path to the loser from which it was reached. */
  #assign(free: number, from: ReadonlyMap<number, number>, start: number): void {
    for (let winner = free; ; ) {
      const loser = from.get(winner) as number;
      const left = this.#winnerOf[loser] as number;
      this.#winnerOf[loser] = winner;
      this.#loserOf[winner] = loser;
      if (loser === start) return;
      winner = left;
    }
  }

  #choicesOf(loser: number): readonly number[] {
    const known = this.#choices[loser];
    if (known !== undefined) return known;
    const { id, call } = this.#losers[loser] as PairableReport;
    const own = this.#scopesOf.get(id) as ReadonlySet<string>;
    const choices = this.#winners.flatMap((winner, at) => {
      const others = this.#scopesOf.get(winner.id) as ReadonlySet<string>;
      const isOther = ![...own].some((scope) => others.has(scope));
      return isOther && compareScopes(winner.call, call) > 0 && canBePaired(call, winner.call) ? [at] : [];
    });
    this.#choices[loser] = choices;
    return choices;
  }
}

function endOf(id: string, winnerOf: ReadonlyMap<string, string>): string {
  let at = id;
  for (let step = 0; step <= winnerOf.size; step += 1) {
    const next = winnerOf.get(at);
    if (next === undefined) return at;
    at = next;
  }
  return at;
}
