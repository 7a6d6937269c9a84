import type { TokenClass } from '../../../events/event.js';
import { AGREE_PERCENT, NOISE_PERCENT } from '../calibration.js';
import { coversMost, type Hypothesis, lasts, type SeriesDay, sentenceOf, touchesEdge } from './cause.js';
import { cannotTell } from './client.js';
import {
  CACHED,
  countedVariant,
  countsByClass,
  isOneRatioOf,
  metersOf,
  quantityVariant,
  sumOf,
} from './predict.js';

const WORDS = {
  all: 'Attempts that failed were billed.',
  input_only: 'The input of attempts that failed was billed.',
};

/**
 * The use of failed attempts, on top of the successful ones. Needs clients that log their failures with usage, and for
 * HIGH with the provider's HTTP status: an answer that only the client's own parser or timeout refused is rightly billed.
 */
export const failedRequests: Hypothesis = {
  kind: 'failed_request_billed',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage', 'failed_attempts', 'refusals_told'],
  variants: (day) => {
    const failed = day.meters.filter((meter) => meter.failed > 0n);
    if (failed.length === 0) return [];
    const isOutput = (tokenClass: string) => tokenClass === 'output' || tokenClass === 'output_audio';
    const input = failed.filter((meter) => !isOutput(meter.tokenClass));
    const counting = (meters: typeof failed) =>
      new Map(meters.map((meter) => [meter.index, meter.observed + meter.failed]));
    const variants = [countedVariant(day, 'all', counting(failed))];
    if (input.length > 0 && input.length < failed.length)
      variants.push(countedVariant(day, 'input_only', counting(input)));
    return variants;
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Only attempts that the provider answered with an HTTP status of 400 or more are free: look whether these had one, and send http_status with every failed attempt.',
    'Give the ids of the failed requests with their status and time.',
  ],
};

const CUT_STREAMS_WORDS = {
  whole_answers: 'Answers that were cut off were billed as if they had been given whole.',
  more_than_seen: 'More output was billed than was seen, within what answers that were cut off can hold.',
};

/**
 * Output of calls that were cut off. Mostly the client misses the usage that the provider would have reported at the end of
 * the stream, and some providers charge the whole answer by their own terms: never more than a reason to look.
 */
export const cutStreams: Hypothesis = {
  kind: 'cancelled_stream_overbilled',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  highest: 'LOW',
  reviewOnly: true,
  variants: (day) => {
    const added = wholeAnswers(day);
    if (added === 0n) return [];
    const outputs = metersOf(day, 'output').filter((meter) => meter.interrupted > 0n || meter.observed > 0n);
    const cut = sumOf(outputs.map((meter) => meter.interrupted));
    const seen = sumOf(outputs.map((meter) => meter.observed));
    const weightOf = (meter: (typeof outputs)[number]) => (cut > 0n ? meter.interrupted : meter.observed);
    const whole = cut > 0n ? cut : seen;
    // Amounts alone show no count of output: what is dearer for another reason would seem to be cut answers.
    if (whole === 0n || outputs.some(({ meter }) => meter.quantity === null)) return [];
    const variants = [
      quantityVariant(
        day,
        'whole_answers',
        new Map(outputs.map((meter) => [meter.index, meter.observed + (added * weightOf(meter)) / whole])),
      ),
    ];
    const excess = sumOf(outputs.map(({ meter }) => meter.quantity ?? 0n)) - seen;
    if (excess > 0n && excess <= added * 2n)
      variants.push(
        quantityVariant(day, 'more_than_seen', new Map(outputs.map((meter) => [meter.index, null]))),
      );
    return variants;
  },
  describe: (variant) => sentenceOf(CUT_STREAMS_WORDS, variant),
  advise: () => [
    'Send the usage that a stream tells at its end also for streams that are cut off, or read what the provider charges for them in its terms.',
  ],
};

/** The tokens that cut answers lack if they would have been as long as the others, in 1e-12 tokens. */
function wholeAnswers({ evidence }: SeriesDay): bigint {
  const of = (status: string) => evidence.observed.filter((one) => one.status === status);
  const count = (vectors: typeof evidence.observed) =>
    BigInt(vectors.reduce((sum, one) => sum + one.calls, 0));
  const output = (vectors: typeof evidence.observed) => sumOf(vectors.map((one) => one.tokens.output));
  const [whole, cut] = [of('ok'), of('cancelled')];
  if (count(whole) === 0n || count(cut) === 0n) return 0n;
  const expected = (output(whole) * count(cut) * 10n ** 12n) / count(whole);
  const missing = expected - output(cut) * 10n ** 12n;
  return missing > 0n ? missing : 0n;
}

const INFLATION_WORDS = {
  class: 'One class was billed in another quantity than was seen, while the others agree: %.',
};

/**
 * One class counts otherwise than the answers' own usage did, by one factor, and the others do not. Providers' internal
 * work and missing counts of the client look alike, so it is for a person to judge.
 */
export const countInflation: Hypothesis = {
  kind: 'token_count_inflation',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  highest: 'LOW',
  reviewOnly: true,
  variants: (day) =>
    countsByClass(day).flatMap(({ tokenClass, meters, billed, observed }) => {
      const difference = billed > observed ? billed - observed : observed - billed;
      const isAlone = meters.length === day.meters.length;
      // Where clients report that they lack cached input, no count of it is held against the bill.
      if (isAboutCache(tokenClass) && cannotTell(day.evidence.sources)) return [];
      // Some of the clients may count cached tokens inside the input.
      if (tokenClass === 'input' && billed < observed && cachedOf(day) > 0n) return [];
      if (!othersAgree(day, tokenClass)) return [];
      if (isAlone || billed === 0n || observed === 0n || difference * 100n < observed * NOISE_PERCENT)
        return [];
      return [
        quantityVariant(day, `class:${tokenClass}`, new Map(meters.map((meter) => [meter.index, null]))),
      ];
    }),
  fits: (run, context) => lasts(run) && !coversMost(run, context) && !touchesEdge(run, context),
  isOneRatio: true,
  describe: (variant) => sentenceOf(INFLATION_WORDS, variant),
  advise: () => [
    'Compare the usage objects of some answers with the bill; give both with the request ids when asking.',
  ],
};

const cachedOf = (day: SeriesDay): bigint => sumOf(metersOf(day, ...CACHED).map((meter) => meter.observed));

function othersAgree(day: SeriesDay, tokenClass: string): boolean {
  const others = countsByClass(day).filter((one) => one.tokenClass !== tokenClass && one.billed > 0n);
  const shares = others.map(({ billed, observed }) => (observed * 1_000n) / billed);
  return isOneRatioOf(shares, AGREE_PERCENT);
}

const isAboutCache = (tokenClass: TokenClass): boolean =>
  tokenClass === 'input' || CACHED.includes(tokenClass);
