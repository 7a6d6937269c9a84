/**
 * Days of a series are not judged one by one: an error mostly goes on. Forward–backward over the days, the states being
 * the explanations; on a day that an explanation does not show itself it fits as well as the null.
 */
import type { WeightSet } from '../weights/weightSet.js';
import { type DayState, type DayWork, NULL_STATE, type SeriesStates, type State } from './states.js';

/** For each day the probability of each state, in the order of the series' states. */
export function poolDays(
  { days, states }: SeriesStates,
  weights: WeightSet,
  refused: (state: State, at: number) => boolean,
): Float64Array[] {
  const priors = priorsOf(states);
  const emissions = days.map((day, at) => emissionsOf(day, states, (state) => refused(state, at)));
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
  return pooled;
}

function priorsOf(states: readonly State[]): Float64Array {
  const priors = new Float64Array(
    states.map((state) => (state === NULL_STATE ? 0 : Math.exp(state.logPrior))),
  );
  const rest = priors.reduce((total, prior) => total + prior, 0);
  priors[0] = Math.max(0.5, 1 - rest);
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
