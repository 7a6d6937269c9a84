/** Calls do not name their place or profile: where cached tokens are counted twice, each line's own cached ones are the excess. */
import { describe, expect, it } from 'vitest';
import { QUANTITY_ONE } from '../../../../../domain/billing/billedRow.js';
import type { BilledCell } from '../../../../../domain/reconciliation/matching/cells.js';
import { matchDay } from '../../../../../domain/reconciliation/matching/matchDay.js';
import { freshBesidesCached } from '../../../../../domain/reconciliation/matching/profiles.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { aBilledCell, aDay, anObservedCell, aUsageCell, BOOK, tokens, usd } from '../../support.js';
import { chargeFor, findingsOf, isBetween, observedOf, type Use, useOf } from './support.js';

/** The part of each class that is used at the second place, in thousandths: where little is fresh, much is cached. */
const THERE: Record<keyof Use, number> = { input: 310, cache_read: 820, output: 455 };
const thereOf = (use: Use, name: keyof Use) => Math.floor((use[name] * THERE[name]) / 1_000);

/** `doubled`: the places that count what is cached as input once more. */
function atPlaces(use: Use, doubled: readonly (string | null)[]): BilledCell[] {
  const there: Use = {
    input: thereOf(use, 'input'),
    cache_read: thereOf(use, 'cache_read'),
    output: thereOf(use, 'output'),
  };
  const here: Use = {
    input: use.input - there.input,
    cache_read: use.cache_read - there.cache_read,
    output: use.output - there.output,
  };
  return (
    [
      [null, here],
      ['data_zone', there],
    ] as const
  ).flatMap(([region, at]) =>
    (Object.keys(at) as (keyof Use)[]).map((tokenClass) => {
      const isMore = tokenClass === 'input' && doubled.includes(region);
      const count = BigInt(at[tokenClass] + (isMore ? at.cache_read : 0));
      const amountPico = chargeFor(tokenClass, count);
      return aBilledCell({ tokenClass, region, isBatch: false, quantity: count * QUANTITY_ONE, amountPico });
    }),
  );
}

/** Findings where these places count so on five days, what they say of a place's lines, and the use of these days. */
function doubledAt(places: readonly (string | null)[]) {
  const uses: Use[] = [];
  const findings = findingsOf({
    bill: (lines, at, use) => {
      uses[at] = use;
      return lines;
    },
    input: (input, at) => ({
      ...input,
      billed: atPlaces(uses[at] as Use, isBetween(at, 5, 9) ? places : []),
    }),
  });
  const overOf = (region: string | null) =>
    findings[0]?.lines
      .filter((line) => line.region === region)
      .reduce((sum, line) => sum + line.billedPico - line.expectedPico, 0n);
  return { findings, overOf, doubled: uses.slice(5, 10) };
}

describe('cached tokens that each of several lines counts as input once more', () => {
  it('are on each line as many as are cached there, wherever the calls were', () => {
    const { findings, overOf, doubled } = doubledAt(['data_zone', null]);
    expect(findings.map(({ kind, grade }) => `${kind} ${grade}`)).toEqual([
      'cached_tokens_double_metered HIGH',
    ]);
    const there = doubled.reduce((sum, use) => sum + BigInt(thereOf(use, 'cache_read')), 0n);
    const all = doubled.reduce((sum, use) => sum + BigInt(use.cache_read), 0n);
    expect([overOf('data_zone'), overOf(null)]).toEqual([
      chargeFor('input', there),
      chargeFor('input', all - there),
    ]);
  });

  it.each(['data_zone', null])('are found where the lines of one place alone count so: %s', (place) => {
    const { findings, overOf, doubled } = doubledAt([place]);
    expect(findings.map(({ kind, grade }) => `${kind} ${grade}`)).toEqual([
      'cached_tokens_double_metered HIGH',
    ]);
    const there = doubled.reduce((sum, use) => sum + BigInt(thereOf(use, 'cache_read')), 0n);
    const all = doubled.reduce((sum, use) => sum + BigInt(use.cache_read), 0n);
    expect(overOf(place)).toBe(chargeFor('input', place === null ? all - there : there));
    expect(findings[0]?.impactPico).toBe(overOf(place));
  });

  it('are not divided where more than one choice of lines has as many', () => {
    const alike = { input: 500n, cached: 200n };
    const oneOf = { input: 800n, cached: 400n };
    expect(freshBesidesCached([alike, alike], oneOf)).toBeUndefined();
    expect(freshBesidesCached([alike, { input: 450n, cached: 150n }], { input: 800n, cached: 350n })).toEqual(
      [500n, 300n],
    );
  });

  it('cost what their own calls’ input costs, where one line has batch calls that are mostly cached and others that are not', () => {
    // In thousandths of a class: batch calls use little fresh input, and most of what is cached.
    const share = { input: 150, cache_read: 800, output: 300 } as const;
    const inBatch = (use: Use): Use => ({
      input: Math.floor((use.input * share.input) / 1_000),
      cache_read: Math.floor((use.cache_read * share.cache_read) / 1_000),
      output: Math.floor((use.output * share.output) / 1_000),
    });
    const findings = findingsOf({
      input: (input, at) => {
        const use = useOf(at);
        const batch = inBatch(use);
        const counted = (one: Use, name: keyof Use) =>
          BigInt(one[name] + (isBetween(at, 5, 9) && name === 'input' ? one.cache_read : 0));
        const rest: Use = {
          input: use.input - batch.input,
          cache_read: use.cache_read - batch.cache_read,
          output: use.output - batch.output,
        };
        const names = Object.keys(use) as (keyof Use)[];
        return {
          ...input,
          billed: names.map((tokenClass) => {
            const [half, full] = [counted(batch, tokenClass), counted(rest, tokenClass)];
            const amountPico = chargeFor(tokenClass, half) / 2n + chargeFor(tokenClass, full);
            return aBilledCell({
              tokenClass,
              isBatch: null,
              quantity: (half + full) * QUANTITY_ONE,
              amountPico,
            });
          }),
          usage: names.flatMap((tokenClass) =>
            [rest, batch].map((one, of) =>
              aUsageCell({
                tokenClass,
                isBatch: of === 1,
                longContext: false,
                quantity: counted(one, tokenClass) * QUANTITY_ONE,
              }),
            ),
          ),
          observed: [
            observedOf(input.day, rest),
            observedOf(input.day, batch, { isBatch: true, calls: 300 }),
          ],
        };
      },
    });
    const [only, ...others] = findings;
    expect(others).toEqual([]);
    expect(only).toMatchObject({ kind: 'cached_tokens_double_metered', grade: 'HIGH' });
    const worth = [5, 6, 7, 8, 9].map(useOf).reduce((sum, use) => {
      const { cache_read: half } = inBatch(use);
      return sum + (use.cache_read - half) * 2 + half;
    }, 0);
    expect(Number(only?.impactPico) / (worth * 1e6)).toBeCloseTo(1, 6);
  });

  it('leave each inference profile the fresh tokens that its bill has besides', () => {
    const [global, us] = ['global.anthropic.claude-opus-5', 'us.anthropic.claude-opus-5'] as const;
    const line = (model: string, tokenClass: 'input' | 'cache_read', count: number) =>
      aBilledCell({ model, tokenClass, isBatch: false, quantity: tokens(count), amountPico: usd('1') });
    const inputs = (extra: number) => {
      const { buckets } = matchDay(
        BOOK,
        'aws_bedrock',
        aDay({
          billed: [
            line(global, 'input', 50_000 + 90_000 + extra),
            line(global, 'cache_read', 90_000),
            line(us, 'input', 150_000 + 10_000),
            line(us, 'cache_read', 10_000),
          ],
          observed: [
            anObservedCell({
              model: 'anthropic.claude-opus-5',
              calls: 30,
              tokens: { input: 200_000n, cache_read: 100_000n },
            }),
          ],
        }),
        DEFAULT_WEIGHTS.link,
      );
      return buckets.map(
        ({ lines }) => lines.find(({ tokenClass }) => tokenClass === 'input')?.observedQuantity,
      );
    };
    expect(inputs(0)).toEqual([tokens(50_000), tokens(150_000)]);
    // With more than is cached nothing shows whose the rest is, and the calls are divided as the bill is.
    expect(inputs(60_000)).toEqual([tokens(111_111), tokens(88_889)]);
  });
});
