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
import { noiseOf, type SeriesNoise } from './fit.js';
import { type JudgedDay, judgeDays, runsOf, unexplainedRunsOf } from './judge.js';
import { billedPicoOf, readDay, rightPrediction } from './reading.js';
import { seriesDaysOf } from './seriesDays.js';
import { statesOf } from './states.js';

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
  const { judged, noise } = judgedAgainstDiscounts(input);
  const finding: FindingInput = {
    series: { provider, accountId, model },
    noise,
    weights,
    ties: input.invoiceTies,
    judged,
  };
  return {
    provider,
    accountId,
    model,
    findings: [
      ...runsOf(judged).flatMap((run) => findingsOf(run, finding)),
      ...unexplainedRunsOf(judged).map((run) => unexplainedOf(run, finding)),
    ],
    days: judged.map(explainedDay),
    residuals: judged.flatMap((one) => residualOf(one.work.reading, noise)),
  };
}

/** One day of one explanation, meter by meter: what a finding's day is the sum of. */
export interface ExplainedImpacts {
  kind: FindingKind;
  variant: string;
  day: SeriesDay;
  impacts: readonly MeterImpact[];
}

/** What `explainSeries` makes its findings' days of, in their order: for whoever has to show the computation. */
export function explainedImpactsOf(input: ExplainSeriesInput): ExplainedImpacts[] {
  const { judged } = judgedAgainstDiscounts(input);
  return [...runsOf(judged), ...unexplainedRunsOf(judged)].flatMap(({ state, days }) =>
    days.map((one) => ({
      kind: state.kind === 'none' ? 'unexplained' : state.kind,
      variant: state.variant,
      day: one.judged.work.reading.day,
      impacts: one.impacts,
    })),
  );
}

/** What else is wrong beside a discount that nobody entered is explained against it. */
function judgedAgainstDiscounts(input: ExplainSeriesInput): { judged: JudgedDay[]; noise: SeriesNoise } {
  const context = contextOf(input);
  const first = judgedOf(input, context, new Map());
  const discounts = untoldDiscounts(first.judged);
  return discounts.size > 0 ? judgedOf(input, context, discounts) : first;
}

function judgedOf(
  input: ExplainSeriesInput,
  context: SeriesContext,
  discounts: ReadonlyMap<string, number>,
): { judged: JudgedDay[]; noise: SeriesNoise } {
  const { weights } = input;
  const days = seriesDaysOf(input.provider, input.days, input.prices, context, discounts);
  const readings = days.map((day) => readDay(day, weights));
  const noise = noiseOf(readings, readings.map(rightPrediction), weights.quantitySigma);
  const series = statesOf(readings, input.hypotheses ?? HYPOTHESES, context, noise, weights);
  return { judged: judgeDays(series, context, weights), noise };
}

function contextOf({ days, prices, provider }: ExplainSeriesInput): SeriesContext {
  const bare = seriesContextOf(days, false);
  if (prices.agreed === prices.list) return bare;
  const [first] = seriesDaysOf(provider, days.slice(0, 1), prices, bare);
  const periods =
    first && first.pricedAs !== null ? (first.agreed.periodsOf(first.pricedAs)?.periods ?? []) : [];
  return { ...bare, hasContract: periods.some((period) => period.contractId !== null) };
}

function explainedDay({ work, shown, parts }: JudgedDay): ExplainedDay {
  const { reading } = work;
  const coverage = reading.comparable ? (shown ?? [...work.states.values()][0])?.fit.coverage : undefined;
  return {
    day: reading.day.day,
    visibility: reading.day.evidence.visibility,
    billedPico: billedPicoOf(reading.day),
    coverage: coverage === undefined ? null : Math.min(1, coverage),
    explainedPico: impactOf(parts.explained),
    unexplainedPico: impactOf(parts.unexplained),
  };
}
