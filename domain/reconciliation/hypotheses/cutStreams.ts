import type { Hypothesis, SeriesDay } from './hypothesis.js';
import { metersOf, quantityVariant, sumOf } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
  whole_answers: 'Answers that were cut off were billed as if they had been given whole.',
  more_than_seen: 'More output was billed than was seen, within what answers that were cut off can hold.',
};

/**
 * Output of calls that were cut off. Mostly the client misses the usage that the provider would have told at the end of
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
    if (whole === 0n) return [];
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
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Send the usage that a stream tells at its end also for streams that are cut off, or read what the provider charges for them in its terms.',
  ],
};

/** What the cut answers lack if they would have been as long as the others, in 1e-12 tokens. */
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
