/** Findings from runs of days: dollars, probability, gates, grade and the words for them. */
import { absPico, type Pico } from '../../../money.js';
import type { Provider } from '../../../providers.js';
import { lowerOf } from '../../matching/classLines.js';
import type { InvoiceTie } from '../../matching/linkModels.js';
import { type FindingKind, isViolation } from '../../taxonomy.js';
import type { WeightSet } from '../../weights/weightSet.js';
import {
  CERTAINTY_MAX,
  CRITICAL_DAYS,
  CRITICAL_DIVISOR,
  CRITICAL_PICO,
  CRITICAL_Z,
  FAR_PICO,
  GUESS_MAX,
  ODDS_MAX,
  PARTS_ALONE_MAX,
  REVIEW_MAX,
  TOTALS_ALONE_MAX,
} from '../calibration.js';
import { historyOf, isAtPriceChange, isGuess, oddsAgainstOurPrice } from './doubts.js';
import type { Finding } from './finding.js';
import {
  DAY_OF_A_PRICE,
  discountText,
  ENTER_TERMS,
  FINER_BILL,
  GATE_ADVICE,
  OLD_PRICE,
  PARTS_OF_DAYS,
  UNEXPLAINED,
  UNKNOWN_CALLS,
  UNKNOWN_DISCOUNT,
  UNKNOWN_RATE,
  UNKNOWN_REPEATS,
} from './findingText.js';
import type { SeriesNoise } from './fit.js';
import { calibrated, calibrationSteps, gradedAs, gradeOfRun, holdsAlone, missingGates } from './gates.js';
import type { JudgedDay, RunOfDays } from './judge.js';
import {
  dayOf,
  explanationSteps,
  linesOf,
  matchAt,
  nextBest,
  sharesOf,
  strongestOf,
  totalOf,
  weighted,
} from './runFigures.js';
import type { DayState, State } from './states.js';

export interface SeriesIdentity {
  provider: Provider;
  accountId: string;
  model: string;
}

export interface FindingInput {
  series: SeriesIdentity;
  noise: SeriesNoise;
  weights: WeightSet;
  ties: ReadonlyMap<string, InvoiceTie> | undefined;
  /** All days of the series, under the aspect of the run. */
  judged: readonly JudgedDay[];
  /** By day, what the explanations of its aspects predict together; absent: one aspect is all there is. */
  together: ReadonlyMap<string, DayState>;
}

/**
 * The findings of a run with a named explanation: one, or two where some of its days have all that certainty needs and only
 * the others keep it from HIGH, however few the days are. Days of a finding need not follow each other then.
 */
export function findingsOf(run: RunOfDays, input: FindingInput): Finding[] {
  const whole = findingOf(run, input);
  if (whole.grade === 'HIGH' || run.state.hypothesis?.blame !== 'provider') return [whole];
  const sure = run.days.filter((day) => holdsAlone(run, day, input));
  if (sure.length === 0 || sure.length === run.days.length) return [whole];
  const finding = findingOf({ ...run, days: sure }, input);
  if (finding.grade !== 'HIGH') return [whole];
  const others = run.days.filter((day) => !sure.includes(day));
  return [finding, findingOf({ ...run, days: others }, input)];
}

/** The finding of days with a named explanation. */
function findingOf(run: RunOfDays, input: FindingInput): Finding {
  const { state } = run;
  const { hypothesis } = state;
  if (!hypothesis) throw new RangeError('a named explanation has a hypothesis');
  const kind = state.kind as FindingKind;
  const shares = sharesOf(run);
  const isParts = run.days.every(({ judged }) => judged.shown?.isPartial);
  const history = historyOf(run, input.judged);
  const ourPrice = oddsAgainstOurPrice(run, history);
  const pooled = weighted(run, shares, (one) => one.pooled.get(kind) ?? 0);
  const isTotal = run.days.every(({ judged }) => judged.work.reading.depth === 'total');
  const most = Math.min(
    isParts ? PARTS_ALONE_MAX : CERTAINTY_MAX,
    isTotal ? TOTALS_ALONE_MAX : CERTAINTY_MAX,
    hypothesis.reviewOnly ? REVIEW_MAX : CERTAINTY_MAX,
  );
  const best = Math.min(most, pooled, shareOf(ourPrice));
  const next = nearerOf(nextBest(run, shares, kind, best), ourPrice);
  const missing = missingGates({ ...input, run, history, odds: next?.odds ?? ODDS_MAX });
  const limited = isGuess(run, missing, input.noise.coverage) ? Math.min(best, GUESS_MAX) : best;
  const strongest = strongestOf(run);
  const match = matchAt(strongest.judged, input);
  const { evidence } = strongest.judged.work.reading.day;
  const isDated = isMatterOfADay(run);
  const blame = isDated ? 'none' : hypothesis.blame;
  const of = { blame, missing, visibility: evidence.visibility, isParts };
  const likely = match.probability * limited;
  const probability = calibrated(likely, of);
  const waterfall = [
    ...match.waterfall,
    ...explanationSteps(run, strongest.judged, limited),
    ...calibrationSteps(likely, of),
  ];
  const graded = gradedAs(probability, { missing, waterfall });
  const grade = lowerOf(gradeOfRun(run, graded, missing), isDated ? 'LOW' : 'HIGH');
  const impactPico = totalOf(run);
  // One source of a price is no accusation, and an undercharge is not claimed.
  const claimable =
    blame === 'provider' &&
    isViolation(kind) &&
    !hypothesis.reviewOnly &&
    impactPico > 0n &&
    !missing.includes('price_sources_agree');
  const untold = run.days.flatMap(({ judged }) => judged.work.reading.day.untoldDiscount ?? []);
  return {
    kind,
    variant: state.variant,
    direction: impactPico >= 0n ? 'overcharge' : 'undercharge',
    blame,
    claimable,
    ...input.series,
    days: run.days.map(dayOf),
    lines: linesOf(run),
    impactPico,
    recoverablePico: claimable ? impactPico : 0n,
    grade,
    probability,
    matchProbability: match.probability,
    visibility: evidence.visibility,
    provisional: false,
    missing,
    next,
    waterfall,
    cause: `${hypothesis.describe(state.variant)}${discountText(untold)}`,
    advice: [
      ...(isDated ? [DAY_OF_A_PRICE] : (hypothesis.advise?.(state.variant, evidence.sources) ?? [])),
      ...(ourPrice === null ? [] : [OLD_PRICE]),
      ...(untold.length > 0 ? [ENTER_TERMS] : []),
      ...missing.map((gate) =>
        gate === 'residual_within_tolerance' && isParts ? PARTS_OF_DAYS : GATE_ADVICE[gate],
      ),
      ...(evidence.visibility === 'V0' || evidence.visibility === 'V1' ? [FINER_BILL] : []),
    ],
    critical: false,
    weightSet: input.weights.version,
  };
}

/** The finding of a run of days that nothing explains. */
export function unexplainedOf(run: RunOfDays, input: FindingInput): Finding {
  const strongest = strongestOf(run);
  const match = matchAt(strongest.judged, input);
  const shares = sharesOf(run);
  const unknown = Math.min(
    CERTAINTY_MAX,
    weighted(run, shares, (one) => 1 - (one.pooled.get('none') ?? 0)),
  );
  const impactPico = totalOf(run);
  const { evidence } = strongest.judged.work.reading.day;
  return {
    kind: 'unexplained',
    variant: '',
    direction: impactPico >= 0n ? 'overcharge' : 'undercharge',
    blame: 'none',
    claimable: false,
    ...input.series,
    days: run.days.map(dayOf),
    lines: linesOf(run),
    impactPico,
    recoverablePico: 0n,
    // Something unknown is wrong: no more than a reason to look.
    grade: lowerOf('LOW', gradeOfRun(run, match.probability * unknown, [])),
    probability: match.probability * unknown,
    matchProbability: match.probability,
    visibility: evidence.visibility,
    provisional: false,
    missing: [],
    next: nextBest(run, shares, 'unexplained', unknown),
    waterfall: match.waterfall,
    cause: UNEXPLAINED,
    advice: adviceOfUnexplained(run, impactPico),
    critical: isCritical(run, input.noise),
    weightSet: input.weights.version,
  };
}

/** Wrong dates of a price that only the days beside a change show: lists have no hours. */
function isMatterOfADay(run: RunOfDays): boolean {
  return DATED_KINDS.has(run.state.kind) && isAtPriceChange(run);
}

const DATED_KINDS: ReadonlySet<State['kind']> = new Set([
  'price_effective_date_mismatch',
  'promotional_rate_not_applied',
]);

/** The probability of odds; 1 without any. */
const shareOf = (odds: number | null): number => (odds === null ? 1 : odds / (1 + odds));

/** Our own price as the next best explanation, where nothing else is nearer. */
function nearerOf(next: Finding['next'], ourPrice: number | null): Finding['next'] {
  if (ourPrice === null || (next !== null && next.odds <= ourPrice)) return next;
  return { kind: 'stale_price_reference', odds: ourPrice };
}

function adviceOfUnexplained(run: RunOfDays, impactPico: Pico): string[] {
  const isRate = run.days.every(({ impacts }) => impacts.every((one) => one.volumePico === 0n));
  const over = impactPico > 0n;
  if (isRate) return [over ? UNKNOWN_RATE : UNKNOWN_DISCOUNT];
  return [over ? UNKNOWN_CALLS : UNKNOWN_REPEATS];
}

/**
 * Large on some day (more than $100 and 5 % of the day), or from $10 and far outside the series' scatter on two days.
 */
function isCritical(run: RunOfDays, noise: SeriesNoise): boolean {
  let far = 0;
  for (const { judged, impactPico } of run.days) {
    const size = absPico(impactPico);
    const billed = BigInt(Math.round(judged.work.reading.billedAmount));
    const share = absPico(billed) / CRITICAL_DIVISOR;
    if (size > (share > CRITICAL_PICO ? share : CRITICAL_PICO)) return true;
    if (
      size >= FAR_PICO &&
      Number(size) >= CRITICAL_Z * noise.quantitySigma * judged.work.reading.billedAmount
    )
      far += 1;
  }
  return far >= CRITICAL_DAYS;
}
