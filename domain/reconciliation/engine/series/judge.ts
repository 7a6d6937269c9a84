/**
 * Days of a series are not judged one by one: an error mostly goes on. Forward–backward over the days, the states being
 * the explanations; on a day that an explanation does not show itself it fits as well as the null.
 */

import { absPico, type Pico } from '../../../money.js';
import { tolerancePico } from '../../matching/classLines.js';
import type { WeightSet } from '../../weights/weightSet.js';
import { NULL_PRIOR_MIN, REFUSALS_MAX, RIVAL_MIN, UNKNOWN_DAY } from '../calibration.js';
import { canLast, type SeriesContext } from '../causes/cause.js';
import { type DayParts, impactOf, type MeterImpact, NO_PARTS, partsOf } from './dollars.js';
import { historyOf, isCheaperUse, isNoFactor, isRuledOutByHistory, missesCounts } from './doubts.js';
import type { Aspect } from './fit.js';
import { FEWER_SEEN, fewerSeen, lacksCalls } from './seenLess.js';
import { type DayState, type DayWork, NULL_STATE, type SeriesStates, type State } from './states.js';

/**
 * The probability of each state on each day, in the order of the series' states. Something unknown does not persist: it
 * takes a day by itself, and the former state continues beneath it. With amounts alone the unknown part of a day is not
 * visible, so something unknown persists as any other state does.
 */
export function poolDays(
  { aspect, days, states, unknown }: SeriesStates,
  weights: WeightSet,
  refused: (state: State, at: number) => boolean,
): Float64Array[] {
  const open = aspect === 'amounts' ? -1 : states.indexOf(unknown);
  const priors = priorsOf(states, open);
  const known = days.map((day, at) => emissionsOf(day, states, (state) => refused(state, at)));
  const taken = known.map((emission, at) =>
    days[at]?.isOdd && open >= 0 ? UNKNOWN_DAY * (emission[open] ?? 0) : 0,
  );
  const emissions = known.map((emission, at) => emission.map((p) => p + (taken[at] ?? 0)));
  const forward: Float64Array[] = [];
  let before = priors;
  for (const emission of emissions) {
    before = normalised(stepped(before, priors, weights.stay).map((p, at) => p * (emission[at] ?? 0)));
    forward.push(before);
  }
  const pooled: Float64Array[] = [];
  let after: Float64Array = new Float64Array(states.length).fill(1);
  for (let at = days.length - 1; at >= 0; at -= 1) {
    pooled[at] = normalised((forward[at] ?? priors).map((p, state) => p * (after[state] ?? 0)));
    const seen = after.map((p, state) => p * (emissions[at]?.[state] ?? 0));
    after = normalised(steppedBack(seen, priors, weights.stay));
  }
  if (open < 0) return pooled;
  return pooled.map((day, at) => withUnknown(day, known[at] ?? day, taken[at] ?? 0, open));
}

/** Takes from each state the part of its day that something unknown gives as well. */
function withUnknown(day: Float64Array, known: Float64Array, taken: number, open: number): Float64Array {
  let unknown = 0;
  const rest = day.map((p, state) => {
    const own = known[state] ?? 0;
    const part = own + taken > 0 ? (p * taken) / (own + taken) : 0;
    unknown += part;
    return p - part;
  });
  rest[open] = unknown;
  return rest;
}

function priorsOf(states: readonly State[], open: number): Float64Array {
  const priors = new Float64Array(
    states.map((state, at) => (state === NULL_STATE || at === open ? 0 : Math.exp(state.logPrior))),
  );
  const rest = priors.reduce((total, prior) => total + prior, 0);
  priors[0] = Math.max(NULL_PRIOR_MIN, 1 - rest);
  return normalised(priors);
}

/** Likelihoods of a day, the best 1. */
function emissionsOf(
  day: DayWork,
  states: readonly State[],
  isRefused: (state: State) => boolean,
): Float64Array {
  if (!day.reading.judged) return new Float64Array(states.length).fill(1);
  const none = logOf(day.states.get(NULL_STATE));
  const logs = states.map((state) =>
    isRefused(state) ? Number.NEGATIVE_INFINITY : logOf(day.states.get(state), none),
  );
  const best = Math.max(...logs);
  return new Float64Array(logs.map((log) => Math.exp(log - best)));
}

const logOf = (state: DayState | undefined, otherwise = 0): number =>
  state ? state.fit.rate + state.fit.quantity : otherwise;

/** One day on: stays, or begins anew by the priors. */
function stepped(from: Float64Array, priors: Float64Array, stay: number): Float64Array {
  return from.map((p, state) => stay * p + (1 - stay) * (priors[state] ?? 0));
}

function steppedBack(seen: Float64Array, priors: Float64Array, stay: number): Float64Array {
  let anew = 0;
  seen.forEach((p, state) => {
    anew += p * (priors[state] ?? 0);
  });
  return seen.map((p) => stay * p + (1 - stay) * anew);
}

function normalised(values: Float64Array): Float64Array {
  const total = values.reduce((sum, value) => sum + value, 0);
  return total > 0 ? values.map((value) => value / total) : values.fill(1 / values.length);
}

/** A day under the explanation that was chosen for it. */
export interface JudgedDay {
  readonly aspect: Aspect;
  readonly work: DayWork;
  readonly state: State;
  /** Undefined where the explanation does not show itself on the day. */
  readonly shown: DayState | undefined;
  readonly parts: DayParts;
  /** By kind, of the pooled days and of the day alone. */
  readonly pooled: ReadonlyMap<State['kind'], number>;
  readonly alone: number;
}

export interface RunOfDays {
  readonly state: State;
  readonly days: readonly { judged: JudgedDay; impacts: readonly MeterImpact[]; impactPico: Pico }[];
}

export function judgeDays(series: SeriesStates, context: SeriesContext, weights: WeightSet): JudgedDay[] {
  const refused = new Set<string>();
  const isRefused = (state: State, at: number) => refused.has(`${series.states.indexOf(state)}|${at}`);
  let judged: JudgedDay[] = [];
  for (let round = 0; round <= REFUSALS_MAX; round += 1) {
    const pooled = poolDays(series, weights, isRefused);
    judged = series.days.map((work, at) => judge(series, work, pooled[at] ?? new Float64Array()));
    let changed = false;
    for (const run of runsOf(judged)) {
      const days = run.days.map(({ judged: one }) => one.work.reading.day.day);
      const span = { firstDay: days[0] ?? '', lastDay: days.at(-1) ?? '' };
      const history = historyOf(run, judged);
      for (const state of rivalsOf(run, series.states)) {
        const cannotLast = state.hypothesis && !canLast(state.hypothesis, state.traits, span, context);
        const isRuledOut = isRuledOutByHistory(state, run, history, context.hasContract);
        const isNot =
          (state.kind === run.state.kind && isCheaperUse(run)) ||
          (state === run.state && (missesCounts(run) || isLonePart(run) || isNoFactor(run, judged)));
        if (!cannotLast && !isRuledOut && !isNot) continue;
        series.days.forEach((work, at) => {
          const { day } = work.reading.day;
          const key = `${series.states.indexOf(state)}|${at}`;
          if (day < span.firstDay || day > span.lastDay || refused.has(key)) return;
          changed = true;
          refused.add(key);
        });
      }
    }
    if (!changed) break;
  }
  return judged;
}

/**
 * One day of which some part was charged so, beside none that was as a whole: some part of some mistake gives any
 * amount.
 */
const isLonePart = ({ days }: RunOfDays): boolean =>
  days.length === 1 && days.every(({ judged }) => judged.shown?.isPartial === true);

/** A run's explanation, and those that could be it: each has to be able to last as the run does. */
function rivalsOf(run: RunOfDays, states: readonly State[]): State[] {
  return states.filter(
    (state) =>
      state.hypothesis && run.days.some(({ judged }) => (judged.pooled.get(state.kind) ?? 0) > RIVAL_MIN),
  );
}

function judge(series: SeriesStates, work: DayWork, pooled: Float64Array): JudgedDay {
  const byKind = new Map<State['kind'], number>();
  series.states.forEach((state, at) => {
    byKind.set(state.kind, (byKind.get(state.kind) ?? 0) + (pooled[at] ?? 0));
  });
  let kind: State['kind'] = 'none';
  for (const [one, p] of byKind) if (p > (byKind.get(kind) ?? 0)) kind = one;
  let state = NULL_STATE;
  let most = -1;
  series.states.forEach((one, at) => {
    if (one.kind !== kind || (pooled[at] ?? 0) <= most) return;
    state = one;
    most = pooled[at] ?? 0;
  });
  const canBeFewer = kind === 'none' || (kind === 'unexplained' && lacksCalls(work, series.noise));
  const fewer = canBeFewer && series.aspect === 'counts' ? fewerSeen(work, series.noise) : undefined;
  if (fewer) return judgedAsFewer(series, work, byKind, fewer);
  const shown = work.states.get(state);
  const isTold = work.reading.judged && kind !== 'none';
  return {
    aspect: series.aspect,
    work,
    state,
    shown,
    parts: isTold ? worthTelling(work, partsOf(series.aspect, work, shown, series.noise)) : NO_PARTS,
    pooled: byKind,
    alone: aloneOf(series, work, kind),
  };
}

/** Nothing is wrong with the bill; the finding is that the rest of it was not seen. */
function judgedAsFewer(
  series: SeriesStates,
  work: DayWork,
  byKind: ReadonlyMap<State['kind'], number>,
  fewer: DayState,
): JudgedDay {
  const { kind } = FEWER_SEEN;
  const pooled = new Map(byKind);
  const unnamed = (byKind.get('none') ?? 0) + (byKind.get('unexplained') ?? 0);
  pooled.set(kind, (byKind.get(kind) ?? 0) + unnamed);
  pooled.set('none', 0);
  pooled.set('unexplained', 0);
  // All unobserved usage of the bill, whatever share of it is usual.
  const whole: DayState = { ...fewer, fit: { ...fewer.fit, coverage: 1 } };
  const { explained } = worthTelling(work, partsOf(series.aspect, work, whole, series.noise));
  return {
    aspect: series.aspect,
    work,
    state: FEWER_SEEN,
    shown: fewer,
    parts: { explained, unexplained: [] },
    pooled,
    alone: aloneOf(series, work, 'none'),
  };
}

/** Up to the tolerance that bill and calls are equal within, a difference is none. */
function worthTelling({ reading }: DayWork, { explained, unexplained }: DayParts): DayParts {
  const rounding = reading.meters.reduce((total, one) => total + one.of.meter.roundingPico, 0n);
  const tolerance = tolerancePico(BigInt(Math.round(reading.billedAmount)), rounding);
  const kept = (parts: readonly MeterImpact[]) => (absPico(impactOf(parts)) > tolerance ? parts : []);
  return { explained: kept(explained), unexplained: kept(unexplained) };
}

/** Probability of a kind by the day alone. */
function aloneOf(series: SeriesStates, work: DayWork, kind: State['kind']): number {
  if (!work.reading.judged) return 0;
  const logs = series.states.map((state) => {
    const day = work.states.get(state);
    return day ? day.fit.rate + day.fit.quantity + state.logPrior : Number.NEGATIVE_INFINITY;
  });
  const best = Math.max(...logs);
  let [own, all] = [0, 0];
  series.states.forEach((state, at) => {
    const weight = Math.exp((logs[at] ?? best) - best);
    all += weight;
    if (state.kind === kind) own += weight;
  });
  return all > 0 ? own / all : 0;
}

/** Runs of named explanations, in the order of their first days. A day at which nothing shows does not end one. */
export function runsOf(judged: readonly JudgedDay[]): RunOfDays[] {
  return collect(judged, (one) => (one.state.hypothesis ? one.parts.explained : []), false);
}

/** Runs of what nothing explains; a day on which all is explained ends one. */
export function unexplainedRunsOf(judged: readonly JudgedDay[]): RunOfDays[] {
  return collect(judged, (one) => one.parts.unexplained, true);
}

type OpenRun = { state: State; days: RunOfDays['days'][number][] };

function collect(
  judged: readonly JudgedDay[],
  impactsOf: (one: JudgedDay) => readonly MeterImpact[],
  endsAtNothing: boolean,
): RunOfDays[] {
  const runs: OpenRun[] = [];
  let open: OpenRun | undefined;
  // Days of fewer calls are no explanation of their own: what holds before them holds after them.
  let fewer: OpenRun | undefined;
  for (const one of judged) {
    const impacts = impactsOf(one);
    const impactPico = impactOf(impacts);
    const state = endsAtNothing ? NULL_STATE : one.state;
    const isFewer = state === FEWER_SEEN;
    if (impactPico === 0n) {
      const isNothing = endsAtNothing && one.work.reading.judged;
      if (isNothing || (open && open.state !== state && !interruptsNothing(one))) open = undefined;
      if (isNothing || !isFewer) fewer = undefined;
      continue;
    }
    const of = isFewer ? fewer : open;
    const last = of?.days.at(-1);
    const goesOn = of && of.state === state && last && last.impactPico > 0n === impactPico > 0n;
    const run: OpenRun = goesOn ? of : { state, days: [] };
    if (!goesOn) runs.push(run);
    if (isFewer) fewer = run;
    else [open, fewer] = [run, undefined];
    run.days.push({ judged: one, impacts, impactPico });
  }
  return runs;
}

/** A day that nothing explains, or of which only fewer calls were seen, does not end what holds before and after it. */
const interruptsNothing = ({ state }: JudgedDay): boolean =>
  state === FEWER_SEEN || state.kind === 'unexplained';
