import type { Provider } from '../../../providers.js';
import type { SeriesDayEvidence } from '../../evidence/evidenceText.js';
import type { ChargePrices } from '../../matching/charges.js';
import type { InvoiceTie } from '../../matching/linkModels.js';
import type { FindingKind } from '../../taxonomy.js';
import type { WeightSet } from '../../weights/weightSet.js';
import { type Hypothesis, type SeriesContext, type SeriesDay, seriesContextOf } from '../causes/cause.js';
import { HYPOTHESES } from '../causes/library.js';
import { impactOf, type MeterImpact, residualOf } from './dollars.js';
import { untoldDiscounts } from './doubts.js';
import type { ExplainedDay, SeriesExplanation } from './finding.js';
import { type FindingInput, findingsOf, unexplainedOf } from './findings.js';
import { type Aspect, noiseOf, type SeriesNoise } from './fit.js';
import { type JudgedDay, judgeDays, runsOf, unexplainedRunsOf } from './judge.js';
import { billedPicoOf, type DayReading, type Prediction, readDay, rightPrediction } from './reading.js';
import { seriesDaysOf } from './seriesDays.js';
import { shared } from './sharedDay.js';
import { type DayState, statesOf } from './states.js';

export interface ExplainSeriesInput {
  provider: Provider;
  accountId: string;
  model: string;
  /** In any order; each day once. */
  days: readonly SeriesDayEvidence[];
  prices: ChargePrices;
  weights: WeightSet;
  /** By month `YYYY-MM`: whether the month's invoice ties out. */
  invoiceTies?: ReadonlyMap<string, InvoiceTie>;
  /** The library unless a test brings its own. */
  hypotheses?: readonly Hypothesis[];
}

/**
 * Explains the differences between a series' bills and its calls: which days share which explanation, how surely, and how
 * much it comes to. Pure and deterministic; the order of the days changes nothing (docs/engine.md).
 */
export function explainSeries(input: ExplainSeriesInput): SeriesExplanation {
  const { provider, accountId, model, weights } = input;
  const { tracks, rest, noise } = judgedAgainstDiscounts(input);
  const together = togetherOf(tracks);
  const series = { provider, accountId, model };
  const finding = (judged: readonly JudgedDay[]): FindingInput => ({
    series,
    noise,
    weights,
    ties: input.invoiceTies,
    judged,
    together,
  });
  const [first = []] = tracks;
  return {
    provider,
    accountId,
    model,
    findings: [
      ...tracks.flatMap((judged) => runsOf(judged).flatMap((run) => findingsOf(run, finding(judged)))),
      ...unexplainedRunsOf(rest).map((run) => unexplainedOf(run, finding(rest))),
    ],
    days: first.map((_, at) =>
      explainedDay(
        tracks.flatMap((judged) => judged[at] ?? []),
        rest[at],
      ),
    ),
    residuals: first.flatMap((one) => residualOf(one.work.reading, noise)),
  };
}

/** One day of one explanation, meter by meter: what a finding's day is the sum of. */
export interface ExplainedImpacts {
  kind: FindingKind;
  variant: string;
  day: SeriesDay;
  impacts: readonly MeterImpact[];
}

/** The parts of the days of `explainSeries`'s findings, in their order, for readers of the computation. */
export function explainedImpactsOf(input: ExplainSeriesInput): ExplainedImpacts[] {
  const { tracks, rest } = judgedAgainstDiscounts(input);
  return [...tracks.flatMap(runsOf), ...unexplainedRunsOf(rest)].flatMap(({ state, days }) =>
    days.map((one) => ({
      kind: state.kind === 'none' ? 'unexplained' : state.kind,
      variant: state.variant,
      day: one.judged.work.reading.day,
      impacts: one.impacts,
    })),
  );
}

/** A series' days once for each aspect, in the same order. */
interface JudgedSeries {
  tracks: readonly (readonly JudgedDay[])[];
  /** The part of a day that no aspect explains. */
  rest: readonly JudgedDay[];
  noise: SeriesNoise;
}

/** Other mistakes beside a discount that is not entered are explained against it. */
function judgedAgainstDiscounts(input: ExplainSeriesInput): JudgedSeries {
  const context = contextOf(input);
  const first = judgedOf(input, context, new Map());
  const track = (aspect: Aspect) => first.tracks.find((judged) => judged[0]?.aspect === aspect) ?? [];
  const discounts = untoldDiscounts(track('rates'), track('counts'));
  return discounts.size > 0 ? judgedOf(input, context, discounts) : first;
}

function judgedOf(
  input: ExplainSeriesInput,
  context: SeriesContext,
  discounts: ReadonlyMap<string, number>,
): JudgedSeries {
  const { weights } = input;
  const days = seriesDaysOf(input.provider, input.days, input.prices, context, discounts);
  const readings = days.map((day) => readDay(day, weights));
  const rights = readings.map(rightPrediction);
  const noise = noiseOf(readings, rights, weights.quantitySigma);
  const judge = (aspect: Aspect, isMeant: (reading: DayReading) => boolean, beside = rights) => {
    const own = readings.map((one) => (isMeant(one) ? one : { ...one, judged: false }));
    const library = input.hypotheses ?? HYPOTHESES;
    const series = statesOf({ aspect, readings: own, rights: beside, library, context, noise, weights });
    return judgeDays(series, context, weights);
  };
  const hasCounts = ({ depth }: DayReading) => depth === 'quantities';
  const tracks: JudgedDay[][] = [];
  if (readings.some(hasCounts)) {
    const counts = judge('counts', hasCounts);
    tracks.push(judge('rates', hasCounts, counts.map(amountsBeside)), counts);
  }
  if (!readings.every(hasCounts) || tracks.length === 0)
    tracks.push(judge('amounts', (reading) => !hasCounts(reading)));
  const apart = tracks[0]?.map((_, at) => shared(tracks.flatMap((judged) => judged[at] ?? []))) ?? [];
  return {
    tracks: tracks.map((_, of) => apart.flatMap(({ aspects }) => aspects[of] ?? [])),
    rest: apart.map((day) => day.rest),
    noise,
  };
}

/** The right amounts of a day once its counts are explained: moved calls have another mixture of rates. */
function amountsBeside({ work, shown, state }: JudgedDay): Prediction {
  const { right } = work;
  return state.hypothesis && shown ? { ...right, amounts: shown.prediction.amounts } : right;
}

/** The joint prediction of the explanations of a day's aspects. */
function togetherOf(tracks: readonly (readonly JudgedDay[])[]): Map<string, DayState> {
  const together = new Map<string, DayState>();
  const counts = tracks.find((judged) => judged[0]?.aspect === 'counts') ?? [];
  const rates = tracks.find((judged) => judged[0]?.aspect === 'rates') ?? [];
  rates.forEach(({ work, shown }, at) => {
    const beside = counts[at]?.shown;
    if (!shown || !beside || !work.reading.judged) return;
    const { quantities } = beside.prediction;
    together.set(work.reading.day.day, {
      ...shown,
      fit: { ...beside.fit, rate: shown.fit.rate },
      prediction: { amounts: shown.prediction.amounts, quantities },
    });
  });
  return together;
}

function contextOf({ days, prices, provider }: ExplainSeriesInput): SeriesContext {
  const bare = seriesContextOf(days, false);
  if (prices.agreed === prices.list) return bare;
  const [first] = seriesDaysOf(provider, days.slice(0, 1), prices, bare);
  const periods =
    first && first.pricedAs !== null ? (first.agreed.periodsOf(first.pricedAs)?.periods ?? []) : [];
  return { ...bare, hasContract: periods.some((period) => period.contractId !== null) };
}

/** One day of all aspects. */
function explainedDay(aspects: readonly JudgedDay[], rest: JudgedDay | undefined): ExplainedDay {
  const own = aspects.find((one) => one.work.reading.judged && one.aspect !== 'rates') ?? aspects[0];
  if (!own) throw new RangeError('a day has an aspect');
  const { work, shown } = own;
  const { reading } = work;
  const coverage = reading.comparable ? (shown ?? [...work.states.values()][0])?.fit.coverage : undefined;
  return {
    day: reading.day.day,
    visibility: reading.day.evidence.visibility,
    billedPico: billedPicoOf(reading.day),
    coverage: coverage === undefined ? null : Math.min(1, coverage),
    explainedPico: aspects.reduce((total, one) => total + impactOf(one.parts.explained), 0n),
    unexplainedPico: impactOf(rest?.parts.unexplained ?? []),
  };
}
