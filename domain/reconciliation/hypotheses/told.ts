/** What a day's calls and reports leave open: nobody is accused of what they do not tell. */
import type { TokenClass } from '../../events/event.js';
import type { SeriesDayEvidence } from '../evidence/evidenceText.js';
import { sumKnown } from '../matching/classLines.js';
import type { MeterDay, SeriesDay } from './hypothesis.js';

/**
 * Neither an answer nor the provider's usage report says which tier served the day's calls. What a cost line says of its tier
 * is mostly the reader's word for "no tier named", so it tells none.
 */
export function isTierOpen({ evidence, meters }: SeriesDay): boolean {
  const isReported = evidence.observed.some((one) => one.status !== 'error' && one.serviceTier !== '');
  return (
    !isReported &&
    meters.some(
      ({ meter, tokenClass }) =>
        meter.amountPico !== 0n &&
        meter.split !== 'usage_report' &&
        !isOfOneTier(evidence, meters, tokenClass),
    )
  );
}

/**
 * The usage report, divided by tier and batch, counts as much of the class as is billed, and all of it in one tier: then
 * that is the tier, on whichever of the class's lines a call stands.
 */
function isOfOneTier(
  { usage }: SeriesDayEvidence,
  meters: readonly MeterDay[],
  tokenClass: TokenClass,
): boolean {
  const counted = usage.filter((one) => one.tokenClass === tokenClass);
  const [first] = counted;
  if (!first || counted.some((one) => one.serviceTier !== first.serviceTier || one.isBatch === null))
    return false;
  const billed = meters.filter((one) => one.tokenClass === tokenClass).map(({ meter }) => meter.quantity);
  return sumKnown(billed) === sumKnown(counted.map((one) => one.quantity));
}

/**
 * The bill has amounts alone, on lines whose labels were read to their end: such labels tell the length of requests, and name
 * a tier that is paid for beside the ordinary one (OpenAI's `priority | …`). What they do not name is most likely of none.
 */
export function areLinesLabelled({ meters }: SeriesDay): boolean {
  const charged = meters.filter(({ meter }) => meter.amountPico !== 0n);
  return (
    charged.length > 0 &&
    charged.every(
      ({ meter }) => meter.quantity === null && meter.longContext !== null && meter.isBatch === null,
    )
  );
}

/** The tiers that such labels name. */
export const LABELLED_TIERS: ReadonlySet<string> = new Set(['priority']);

/** The bill folds tiers and batch into one line, and no usage report divides it. */
export function isMixOpen({ meters }: SeriesDay): boolean {
  return meters.some(({ meter }) => meter.isBatch === null && meter.split !== 'usage_report');
}

/** Some calls of the day name no tier: they may have used any. */
export function hasUntoldCalls({ evidence }: SeriesDay): boolean {
  return evidence.observed.some((one) => one.status !== 'error' && one.serviceTier === '');
}

/** Every attempt that failed was refused by the provider itself: its client tells an HTTP status of 400 or more. */
export function areRefusalsTold({ observed, sources }: SeriesDayEvidence): boolean {
  const failed = observed.reduce((sum, one) => (one.status === 'error' ? sum + one.calls : sum), 0);
  return sources.reduce((sum, one) => sum + (one.refused ?? 0), 0) >= failed;
}

/** The model of every call of the day is the one that its answer names. */
export function areModelsAnswered({ observed, sources }: SeriesDayEvidence): boolean {
  const calls = observed.reduce((sum, one) => (one.status === 'error' ? sum : sum + one.calls), 0);
  return calls > 0 && sources.reduce((sum, one) => sum + (one.namedByAnswer ?? 0), 0) >= calls;
}
