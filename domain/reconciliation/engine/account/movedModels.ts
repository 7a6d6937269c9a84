/** Whether use that is under two models was billed wrongly, or reported wrongly. */

import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../../events/event.js';
import { absPico, divideHalfEven, type Pico } from '../../../money.js';
import { microsOfDay, shiftDay } from '../../../period.js';
import type { Provider } from '../../../providers.js';
import { DayRates, DiscountedRates, ORDINARY } from '../../audit/dayRates.js';
import type { ChargePrices } from '../../matching/charges.js';
import { chargeProduct, picoFromChargeProduct } from '../../matching/classLines.js';
import type { FindingKind } from '../../taxonomy.js';
import { DAY_MIN_PICO, MISMATCH_MAX, MOVE_GAP_DAYS, NOT_ANSWERED_MAX } from '../calibration.js';
import type {
  Excess,
  Finding,
  FindingDay,
  FindingLine,
  ResidualDay,
  SeriesExplanation,
} from '../series/finding.js';
import { linesWithImpact, sumPico } from './accountFindings.js';
import { costOfMoved, type ShownBy } from './movedCalls.js';

/**
 * The model of the events: of every call the one that its `answered`; else of the one that was asked for, for some days
 * (`episode`), or from a day on, up to one, or always (`lasting`). A router that falls back to another model, or a
 * gateway that serves another, is rightly billed by the model that answered.
 */
export type WhoseModel = 'answered' | 'episode' | 'lasting';

export function whoseIs({ from, to, days }: MovedUse): WhoseModel {
  if (days.every((one) => one.lack.namedByAnswer)) return 'answered';
  const known = [...from.days, ...to.days].map((one) => one.day).sort();
  const isAtEdge = days[0]?.day === known[0] || days.at(-1)?.day === known.at(-1);
  return isAtEdge ? 'lasting' : 'episode';
}

interface Saying {
  /** The most that quantities alone make of it. */
  readonly probability: number;
  readonly rival: FindingKind;
  readonly level: string;
  says(from: string, to: string): Pick<Finding, 'kind' | 'variant' | 'blame' | 'cause' | 'advice'>;
}

const moved = (from: string, to: string) =>
  `The bill counts more of ${to} than the events name, and as much less of ${from} on the same days`;

const SEND_ANSWERED =
  'Send response_model, the model that the answer names, with every call: the one that was asked for need not be the one that answered.';

export const WHOSE: Readonly<Record<WhoseModel, Saying>> = {
  answered: {
    probability: 1,
    rival: 'unobserved_usage',
    level: 'the answers name it',
    says: (from, to) => ({
      kind: 'model_misattribution',
      variant: `billed_for:${from}`,
      blame: 'provider',
      cause: `${moved(from, to)}: calls that ${from} answered were billed as ${to}.`,
      advice: [
        'Name some of the calls: each answer says which model gave it. Ask for both models’ lines to be corrected together.',
      ],
    }),
  },
  episode: {
    probability: NOT_ANSWERED_MAX,
    rival: 'client_metering_error',
    level: 'not every answer is known to name it; for some days',
    says: (from, to) => ({
      kind: 'model_misattribution',
      variant: `billed_for:${from}`,
      blame: 'provider',
      cause: `${moved(from, to)}: calls of ${from} were billed as ${to}, or the events name the model that was asked for, not the one that answered.`,
      advice: [
        SEND_ANSWERED,
        'If the answers of these calls name the model of the events, ask for both models’ lines to be corrected together.',
      ],
    }),
  },
  lasting: {
    probability: NOT_ANSWERED_MAX,
    rival: 'model_misattribution',
    level: 'not every answer is known to name it; for good',
    says: (from, to) => ({
      kind: 'client_metering_error',
      variant: `model_as_requested:${from}`,
      blame: 'own',
      cause: `${moved(from, to)}: the events seem to name the model that was asked for, not the one that answered.`,
      advice: [SEND_ANSWERED],
    }),
  },
};

/** Both halves of one move, on the days on which it is seen. */
export interface MovedUse {
  readonly from: SeriesExplanation;
  readonly to: SeriesExplanation;
  readonly days: readonly MovedDay[];
}

export interface MovedDay {
  readonly day: string;
  readonly excess: ResidualDay;
  readonly lack: ResidualDay;
  /** The excess as the bill charges it, less its cost as the used model. */
  readonly impactPico: Pico;
  /** The distance of the two halves from each other, as a share of the moved amount; for a score. */
  readonly mismatch: number;
  /** The additional cost of each class as the billed model. */
  readonly dearer: ReadonlyMap<TokenClass, Pico>;
  /** The record that shows the uses of the moved calls, and so their price; null: none does. */
  readonly shownBy: ShownBy | null;
}

/** Weak kinds: a finding of them yields to a move of the same quantities. */
export const GIVES_WAY: ReadonlySet<string> = new Set([
  'unexplained',
  'unobserved_usage',
  'token_count_inflation',
  'cancelled_stream_overbilled',
  'timing_shift',
  'late_usage_adjustment',
  'client_metering_error',
]);

export function findMovedUse(
  provider: Provider,
  series: readonly SeriesExplanation[],
  prices: ChargePrices,
): MovedUse[] {
  const free = new Map(series.map((one) => [one, openResiduals(one)]));
  const moves = new Map<string, { from: SeriesExplanation; to: SeriesExplanation; days: MovedDay[] }>();
  const days = [...new Set([...free.values()].flatMap((residuals) => [...residuals.keys()]))].sort();
  for (const day of days) {
    const rates = ratesOfDay(prices, provider, day);
    for (const { from, to, moved } of pairsOfDay(series, free, day, rates)) {
      const key = JSON.stringify([from.model, to.model]);
      const known = moves.get(key) ?? { from, to, days: [] };
      known.days.push(moved);
      moves.set(key, known);
    }
  }
  return [...moves.values()].flatMap(splitRuns);
}

function ratesOfDay({ agreed: book }: ChargePrices, provider: Provider, day: string): RatesOfDay {
  const agreed = new DayRates(book, provider, microsOfDay(day));
  const of = ({ untoldDiscount }: ResidualDay) =>
    untoldDiscount > 0 ? new DiscountedRates(book, provider, microsOfDay(day), untoldDiscount) : agreed;
  return { agreed, of };
}

/**
 * Residuals of days whose counts no named mistake of another kind explains already. Amounts alone are one number for rate and
 * count: a move that accounts for two series may explain them better than a series by itself.
 */
function openResiduals(series: SeriesExplanation): Map<string, ResidualDay> {
  const taken = new Set(
    series.findings
      .filter((finding) => !GIVES_WAY.has(finding.kind))
      .flatMap((finding) => finding.days.filter((one) => one.volumePico !== 0n).map((one) => one.day)),
  );
  return new Map(
    series.residuals
      .filter((one) => !one.provisional && (!isCounted(one) || !taken.has(one.day)))
      .map((one) => [one.day, one]),
  );
}

/** Whether the bill of the day has counts; without any line it counts nothing. */
export const isCounted = ({ visibility, billedPico }: ResidualDay): boolean =>
  billedPico === 0n || visibility === 'V2' || visibility === 'V3';

interface Candidate {
  from: SeriesExplanation;
  to: SeriesExplanation;
  moved: MovedDay;
}

/** The day's pairs, the closest first; no series is in two of them. */
function pairsOfDay(
  series: readonly SeriesExplanation[],
  free: ReadonlyMap<SeriesExplanation, ReadonlyMap<string, ResidualDay>>,
  day: string,
  rates: RatesOfDay,
): Candidate[] {
  const candidates: Candidate[] = [];
  for (const to of series) {
    const excess = free.get(to)?.get(day);
    if (!excess || dollarsOf(excess) < DAY_MIN_PICO) continue;
    for (const from of series) {
      const lack = from === to ? undefined : free.get(from)?.get(day);
      if (!lack || dollarsOf(lack) > -1n) continue;
      const halves = { excess, to: to.model, lack, from: from.model };
      const moved = closerOf(
        movedDay(day, halves, ({ beyondUsual }) => beyondUsual, rates),
        movedDay(day, halves, ({ beyondSeen }) => beyondSeen, rates),
      );
      if (moved.mismatch <= MISMATCH_MAX) candidates.push({ from, to, moved });
    }
  }
  candidates.sort(
    (a, b) =>
      a.moved.mismatch - b.moved.mismatch ||
      (a.to.model < b.to.model ? -1 : a.to.model > b.to.model ? 1 : 0) ||
      (a.from.model < b.from.model ? -1 : 1),
  );
  const used = new Set<SeriesExplanation>();
  return candidates.filter(({ from, to }) => {
    if (used.has(from) || used.has(to)) return false;
    used.add(from).add(to);
    return true;
  });
}

const closerOf = (a: MovedDay, b: MovedDay): MovedDay => (b.mismatch < a.mismatch ? b : a);

interface Halves {
  excess: ResidualDay;
  to: string;
  lack: ResidualDay;
  from: string;
}

/** A day's prices, with those of days that are judged below what is entered. */
interface RatesOfDay {
  readonly agreed: DayRates;
  of(residual: ResidualDay): DayRates;
}

/**
 * The day by what `of` takes of the residuals: beyond usual coverage, or beyond all that was seen, since a series of which
 * calls are billed as another model's on most days seems to be seen in part alone.
 */
function movedDay(
  day: string,
  { excess, to, lack, from }: Halves,
  of: (residual: ResidualDay) => Excess,
  rates: RatesOfDay,
): MovedDay {
  const areCounted = isCounted(excess) && isCounted(lack);
  const unitsOf = (residual: ResidualDay, model: string) =>
    areCounted ? of(residual).tokens : boughtBy(of(residual).pico, model, rates.agreed);
  const [more, less] = [unitsOf(excess, to), unitsOf(lack, from)];
  const mismatch = mismatchOf(more, less, to, rates.agreed);
  const cost =
    areCounted && mismatch <= MISMATCH_MAX
      ? costOfMoved(
          { model: to, residual: excess, rates: rates.of(excess) },
          { model: from, residual: lack, rates: rates.of(lack) },
          mismatch,
        )
      : undefined;
  const [asBilled, asUsed] = cost
    ? [cost.asBilled, cost.asUsed]
    : [costsOf(more, to, rates.agreed), costsOf(more, from, rates.agreed)];
  const dearer = new Map(
    TOKEN_CLASSES.map((name) => [name, (asBilled.get(name) ?? 0n) - (asUsed.get(name) ?? 0n)] as const),
  );
  const known = sumPico([...dearer.values()]);
  return {
    day,
    excess,
    lack,
    mismatch,
    impactPico: cost ? known : asCharged(dollarsOf(excess), known, sumPico([...asBilled.values()])),
    dearer,
    shownBy: cost?.shownBy ?? null,
  };
}

/** The excess at the share that both models' ordinary rates leave; 0 where there is none. */
function asCharged(excessPico: Pico, dearerPico: Pico, asBilledPico: Pico): Pico {
  if (asBilledPico <= 0n || excessPico <= 0n) return 0n;
  return divideHalfEven(excessPico * dearerPico, asBilledPico);
}

type Units = Partial<Record<TokenClass, bigint>>;

/**
 * The quantity that amounts buy at the model's ordinary rates, 1e-12 tokens. Calls of other tiers and batches buy more or
 * fewer, but the same calls under another model's name as many as under their own: both models' rates differ by these
 * factors alike.
 */
function boughtBy(amounts: Partial<Record<TokenClass, Pico>>, model: string, rates: DayRates): Units {
  const units: Units = {};
  for (const name of TOKEN_CLASSES) {
    const rate = rateOf(rates, model, name);
    if (rate > 0n) units[name] = ((amounts[name] ?? 0n) * 1_000_000n * QUANTITY_ONE) / rate;
  }
  return units;
}

function dollarsOf(residual: ResidualDay): Pico {
  return residual.expectedOfBilledPico === null || residual.expectedOfObservedPico === null
    ? 0n
    : residual.expectedOfBilledPico - residual.expectedOfObservedPico;
}

/** Σ |more + less| ÷ Σ |more| over the classes, weighed by one model's rates. */
function mismatchOf(more: Units, less: Units, model: string, rates: DayRates): number {
  let apart = 0n;
  let whole = 0n;
  let classes = 0;
  for (const tokenClass of TOKEN_CLASSES) {
    const [gained, lost] = [more[tokenClass] ?? 0n, less[tokenClass] ?? 0n];
    if (gained === 0n && lost === 0n) continue;
    const rate = rateOf(rates, model, tokenClass);
    apart += picoFromChargeProduct(chargeProduct(absPico(gained + lost), rate));
    whole += picoFromChargeProduct(chargeProduct(absPico(gained), rate));
    if (gained > 0n && lost < 0n) classes += 1;
  }
  return classes < 2 || whole === 0n ? Number.POSITIVE_INFINITY : Number(apart) / Number(whole);
}

/** By class, at ordinary rates. */
function costsOf(units: Units, model: string, rates: DayRates): Map<TokenClass, Pico> {
  return new Map(
    TOKEN_CLASSES.map((name) => [
      name,
      picoFromChargeProduct(chargeProduct(units[name] ?? 0n, rateOf(rates, model, name))),
    ]),
  );
}

/** The day of a finding; undefined where the move costs nothing. */
export function dayOfMove(
  { day, excess, impactPico }: MovedDay,
  probability: number,
): FindingDay | undefined {
  if (impactPico === 0n) return undefined;
  const { billedPico } = excess;
  return {
    day,
    billedPico,
    expectedPico: billedPico - impactPico,
    impactPico,
    ratePico: impactPico,
    volumePico: 0n,
    ownPricingPico: 0n,
    probability,
  };
}

/** The lines of the day, each class with its part of the day's impact. */
export function linesOfMove(move: MovedDay, impactPico: Pico): FindingLine[] {
  const whole = [...move.dearer.values()].reduce((sum, one) => sum + one, 0n);
  const share = (part: Pico) => (whole === 0n ? 0n : divideHalfEven(part * impactPico, whole));
  const impacts = new Map([...move.dearer].map(([name, part]) => [name, share(part)] as const));
  return linesWithImpact(move.excess.lines, impacts, impactPico);
}

function rateOf(rates: DayRates, model: string, tokenClass: TokenClass): Pico {
  return rates.rate(model, tokenClass, ORDINARY)?.rate ?? 1_000_000_000_000n;
}

/** Days of the pair that follow each other, at most a week without use between them. */
function splitRuns(move: { from: SeriesExplanation; to: SeriesExplanation; days: MovedDay[] }): MovedUse[] {
  const runs: MovedDay[][] = [];
  for (const one of move.days) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (run && last && one.day <= shiftDay(last.day, Number(MOVE_GAP_DAYS))) run.push(one);
    else runs.push([one]);
  }
  return runs.map((days) => ({ ...move, days }));
}
