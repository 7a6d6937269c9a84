/** Use on another line than the provider's own usage report counts it under is charged wrongly, whatever calls were seen. */
import { describe, expect, it } from 'vitest';
import type { TokenClass } from '../../../../../domain/events/event.js';
import { DayRates } from '../../../../../domain/reconciliation/audit/dayRates.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';
import type { BilledCell } from '../../../../../domain/reconciliation/matching/cells.js';
import {
  chargeProduct,
  picoFromChargeProduct,
} from '../../../../../domain/reconciliation/matching/classLines.js';
import { aBilledCell, anObservedCell, aUsageCell, BOOK, DAY_MICROS, tokens } from '../../support.js';
import { daysOf, findingsOfDays, isBetween, type Use, useOf } from './support.js';

type Provider = 'openai' | 'anthropic';
const MODELS = { openai: 'gpt-6-sol', anthropic: 'claude-sonnet-5' };

interface Place {
  serviceTier?: string;
  region?: string | null;
}

const entriesOf = (use: Partial<Record<TokenClass, number>>) => Object.entries(use) as [TokenClass, number][];

const lineOf = (provider: Provider, tokenClass: TokenClass, count: number, place: Place): BilledCell => {
  const { serviceTier = 'standard', region = null } = place;
  const circumstances = { serviceTier, isBatch: false, longContext: false, contextBand: 0, region };
  const rates = new DayRates(BOOK, provider, DAY_MICROS);
  const rate = rates.rate(MODELS[provider], tokenClass, circumstances)?.rate ?? 0n;
  return aBilledCell({
    model: MODELS[provider],
    tokenClass,
    isBatch: false,
    serviceTier,
    region,
    quantity: provider === 'openai' ? tokens(count) : null,
    amountPico: picoFromChargeProduct(chargeProduct(tokens(count), rate)),
    roundingPico: 50_000n,
  });
};

/** Days of which a part of the use, on the middle ones, is on the line of `place`; the report counts it as ordinary. */
function found(
  provider: Provider,
  place: Place,
  seen: (use: Use) => Partial<Record<TokenClass, number>>,
): Finding[] {
  const days = daysOf(20, (at, day) => {
    const use = useOf(at);
    const isCrossed = isBetween(at, 8, 12);
    const hour = { hourMicros: DAY_MICROS + BigInt(at) * 86_400_000_000n };
    const counts = entriesOf(seen(use)).map(([name, count]) => [name, BigInt(count)]);
    return {
      day,
      billed: entriesOf({ ...use }).flatMap(([name, count]) => {
        const moved = isCrossed ? Math.floor(count / 3) : 0;
        return [lineOf(provider, name, count - moved, {}), lineOf(provider, name, moved + 1_000, place)];
      }),
      usage: entriesOf({ ...use }).flatMap(([tokenClass, count]) => {
        const shape = { model: MODELS[provider], tokenClass, longContext: false };
        return [
          aUsageCell({ ...shape, quantity: tokens(count) }),
          aUsageCell({ ...shape, ...place, quantity: tokens(1_000) }),
        ];
      }),
      observed: [
        anObservedCell({
          model: MODELS[provider],
          calls: 1_000,
          serviceTier: 'default',
          tokens: Object.fromEntries(counts),
          ...hour,
        }),
      ],
    };
  });
  return findingsOfDays(days, provider);
}

const brief = ({ kind, variant, grade, days }: Finding) =>
  `${kind}/${variant} ${grade}: ${days[0]?.day.slice(8)} to ${days.at(-1)?.day.slice(8)}`;

const thirdOf = (rate: (use: Use) => number) =>
  [8, 9, 10, 11, 12].reduce((sum, at) => sum + rate(useOf(at)), 0) / 3;

describe('calls on a line that the usage report does not count them under', () => {
  it('were charged for a place that they were not served at', () => {
    const findings = found('anthropic', { region: 'us' }, (use) => ({ ...use }));
    expect(findings.map(brief)).toEqual(['region_uplift_misapplied/on_other_line HIGH: 13 to 17']);
    const rate = new DayRates(BOOK, 'anthropic', DAY_MICROS);
    const dollars = thirdOf((use) =>
      entriesOf({ ...use }).reduce((sum, [name, count]) => {
        const at = {
          serviceTier: 'standard',
          isBatch: false,
          longContext: false,
          contextBand: 0,
          region: null,
        };
        return sum + (count * Number(rate.rate('claude-sonnet-5', name, at)?.rate ?? 0n)) / 1e18;
      }, 0),
    );
    expect(Number(findings[0]?.impactPico) / 1e12 / (dollars * 0.1)).toBeCloseTo(1, 4);
  });

  it('were charged for a tier that did not serve them, though half of all calls were never seen', () => {
    const half = ({ input, cache_read, output }: Use) => ({
      input: Math.round(input / 2),
      cache_read: Math.round(cache_read / 2),
      output: Math.round(output / 2),
    });
    const findings = found('openai', { serviceTier: 'priority' }, half);
    expect(findings.filter(({ blame }) => blame === 'provider').map(brief)).toEqual([
      'service_tier_rate_misapplied/on_other_line HIGH: 13 to 17',
    ]);
    expect(findings.filter(({ kind }) => kind === 'client_metering_error')).toEqual([]);
  });
});

describe('cached tokens once more as input on the bill, and not in the usage report', () => {
  const findings = (againOf: (use: Use, at: number) => number) =>
    findingsOfDays(
      daysOf(20, (at, day) => {
        const use = useOf(at);
        const again = againOf(use, at);
        const half = entriesOf({ ...use }).map(([name, count]) => [name, BigInt(Math.round(count / 2))]);
        return {
          day,
          billed: entriesOf({ ...use, input: use.input + again }).map(([name, count]) => ({
            ...lineOf('openai', name, count, {}),
            isBatch: null,
          })),
          usage: entriesOf({ ...use }).map(([tokenClass, count]) =>
            aUsageCell({ model: MODELS.openai, tokenClass, quantity: tokens(count) }),
          ),
          observed: [
            anObservedCell({
              model: MODELS.openai,
              calls: 500,
              serviceTier: 'default',
              hourMicros: DAY_MICROS + BigInt(at) * 86_400_000_000n,
              tokens: Object.fromEntries(half),
            }),
          ],
        };
      }),
    ).filter(({ blame }) => blame === 'provider');

  it('are found without the calls: batch and standard on one line, and half of the calls unseen', () => {
    const found = findings((use, at) => (isBetween(at, 8, 12) ? use.cache_read : 0));
    expect(found.map(brief)).toEqual([
      'cached_tokens_double_metered/again_beyond_usage_report HIGH: 13 to 17',
    ]);
    const cached = 3 * thirdOf((use) => use.cache_read);
    expect(Number(found[0]?.impactPico) / 1e12).toBeCloseTo((cached * 2) / 1e6, 6);
  });

  it('are found of one key, whose tokens are another part of the cached ones each day', () => {
    const ofKey = (use: Use, at: number) => Math.floor((use.cache_read * (80 + ((at * 7) % 17))) / 100);
    const found = findings((use, at) => (isBetween(at, 8, 12) ? ofKey(use, at) : 0));
    expect(found.map(brief)).toEqual([
      'cached_tokens_double_metered/again_beyond_usage_report HIGH: 13 to 17',
    ]);
    const cached = [8, 9, 10, 11, 12].reduce((sum, at) => sum + ofKey(useOf(at), at), 0);
    expect(Number(found[0]?.impactPico) / 1e12).toBeCloseTo((cached * 2) / 1e6, 6);
  });

  it('are not found where the input is off by one factor', () => {
    const found = findings((use, at) => (isBetween(at, 8, 12) ? use.input / 2 : 0));
    expect(found.filter(({ kind }) => kind === 'cached_tokens_double_metered')).toEqual([]);
  });
});
