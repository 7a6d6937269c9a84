import { absPico, type Pico } from '../../money.js';
import { type DayRates, isTokenClass } from '../audit/dayRates.js';
import type {
  BilledCell,
  BucketReason,
  CallStatus,
  ClassLine,
  GapBucket,
  MatchStatus,
  ObservedCell,
  UsageCell,
  Visibility,
} from './cells.js';
import {
  flagThresholdPico,
  gradeOf,
  isNeverFlagged,
  linesOf,
  sum,
  sumKnown,
  tolerancePico,
} from './classLines.js';
import { clockOf, countCalls } from './hours.js';
import {
  evidenceOf,
  type LinkWeights,
  linkProbability,
  linkWaterfall,
  type ModelLevel,
} from './linkModels.js';
import { buildMeters, type Meter } from './meters.js';

/** The bill and the calls of one account's day that belong to one model. */
export interface BucketInput {
  startMicros: bigint;
  accountId: string;
  model: string;
  /** The ids that price billed and observed quantities; the billed one if there is one. */
  pricedAs: string | null;
  level: ModelLevel;
  billed: readonly BilledCell[];
  usage: readonly UsageCell[];
  observed: readonly ObservedCell[];
  provisional: boolean;
  accountKnown: boolean;
  /** The account's first event is after the start of the day. */
  notYetObserved: boolean;
  /** Set for charges that no call shows and for unknown labels. */
  fixedReason: BucketReason | null;
}

/** `billable`: the calls that a provider charges for, without failed attempts. */
export interface BillableInput extends BucketInput {
  billable: readonly ObservedCell[];
}

/** Failed attempts should not be billed; their cost is only in own pricing. */
export function isBillable(cell: { status: CallStatus }): boolean {
  return cell.status !== 'error';
}

/** A bucket with the data from which the other parts of the day's result are built. */
export interface BuiltBucket {
  bucket: GapBucket;
  meters: Meter[];
}

/** Compares one model's bill with its observed calls, class by class. */
export function buildBucket(given: BucketInput, rates: DayRates, link?: LinkWeights): BuiltBucket {
  const input = { ...given, billable: given.observed.filter(isBillable) };
  const meters = buildMeters(input.billed, input.usage, input.billable, rates, input.pricedAs);
  const lines = linesOf(meters, input, rates);
  const providerCostPico = sum(input.billed.map((cell) => cell.amountPico));
  const ourCostPico = sum(input.observed.map((cell) => cell.computedCostPico));
  const expectedCostPico = sumKnown(lines.map((line) => line.expectedOfBilledPico));
  const expectedOfObserved = sumKnown(lines.map((line) => line.expectedOfObservedPico));
  const roundingPico = sum(meters.map((meter) => meter.roundingPico));
  const isDecomposed = expectedCostPico !== null && expectedOfObserved !== null;
  const matchStatus = statusOf(input, providerCostPico, ourCostPico, roundingPico);
  const visibility = visibilityOf(meters);
  const evidence =
    matchStatus === 'unmatched'
      ? null
      : evidenceOf(input, meters, lines, {
          providerCostPico,
          ourCostPico,
          expectedCostPico,
          expectedOfObserved,
          roundingPico,
        });
  const waterfall = evidence ? linkWaterfall(evidence, link) : [];
  const probability = evidence ? linkProbability(waterfall) : null;
  const explained = expectedOfObserved ?? ourCostPico;
  const matchedPico =
    matchStatus === 'matched'
      ? providerCostPico
      : matchStatus === 'partial'
        ? minPico(providerCostPico, explained)
        : 0n;
  const reason = reasonOf(input, lines, providerCostPico, ourCostPico, matchStatus);
  const gap = providerCostPico - ourCostPico;
  const bucket: GapBucket = {
    width: 'day',
    startMicros: input.startMicros,
    accountId: input.accountId,
    model: input.model,
    matchStatus,
    grade: gradeOf({
      probability,
      visibility,
      provisional: input.provisional,
      unconverted: input.fixedReason === 'unconverted',
      gates: gatesOf(input, meters),
    }),
    confidenceScore: probability,
    visibility,
    provisional: input.provisional,
    flagged:
      matchStatus !== 'matched' &&
      !input.provisional &&
      !isNeverFlagged(reason) &&
      absPico(gap) >= flagThresholdPico(providerCostPico),
    reason,
    ...clockOf(input.usage, input.observed, matchStatus),
    eventCount: countCalls(input.observed),
    providerCostPico,
    ourCostPico,
    expectedCostPico,
    ratePico: isDecomposed ? providerCostPico - expectedCostPico : null,
    volumePico: isDecomposed ? expectedCostPico - expectedOfObserved : null,
    ownPricingPico: isDecomposed ? expectedOfObserved - ourCostPico : null,
    matchedPico,
    lines,
    waterfall,
  };
  return { bucket, meters };
}

const minPico = (a: Pico, b: Pico): Pico => {
  const least = a < b ? a : b;
  return least > 0n ? least : 0n;
};

function statusOf(input: BucketInput, billedPico: Pico, ourPico: Pico, roundingPico: Pico): MatchStatus {
  const hasBill = input.billed.some((cell) => cell.amountPico !== 0n || (cell.quantity ?? 0n) > 0n);
  if (!hasBill || input.observed.length === 0) return 'unmatched';
  return absPico(billedPico - ourPico) <= tolerancePico(billedPico, roundingPico) ? 'matched' : 'partial';
}

function visibilityOf(meters: readonly Meter[]): Visibility {
  const paid = meters.filter((meter) => meter.amountPico !== 0n || meter.quantity !== null);
  if (paid.length === 0 || paid.some((meter) => !isTokenClass(meter.tokenClass) && meter.amountPico !== 0n))
    return 'V0';
  const priced = paid.filter((meter) => isTokenClass(meter.tokenClass));
  if (priced.length === 0) return 'V0';
  if (priced.some((meter) => meter.quantity === null)) return 'V1';
  const isWhole = priced.every(
    (meter) => meter.quantitySource === 'cost' && meter.isBatch !== null && meter.longContext !== null,
  );
  return isWhole ? 'V3' : 'V2';
}

function gatesOf(input: BillableInput, meters: readonly Meter[]) {
  return {
    quantityKnown: meters.every((meter) => meter.quantity !== null || !isTokenClass(meter.tokenClass)),
    classesComplete: input.billable.every(
      (cell) => cell.unpriced === 0 && cell.priceGaps === 0 && cell.unmetered === 0,
    ),
    accountKnown: input.accountKnown,
  };
}

/** Reasons that apply for all figures. */
const HOLDS_ALWAYS: ReadonlySet<BucketReason> = new Set([
  'not_observable',
  'not_in_cost_report',
  'unconverted',
]);

function reasonOf(
  input: BillableInput,
  lines: readonly ClassLine[],
  billedPico: Pico,
  ourPico: Pico,
  status: MatchStatus,
): BucketReason | null {
  if (input.fixedReason !== null && HOLDS_ALWAYS.has(input.fixedReason)) return input.fixedReason;
  if (status === 'matched') return null;
  if (input.notYetObserved) return 'not_yet_observed';
  const freePico = sum(
    lines.map((line) =>
      line.billedPico === 0n && (line.billedQuantity ?? 0n) > 0n ? (line.expectedOfObservedPico ?? 0n) : 0n,
    ),
  );
  if (freePico > 0n && absPico(billedPico - ourPico + freePico) < flagThresholdPico(billedPico))
    return 'free_allowance';
  if (input.fixedReason) return input.fixedReason;
  if (input.billed.length === 0) return 'unbilled';
  return input.billable.some((cell) => cell.unpriced > 0) ? 'unpriced' : null;
}
