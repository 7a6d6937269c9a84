import { describe, expect, it } from 'vitest';
import { ACCOUNT } from '../../support.js';
import {
  chargeFor,
  findingsOf,
  isBetween,
  linesFor,
  MODEL,
  observedOf,
  type SeriesShape,
  type Use,
} from '../series/support.js';
import { merged, said, scaled, withoutTier } from './bills.js';

const EPISODE: [number, number] = [6, 13];
const HOW_LONG = {
  'on all days': () => true,
  'from some day on': (at: number) => at >= 10,
  'for some days': (at: number) => isBetween(at, ...EPISODE),
};

describe('the rates of another tier', () => {
  const asPriority = (isWrong: (at: number) => boolean): SeriesShape => ({
    bill: (lines, at) => (isWrong(at) ? scaled(lines, 2n, 1n) : lines),
  });

  it('are for the client to report where no call and no usage report contains the tier', () => {
    for (const isWrong of Object.values(HOW_LONG))
      for (const of of [withoutTier, (input: Parameters<typeof merged>[0]) => merged(withoutTier(input))]) {
        const [finding, more] = findingsOf({ ...asPriority(isWrong), input: of });
        expect(more).toBeUndefined();
        expect(finding && said(finding)).toMatchObject({
          is: 'client_metering_error/tier_not_told:priority',
          blame: 'own',
          claimable: false,
        });
      }
  });

  it('are the provider’s mistake where the lines’ labels would name the tier, though no call and no usage report contains it', () => {
    const named = (input: Parameters<typeof merged>[0]) => ({
      ...withoutTier(input),
      billed: input.billed.map((one) => ({ ...one, tierNamed: true as const })),
    });
    const [finding, more] = findingsOf({ ...asPriority(HOW_LONG['for some days']), input: named });
    expect(more).toBeUndefined();
    expect(finding && said(finding)).toEqual({
      is: 'service_tier_rate_misapplied/tier:standard as priority',
      blame: 'provider',
      claimable: true,
      grade: 'HIGH',
    });
  });

  it('are for the client to report where one of the copies of a line has no such label', () => {
    const partly = (input: Parameters<typeof merged>[0]) => ({
      ...withoutTier(input),
      billed: input.billed.flatMap((one) => [
        { ...one, tierNamed: true as const },
        { ...one, quantity: 0n, amountPico: 0n },
      ]),
    });
    const [finding] = findingsOf({ ...asPriority(HOW_LONG['for some days']), input: partly });
    expect(finding && said(finding)).toMatchObject({
      is: 'client_metering_error/tier_not_told:priority',
      blame: 'own',
    });
  });

  it('are the provider’s mistake for some days between right ones, where answers contain the tier', () => {
    const [finding] = findingsOf(asPriority(HOW_LONG['for some days']));
    expect(finding && said(finding)).toEqual({
      is: 'service_tier_rate_misapplied/tier:standard as priority',
      blame: 'provider',
      claimable: true,
      grade: 'HIGH',
    });
  });
});

describe('discounts', () => {
  const told = (input: Parameters<typeof merged>[0], words: readonly [string, number][]) => ({
    ...merged(input),
    observed: words.flatMap(([serviceTier, percent]) =>
      input.observed.map((one) => {
        const part = (name: keyof Use) => Number((one.tokens[name] * BigInt(percent)) / 100n);
        const use = { input: part('input'), cache_read: part('cache_read'), output: part('output') };
        return observedOf(input.day, use, { serviceTier, calls: percent * 10 });
      }),
    ),
  });

  it('are no terms where clients name a tier that they asked for and did not get', () => {
    const [finding] = findingsOf({ input: (input) => told(input, [['priority', 100]]) });
    expect(finding && said(finding)).toMatchObject({
      is: 'client_metering_error/tier_as_requested:priority',
      blame: 'own',
      claimable: false,
    });
  });

  it('may be a mixture of tiers where some calls contain none, and are then no reason to enter a contract', () => {
    const [finding] = findingsOf({
      bill: (lines) => scaled(lines, 85n, 100n),
      input: (input) =>
        told(input, [
          ['', 90],
          ['flex', 10],
        ]),
    });
    expect(finding && said(finding)).toMatchObject({
      is: 'client_metering_error/cheaper_share:10.5',
      blame: 'own',
    });
    expect(finding?.grade).not.toBe('HIGH');
    expect(finding?.next?.kind).toBe('contract_terms');
    expect(finding?.advice[0]).toContain('send service_tier of the provider’s answer');
  });

  it('are terms without an entry where every call contains its tier', () => {
    const [finding] = findingsOf({ bill: (lines) => scaled(lines, 85n, 100n), input: merged });
    expect(finding?.kind).toBe('contract_terms');
  });
});

describe('fresh input that lacks the cached tokens', () => {
  const CACHED = 30_000_000;
  const takenOff = (isWrong: (at: number) => boolean): SeriesShape => ({
    seen: (use, at) => ({
      ...use,
      cache_read: CACHED + (at % 3),
      input: isWrong(at) ? use.input - CACHED - (at % 3) : use.input,
    }),
    bill: (_lines, at, use) => linesFor({ ...use, cache_read: CACHED + (at % 3) }),
  });

  it('is the client’s before it is the provider’s where it has no end on both sides', () => {
    for (const isWrong of [HOW_LONG['on all days'], HOW_LONG['from some day on']]) {
      const [finding] = findingsOf(takenOff(isWrong));
      expect(finding && said(finding)).toEqual({
        is: 'client_metering_error/cached_taken_off_twice',
        blame: 'own',
        claimable: false,
        grade: 'LOW',
      });
      expect(finding?.next?.kind).toBe('cached_tokens_double_metered');
    }
  });

  it('is double metering for some days between right ones', () => {
    const [finding] = findingsOf(takenOff(HOW_LONG['for some days']));
    expect(finding?.kind).toBe('cached_tokens_double_metered');
  });
});

describe('one class with deviating counts', () => {
  const share = (name: keyof Use, isWrong: (at: number) => boolean): NonNullable<SeriesShape['seen']> => {
    return (use, at) =>
      isWrong(at) ? { ...use, [name]: Math.round(use[name] * (0.6 + 0.01 * (at % 4))) } : use;
  };

  it('is the client’s from a release on: reasoning that is left out', () => {
    for (const isWrong of [HOW_LONG['on all days'], HOW_LONG['from some day on']]) {
      const [finding] = findingsOf({ seen: share('output', isWrong) });
      expect(finding && said(finding)).toMatchObject({
        is: 'client_metering_error/reasoning_missing',
        blame: 'own',
      });
    }
  });

  it('is unexplained at an edge of the known days', () => {
    const kinds = findingsOf({ seen: share('cache_read', HOW_LONG['from some day on']) }).map(
      (one) => one.kind,
    );
    expect(kinds).toEqual(['unexplained']);
  });

  it('is the client’s where it reports itself that it cannot distinguish cached input', () => {
    const sources = new Map([
      [ACCOUNT, new Map([[MODEL, [{ serviceName: 'chat', calls: 1000, callsWithoutCache: 400 }]]])],
    ]);
    for (const isWrong of [HOW_LONG['from some day on'], HOW_LONG['for some days']]) {
      const [finding] = findingsOf({
        seen: share('cache_read', isWrong),
        input: (input) => ({ ...input, sources }),
      });
      expect(finding && said(finding)).toMatchObject({
        is: 'client_metering_error/class_missing:cache_read',
      });
      expect(finding?.advice[0]).toContain('service chat');
    }
  });

  it('for some days is to be reviewed, and is never claimable', () => {
    const [finding] = findingsOf({
      bill: (lines, at, use) =>
        isBetween(at, ...EPISODE)
          ? { ...lines, output: linesFor({ ...use, output: use.output * 1.25 }).output }
          : lines,
    });
    expect(finding && said(finding)).toMatchObject({
      is: 'token_count_inflation/class:output',
      claimable: false,
    });
    expect(finding?.recoverablePico).toBe(0n);
    expect(finding?.impactPico).toBeGreaterThan(chargeFor('output', 1n));
  });
});
