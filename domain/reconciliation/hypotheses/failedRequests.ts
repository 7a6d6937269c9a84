import type { Hypothesis } from './hypothesis.js';
import { quantityVariant } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
  all: 'Attempts that failed were billed.',
  input_only: 'The input of attempts that failed was billed.',
};

/**
 * What failed attempts used, on top of what succeeded. Needs clients that log their failures with usage, and for HIGH with the
 * provider's HTTP status: an answer that only the client's own parser or timeout refused is rightly billed.
 */
export const failedRequests: Hypothesis = {
  kind: 'failed_request_billed',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage', 'failed_attempts', 'refusals_told'],
  variants: (day) => {
    const failed = day.meters.filter((meter) => meter.failed > 0n);
    if (failed.length === 0) return [];
    const isOutput = (name: string) => name === 'output' || name === 'output_audio';
    const input = failed.filter((meter) => !isOutput(meter.tokenClass));
    const counting = (meters: typeof failed) =>
      new Map(meters.map((meter) => [meter.index, meter.observed + meter.failed]));
    const variants = [quantityVariant(day, 'all', counting(failed))];
    if (input.length > 0 && input.length < failed.length)
      variants.push(quantityVariant(day, 'input_only', counting(input)));
    return variants;
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Only attempts that the provider answered with an HTTP status of 400 or more are free: look whether these had one, and send http_status with every failed attempt.',
    'Give the ids of the failed requests with their status and time.',
  ],
};
