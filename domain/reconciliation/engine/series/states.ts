/**
 * The explanations of a series and how well each fits each day: the null (nothing is wrong), something unknown, and every
 * variant of every hypothesis that any day makes worth considering.
 */

import type { FindingKind } from '../../taxonomy.js';
import type { WeightSet } from '../../weights/weightSet.js';
import {
  CONTRADICTED,
  DOES_NOT_GIVE,
  KEPT_LOG,
  NOT_NAMED,
  NOTHING_SHOWS,
  NULL_IS_FINE,
  ODDS_MIN,
  OPEN_FLOORS,
  SAME_REPORTS,
  SEEN_ALONE,
  SHARP_FLOORS,
  SOME_PART,
  SURE_ROUNDINGS,
  UNKNOWN_DAY,
  UNSEEN_PRIOR,
  UNUSED_TIER,
} from '../calibration.js';
import {
  BATCH,
  type Hypothesis,
  lineKey,
  type MeterDay,
  type SeriesContext,
  type Traits,
  type Variant,
} from '../causes/cause.js';
import { seenUses } from '../causes/moves.js';
import { amountAs } from '../causes/predict.js';
import {
  type Aspect,
  asCharged,
  type Fit,
  fitOf,
  fitsOf,
  median,
  partialFit,
  rateFit,
  type SeriesNoise,
} from './fit.js';
import { CENT, type DayReading, type Prediction, predict, rightPrediction } from './reading.js';
import { fitUnseen } from './unseen.js';

export interface State {
  readonly kind: FindingKind | 'none';
  /** Name of the variant, for people. */
  readonly variant: string;
  readonly traits: Traits;
  /** Null for the null and for something unknown. */
  readonly hypothesis: Hypothesis | null;
  /** Log prior of a day, the kind's shared by its variants. */
  readonly logPrior: number;
}

/** A state on a day. */
export interface DayState {
  readonly fit: Fit;
  readonly prediction: Prediction;
  /** Null where the state predicts the same as the null. */
  readonly variant: Variant | null;
  /** Only a part of the day was charged by it, and no hours show which. */
  readonly isPartial?: true;
}

export interface DayWork {
  readonly reading: DayReading;
  readonly right: Prediction;
  readonly states: ReadonlyMap<State, DayState>;
  /** Something deviates that the null does not give. */
  readonly isOdd: boolean;
}

export interface SeriesStates {
  readonly aspect: Aspect;
  /** Something that no explanation knows: what is left of a day, whatever the days beside it show. */
  readonly unknown: State;
  readonly noise: SeriesNoise;
  readonly states: readonly State[];
  readonly days: readonly DayWork[];
}

export const NULL_STATE: State = { kind: 'none', variant: '', traits: {}, hypothesis: null, logPrior: 0 };

/**
 * Nothing is wrong, and for some days another share of the calls was seen than usual. It competes with the null where the
 * bill has amounts alone: one ratio common to all of them is the effect of missing calls, whatever mistake has it too. How
 * far each class strays from it goes by the number of calls, every day anew; but for calls that repeat those that were seen,
 * whose ratio is a whole number and whose mixture is theirs (docs/decisions/0016).
 */
function addUnseen(drafts: readonly Draft[], noise: SeriesNoise): State[] {
  if (drafts.every(({ reading }) => reading.depth === 'quantities')) return [];
  const fits = drafts.map(({ reading, right }) => fitUnseen(reading, right, noise));
  const wonders = fits.flatMap(({ wonder }, at) => (drafts[at]?.isOdd ? [wonder] : []));
  const unseen = { kind: 'none', traits: {}, hypothesis: null } as const;
  const prior = Math.log(UNSEEN_PRIOR);
  const any: State = { ...unseen, variant: 'not_seen', logPrior: prior };
  const wonder = wonders.length > 0 ? median(wonders) : 0;
  const alike: State = { ...unseen, variant: 'not_seen_alike', logPrior: prior - wonder };
  drafts.forEach(({ reading, right, states, isOdd }, at) => {
    const fit = fits[at];
    if (!fit || reading.depth === 'quantities') return;
    // Days of the usual share are the null's: what goes on over them would be no matter of some days.
    const shows = (one: Fit): Fit => (isOdd ? one : { ...one, rate: one.rate + NOTHING_SHOWS });
    states.set(any, { fit: shows(fit.any), prediction: right, variant: null });
    states.set(alike, { fit: shows(fit.alike), prediction: right, variant: null });
  });
  return [any, alike];
}

export interface StatesInput {
  readonly aspect: Aspect;
  readonly readings: readonly DayReading[];
  /** The bill of each day if nothing is wrong. */
  readonly rights: readonly Prediction[];
  readonly library: readonly Hypothesis[];
  readonly context: SeriesContext;
  readonly noise: SeriesNoise;
  readonly weights: WeightSet;
}

export function statesOf(input: StatesInput): SeriesStates {
  const { aspect, readings, rights, library, context, noise, weights } = input;
  const hypotheses = library.filter(({ nature }) => aspect === 'amounts' || ASPECT_OF[nature] === aspect);
  const unknown: State = {
    kind: 'unexplained',
    variant: '',
    traits: {},
    hypothesis: null,
    logPrior: Math.log(weights.unexplainedPrior),
  };
  const drafts = readings.map((reading, at) =>
    draftOf(aspect, reading, rights[at] ?? rightPrediction(reading), noise, unknown),
  );
  markEdges(drafts);
  const byKey = new Map<string, State>();
  const used = usedTiers(readings);
  const tries = new Map<Draft, readonly Try[]>();
  for (const draft of drafts) {
    if (!draft.isOdd) continue;
    const own = triesOf(draft, hypotheses, context, noise);
    tries.set(draft, own);
    const tried = own.map(([key, hypothesis, variant, shown]) => {
      const state = byKey.get(key) ?? stateOf(hypothesis, variant, weights, used);
      return { key, state, score: scoreOf(shown) + state.logPrior };
    });
    const best = Math.max(draft.bestScore, ...tried.map(({ score }) => score));
    for (const { key, state, score } of tried) if (score >= best + KEPT_LOG) byKey.set(key, state);
  }
  if (byKey.size > 0) {
    const kept = new Set([...byKey.values()].map((state) => state.hypothesis));
    const asked = hypotheses.filter((one) => kept.has(one));
    for (const draft of drafts.filter(({ reading }) => reading.judged))
      for (const [key, hypothesis, , shown] of tries.get(draft) ?? triesOf(draft, asked, context, noise)) {
        const state = byKey.get(key);
        if (state && kept.has(hypothesis)) draft.states.set(state, shown);
      }
    refuteUnsaid(drafts, [...byKey.values()]);
    if (aspect !== 'rates') for (const draft of drafts) contradict(draft, asked, context);
  }
  const states = [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, state]) => state);
  return {
    aspect,
    unknown,
    noise,
    states: [NULL_STATE, unknown, ...addUnseen(drafts, noise), ...states],
    days: drafts,
  };
}

const ASPECT_OF = { rate: 'rates', quantity: 'counts' } as const;

const scoreOf = (state: DayState): number => state.fit.rate + state.fit.quantity;

/**
 * A hypothesis without a prediction on a day whose bill has the very meters that it explained on other days is
 * refuted there; without them it is out of sight.
 */
function refuteUnsaid(drafts: readonly Draft[], states: readonly State[]): void {
  for (const state of states) {
    const spokenOf = new Set<string>();
    for (const { reading, states: known } of drafts) {
      const variant = known.get(state)?.variant;
      if (variant)
        for (const one of reading.meters) if (variant.touches(one.of)) spokenOf.add(lineKey(one.of));
    }
    for (const draft of drafts) {
      if (!draft.reading.judged || draft.states.has(state)) continue;
      if (!draft.reading.meters.some((one) => one.value > CENT && spokenOf.has(lineKey(one.of)))) continue;
      const none = draft.states.get(NULL_STATE);
      if (none) draft.states.set(state, { ...none, fit: { ...none.fit, rate: none.fit.rate + REFUTED } });
    }
  }
}

/**
 * Where the provider's own usage report counts otherwise than its bill does, unobserved calls are no answer: they would
 * be in both. Only explanations that rest on that report account for it.
 */
function contradict(draft: Draft, hypotheses: readonly Hypothesis[], context: SeriesContext): void {
  const { reading } = draft;
  const isApart = hypotheses
    .filter((one) => one.needs.includes('usage_report') && one.nature === 'quantity')
    .flatMap((one) => one.variants(reading.day, context))
    .some((variant) =>
      reading.meters.some(({ of, observed, value }) => {
        const counted = Number(variant.quantityOf(of) ?? of.observed);
        return value > CENT && Math.abs(counted - observed) > SAME_REPORTS * Math.max(counted, observed);
      }),
    );
  if (!isApart || !reading.judged) return;
  for (const [state, { fit, ...rest }] of draft.states) {
    if (state.hypothesis?.needs.includes('usage_report')) continue;
    draft.states.set(state, { ...rest, fit: { ...fit, quantity: fit.quantity + CONTRADICTED } });
  }
}

/** As little as one wrong amount leaves. */
const REFUTED = SHARP_FLOORS.rate;

interface Draft extends DayWork {
  readonly aspect: Aspect;
  /** Of the null, before it was cut to the aspect. */
  readonly nullRate: number;
  readonly states: Map<State, DayState>;
  readonly bestScore: number;
  isEdge: boolean;
}

function draftOf(
  aspect: Aspect,
  reading: DayReading,
  right: Prediction,
  noise: SeriesNoise,
  unknown: State,
): Draft {
  const fitUnder = fitsOf(reading, right, noise);
  const nullFit = fitUnder(SHARP_FLOORS);
  const none: DayState = { fit: fitOf(nullFit, aspect, nullFit.rate), prediction: right, variant: null };
  const isFine = scoreOf(none) >= NULL_IS_FINE;
  const anyFit = fitUnder(OPEN_FLOORS);
  const openFit = fitOf(anyFit, aspect, anyFit.rate);
  // Something unknown would show itself: a day without a deviation is evidence against it.
  const open: DayState = {
    fit: isFine ? { ...openFit, rate: openFit.rate + NOTHING_SHOWS } : openFit,
    prediction: right,
    variant: null,
  };
  const states = new Map<State, DayState>([
    [NULL_STATE, none],
    [unknown, open],
  ]);
  const bestScore = Math.max(scoreOf(none), scoreOf(open) + unknown.logPrior);
  const isOdd = reading.judged && !isFine;
  return { aspect, nullRate: nullFit.rate, reading, right, states, bestScore, isOdd, isEdge: false };
}

/** Days beside one without a deviation: an error may begin or end there. */
function markEdges(drafts: readonly Draft[]): void {
  drafts.forEach((draft, at) => {
    const beside = [drafts[at - 1], drafts[at + 1]];
    // Only days that something else has to explain are held against a discount that is not entered.
    const isOther = (one?: Draft) => one?.reading.day.untoldDiscount !== draft.reading.day.untoldDiscount;
    draft.isEdge = draft.isOdd && beside.some((one) => !one?.isOdd || isOther(one));
  });
}

function tryVariant(draft: Draft, hypothesis: Hypothesis, variant: Variant, noise: SeriesNoise): DayState {
  const { reading, right } = draft;
  const fitted = (own: Prediction): Fit =>
    fitBeside(draft, own, fitOf(fitsOf(reading, own, noise)(SHARP_FLOORS), draft.aspect, draft.nullRate));
  const prediction = predict(reading, variant, right);
  const whole: DayState = { fit: fitted(prediction), prediction, variant };
  if (hypothesis.nature !== 'rate' || hypothesis.blame !== 'provider') return whole;
  if (reading.depth !== 'quantities' || whole.fit.rate > DOES_NOT_GIVE) return whole;
  const ofSeen = forSeenAlone(reading, right, prediction, variant);
  if (ofSeen) {
    const fit = fitted(ofSeen);
    return { fit: { ...fit, rate: fit.rate + SEEN_ALONE }, prediction: ofSeen, variant };
  }
  const exact = forExactLines(reading, right, prediction, variant);
  if (exact) {
    const own = predict(reading, exact, right);
    return { fit: fitted(own), prediction: own, variant: exact };
  }
  if (!draft.isEdge) return whole;
  const part = partialFit(reading, right, prediction, variant, SHARP_FLOORS);
  if (part === undefined || part.rate <= whole.fit.rate) return whole;
  return {
    fit: { ...whole.fit, rate: part.rate },
    prediction: asCharged(reading, prediction, variant),
    variant,
    ...(part.hourNats < Math.log(ODDS_MIN) && { isPartial: true }),
  };
}

/**
 * The amounts where a wrong rate holds for the calls that were seen, and the rest of each line is right: a rate may be wrong
 * for one project or key, and other keys' clients report nothing. Undefined unless the bill has these amounts to its rounding
 * on every line that the rate would change, and on one of them neither the right amount nor the whole of the variant's.
 */
function forSeenAlone(
  reading: DayReading,
  right: Prediction,
  prediction: Prediction,
  variant: Variant,
): Prediction | undefined {
  const amounts = [...prediction.amounts];
  let isPart = false;
  for (const [at, { of, amount, billed, observed, rounding, rateEvidence }] of reading.meters.entries()) {
    const [whole, usual] = [prediction.amounts[at] ?? Number.NaN, right.amounts[at] ?? Number.NaN];
    if (!variant.touches(of) || whole === usual) continue;
    if (rateEvidence !== 'sharp' || Number.isNaN(whole - usual)) return undefined;
    const dearer = observed >= billed ? whole - usual : dearerForSeen(reading, of, variant);
    if (dearer === undefined || Math.abs(amount - usual - dearer) > rounding) return undefined;
    const sure = SURE_ROUNDINGS * rounding;
    isPart ||= Math.abs(dearer) > sure && Math.abs(whole - usual - dearer) > sure;
    amounts[at] = usual + dearer;
  }
  return isPart ? { ...prediction, amounts } : undefined;
}

/** The variant's amount for the line's calls that were seen, less their right amount. */
function dearerForSeen({ day }: DayReading, of: MeterDay, variant: Variant): number | undefined {
  const mix = seenUses(day, of);
  const isWhole = mix.reduce((sum, one) => sum + one.quantity, 0n) === of.observed;
  const seen = isWhole && mix.length > 0 ? { ...of, mix } : of;
  const [wrong, usual] = [variant.amountOf(seen, of.observed), amountAs(day, seen, of.observed)];
  return wrong === null || usual === null ? undefined : Number(wrong - usual);
}

/** Circumstances for which price lists have entries of their own. */
const PRICED_APART = ['region', 'longContext', 'serviceTier'] as const;

/**
 * The variant on the lines alone that it gives exactly, where the others have another wrong rate besides: a bill prices its
 * lines one by one, so what is unknown on one is no doubt about the others. Undefined where fewer than two lines are exact, or
 * less than half of the dollars, and where a line is right that the variant would change: that speaks against it, unless no
 * line of its place, of its length or of its tier is wrong. Price lists state these apart, so a rate may be wrong in one alone.
 */
function forExactLines(
  reading: DayReading,
  right: Prediction,
  prediction: Prediction,
  variant: Variant,
): Variant | undefined {
  const exact = new Set<number>();
  const [wrong, fine]: [MeterDay[], MeterDay[]] = [[], []];
  let [given, open] = [0, 0];
  for (const [at, { of, amount, rateSigma, rateEvidence }] of reading.meters.entries()) {
    const [whole, usual] = [prediction.amounts[at] ?? Number.NaN, right.amounts[at] ?? Number.NaN];
    if (!variant.touches(of) || whole === usual) continue;
    if (rateEvidence !== 'sharp' || Number.isNaN(whole - usual)) return undefined;
    const isExact = Math.abs(amount - whole) <= rateSigma;
    const isRight = !isExact && Math.abs(amount - usual) <= rateSigma;
    (isRight ? fine : wrong).push(of);
    if (isExact) exact.add(of.index);
    if (isExact) given += Math.abs(whole - usual);
    else if (!isRight) open += Math.abs(whole - usual);
  }
  const isAlone = PRICED_APART.some(
    (name) => !wrong.some((a) => fine.some((b) => a.meter[name] === b.meter[name])),
  );
  if (!isAlone || exact.size < 2 || (open === 0 && fine.length === 0) || given < open) return undefined;
  return { ...variant, touches: (meter) => exact.has(meter.index) };
}

/**
 * Lines that a mistake does not predict may hold something unknown: a bill prices its lines one by one, so a rate that
 * its own lines show can be beside another that no mistake predicts.
 */
function fitBeside(draft: Draft, prediction: Prediction, fit: Fit): Fit {
  const isSilent = prediction.touched?.includes(false) ?? false;
  if (draft.aspect !== 'rates' || !isSilent || fit.rate >= Math.log(UNKNOWN_DAY)) return fit;
  const rate = rateFit(draft.reading, prediction, SHARP_FLOORS, OPEN_FLOORS) + Math.log(UNKNOWN_DAY);
  return rate > fit.rate ? { ...fit, rate } : fit;
}

/** A variant on a day, under a key of its own. */
type Try = readonly [key: string, hypothesis: Hypothesis, variant: Variant, shown: DayState];

/** Every variant of the day that differs from the null. */
function triesOf(
  draft: Draft,
  hypotheses: readonly Hypothesis[],
  context: SeriesContext,
  noise: SeriesNoise,
): Try[] {
  const { day, meters } = draft.reading;
  const taken = new Set<string>();
  const found: Try[] = [];
  for (const hypothesis of hypotheses) {
    for (const variant of hypothesis.variants(day, context)) {
      const key = `${hypothesis.kind}|${variant.name}`;
      if (taken.has(key) || !meters.some(({ of }) => variant.touches(of))) continue;
      taken.add(key);
      found.push([key, hypothesis, variant, tryVariant(draft, hypothesis, variant, noise)]);
    }
  }
  return found;
}

/** Tiers, and `batch`, that bills or calls of the series know. */
function usedTiers(readings: readonly DayReading[]): ReadonlySet<string> {
  const used = new Set<string>();
  for (const { meters } of readings)
    for (const { of } of meters)
      for (const { circumstances } of of.mix)
        used.add(circumstances.isBatch ? BATCH : circumstances.serviceTier);
  return used;
}

function stateOf(
  hypothesis: Hypothesis,
  variant: Variant,
  weights: WeightSet,
  used: ReadonlySet<string>,
): State {
  const prior = weights.priors[hypothesis.kind] ?? weights.otherPrior;
  const { chargedTier, isAnyPart, isTierUnnamed } = variant;
  const usual = chargedTier === undefined || used.has(chargedTier) ? 1 : UNUSED_TIER;
  const factor = isAnyPart ? SOME_PART : isTierUnnamed ? NOT_NAMED : usual;
  return {
    kind: hypothesis.kind,
    variant: variant.name,
    traits: variant,
    hypothesis,
    logPrior: Math.log(prior * factor),
  };
}
