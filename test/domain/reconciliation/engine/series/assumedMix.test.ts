/** Where the bill folds batch into its plain lines, the calls seen show the share of batch, as far as they are the billed ones. */
import { expect, it } from 'vitest';
import { aBilledCell } from '../../support.js';
import {
  chargeFor,
  findingsOf,
  isBetween,
  observedOf,
  type SeriesShape,
  type Use,
  useOf,
} from './support.js';

const BATCH_SHARE = 0.2;
const CLASSES = ['input', 'cache_read', 'output'] as const;
const sharesOf = (use: Use, share: number): Use => ({
  input: Math.round(use.input * share),
  cache_read: Math.round(use.cache_read * share),
  output: Math.round(use.output * share),
});

/** A fifth is batch, at half the price; from the 9th to the 13th day what is read from the cache costs ten times its rate. */
const foldedBatch = (seen: number): SeriesShape => ({
  input: (input, at) => {
    const use = useOf(at);
    const batch = sharesOf(use, BATCH_SHARE);
    return {
      ...input,
      billed: CLASSES.map((tokenClass) => {
        const [all, half] = [BigInt(use[tokenClass]), BigInt(batch[tokenClass])];
        const right = chargeFor(tokenClass, all) - chargeFor(tokenClass, half) / 2n;
        const isWrong = tokenClass === 'cache_read' && isBetween(at, 8, 12);
        return aBilledCell({
          tokenClass,
          isBatch: null,
          quantity: all * 10n ** 12n,
          amountPico: isWrong ? right * 10n : right,
        });
      }),
      observed: [
        observedOf(input.day, sharesOf(use, (1 - BATCH_SHARE) * seen)),
        observedOf(input.day, sharesOf(use, BATCH_SHARE * seen), { isBatch: true }),
      ],
    };
  },
});

const ofCache = (seen: number) =>
  findingsOf(foldedBatch(seen)).filter(({ kind }) => kind === 'cache_read_rate_mismatch');

it('a wrong rate is HIGH where the calls that show the mix are the billed ones', () => {
  expect(ofCache(1).map(({ grade, missing }) => [grade, missing])).toEqual([['HIGH', []]]);
});

it('nothing is certain that rests on the mix of other calls than the billed ones', () => {
  for (const seen of [0.5, 0.8])
    for (const { grade, missing } of ofCache(seen)) {
      expect(missing, `${seen} seen`).toContain('quantity_present');
      expect(grade, `${seen} seen`).not.toBe('HIGH');
    }
  expect(ofCache(0.8)).not.toEqual([]);
});

/** The rates of another model of the provider, pico-dollars for a million tokens: no multiple of this one's. */
const OTHER = { input: 2_500_000_000_000n, cache_read: 1_250_000_000_000n, output: 10_000_000_000_000n };
const ODD = [0, 1, 9, 18, 19];

/** A fifth is batch, at half of rates that are not the model's; on odd days few of the calls were seen, mostly batch. */
const atOtherRates: SeriesShape = {
  input: (input, at) => {
    const use = useOf(at);
    const batch = sharesOf(use, BATCH_SHARE);
    const [plainSeen, batchSeen] = ODD.includes(at) ? [0.1, 0.4] : [1 - BATCH_SHARE, BATCH_SHARE];
    return {
      ...input,
      billed: CLASSES.map((tokenClass) => {
        const paid = 2n * BigInt(use[tokenClass]) - BigInt(batch[tokenClass]);
        const amountPico = (paid * OTHER[tokenClass]) / 2_000_000n;
        return aBilledCell({
          tokenClass,
          isBatch: null,
          quantity: BigInt(use[tokenClass]) * 10n ** 12n,
          amountPico,
        });
      }),
      observed: [
        observedOf(input.day, sharesOf(use, plainSeen)),
        observedOf(input.day, sharesOf(use, batchSeen), { isBatch: true }),
      ],
    };
  },
};

it('rates that match no known mistake are reported where the calls seen show the mix, and neither side is blamed', () => {
  const findings = findingsOf(atOtherRates);
  const told = findings.filter(({ kind }) => kind === 'unexplained').flatMap(({ days }) => days);
  expect(told.length).toBe(20 - ODD.length);
  for (const { claimable } of findings) expect(claimable).toBe(false);
});
