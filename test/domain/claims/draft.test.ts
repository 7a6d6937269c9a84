import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DraftDispute,
  leastSure,
  type NettedUndercharge,
  netDraft,
  nettedPicoOf,
  planDrafts,
} from '../../../domain/claims/draft.js';
import { DISPUTE_TIERS } from '../../../domain/claims/financialSummary.js';
import { PICO_PER_USD } from '../../../domain/money.js';
import { testSeed } from '../../fakes/seededRandom.js';

const CENT = PICO_PER_USD / 100n;
const PARAMETERS = { seed: testSeed(), numRuns: 1_000 };

function aDispute(
  id: string,
  days: readonly (readonly [day: string, impactPico: bigint])[],
  given: Partial<DraftDispute> = {},
): DraftDispute {
  const sorted = [...days].sort(([a], [b]) => (a < b ? -1 : 1));
  const total = sorted.reduce((sum, [, impactPico]) => sum + impactPico, 0n);
  return {
    id,
    findingId: `f-${id}`,
    provider: 'openai',
    accountId: 'a',
    model: 'm',
    kind: 'cache_read_rate_mismatch',
    tier: 'HIGH',
    reason: '',
    notes: null,
    periodStart: sorted[0]?.[0] ?? '',
    periodEnd: sorted.at(-1)?.[0] ?? '',
    amountCents: Number(total / CENT),
    billedPico: total * 2n,
    expectedPico: total,
    openedAtMicros: 0n,
    days: sorted.map(([day, impactPico]) => ({
      ...{ day, variant: 'v', billedPico: impactPico * 2n, expectedPico: impactPico, impactPico },
      ...{ ratePico: impactPico, volumePico: 0n, ownPricingPico: 0n },
    })),
    evidence: {
      ...{ grade: 'HIGH', probability: 0.97, matchProbability: 0.99, visibility: 'V3', missing: [] },
      ...{ next: null, lines: [], waterfall: [], advice: [], weightSet: 'default-1', runId: 'r' },
      invoiceId: null,
    },
    ...given,
  };
}

const anUndercharge = (
  findingId: string,
  day: string,
  size: bigint,
  given: Partial<NettedUndercharge> = {},
): NettedUndercharge => ({
  ...{ findingId, day, provider: 'openai', accountId: 'a', model: 'm', kind: 'list_rate_mismatch' },
  ...{ variant: '', billedPico: 0n, expectedPico: size, impactPico: -size, reason: '', ...given },
});

const usd = (dollars: bigint) => dollars * PICO_PER_USD;
const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

const days = ['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02', '2026-04-01'];
const account = { provider: fc.constantFrom('openai', 'anthropic'), accountId: fc.constantFrom('', 'a') };
const drawnDisputes = fc
  .array(
    fc.record({
      ...account,
      kind: fc.constantFrom(
        'list_rate_mismatch' as const,
        'tool_fee_mismatch' as const,
        'unexplained' as const,
      ),
      tier: fc.constantFrom(...DISPUTE_TIERS),
      days: fc.uniqueArray(fc.tuple(fc.constantFrom(...days), fc.bigInt({ min: CENT, max: usd(20n) })), {
        minLength: 1,
        maxLength: 4,
        selector: ([day]) => day,
      }),
    }),
    { maxLength: 8 },
  )
  .map((all) => all.map(({ days: on, ...rest }, at) => aDispute(`d${at}`, on, rest)));
const drawnUndercharges = fc
  .array(
    fc.record({
      ...account,
      day: fc.constantFrom(...days),
      size: fc.bigInt({ min: 1n, max: usd(12n) }),
    }),
    { maxLength: 8 },
  )
  .map((all) => all.map(({ day, size, ...rest }, at) => anUndercharge(`u${at}`, day, size, rest)));

describe('a claim over chosen disputes', () => {
  it('asks for the days of its disputes less the undercharges, rounded down to the cent', () => {
    const disputes = [
      aDispute('b', [['2026-03-10', 3_009_999_999_999n]], { tier: 'MEDIUM' }),
      aDispute('a', [['2026-03-02', usd(1n)]]),
    ];
    const draft = netDraft('claim', { disputes, undercharges: [anUndercharge('u', '2026-03-05', 1n)] });
    expect(draft).toMatchObject({
      ...{ periodStart: '2026-03-02', periodEnd: '2026-03-10', tier: 'MEDIUM' },
      ...{ disputedPico: 4_009_999_999_999n, nettedPico: 1n, recoverablePico: 4_009_999_999_998n },
      recoverableCents: 400n,
    });
    expect(draft?.disputes.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('of which less than a cent is left is refused', () => {
    const disputes = [aDispute('a', [['2026-03-02', usd(1n)]])];
    const less = (size: bigint) =>
      netDraft('claim', { disputes, undercharges: [anUndercharge('u', '2026-03-02', size)] });
    expect(less(usd(1n) - CENT)?.recoverableCents).toBe(1n);
    expect(less(usd(1n) - CENT + 1n)).toBeUndefined();
    expect(less(usd(2n))).toBeUndefined();
  });

  it('is over one account of one provider', () => {
    const one = aDispute('a', [['2026-03-02', usd(1n)]]);
    const other = aDispute('b', [['2026-03-02', usd(1n)]], { accountId: 'b' });
    expect(() => netDraft('claim', { disputes: [one, other], undercharges: [] })).toThrow(RangeError);
    expect(() => netDraft('claim', { disputes: [], undercharges: [] })).toThrow(RangeError);
    const undercharges = [anUndercharge('u', '2026-03-02', 1n, { provider: 'anthropic' })];
    expect(() => netDraft('claim', { disputes: [one], undercharges })).toThrow(RangeError);
  });

  it('foots, and is the same in whatever order its parts come', () => {
    fc.assert(
      fc.property(drawnDisputes, drawnUndercharges, fc.integer(), (someDisputes, someUndercharges, turn) => {
        const one = <T extends DraftDispute | NettedUndercharge>(all: readonly T[]) =>
          all.map((part) => ({ ...part, provider: 'openai', accountId: 'a' }));
        const disputes = one(someDisputes);
        const undercharges = one(someUndercharges);
        fc.pre(disputes.length > 0);
        const draft = netDraft('claim', { disputes, undercharges });
        const impactPico = sum(disputes.flatMap((dispute) => dispute.days.map((day) => day.impactPico)));
        const rest = impactPico - nettedPicoOf(undercharges);
        expect(draft?.recoverableCents).toBe(rest >= CENT ? rest / CENT : undefined);
        if (draft) {
          expect(draft.billedPico - draft.expectedPico).toBe(draft.disputedPico);
          expect(draft.disputedPico - draft.nettedPico).toBe(draft.recoverablePico);
          expect(draft.tier).toBe(leastSure(disputes.map(({ tier }) => tier)));
        }
        const turned = { disputes: rotate(disputes, turn), undercharges: rotate(undercharges, turn) };
        expect(netDraft('claim', turned)).toEqual(draft);
      }),
      PARAMETERS,
    );
  });
});

function rotate<T>(all: readonly T[], by: number): T[] {
  const at = all.length === 0 ? 0 : Math.abs(by) % all.length;
  return [...all.slice(at), ...all.slice(0, at)].reverse();
}

describe('claims that a run drafts', () => {
  it('are one for each provider, account, kind and month', () => {
    const { drafts, withheld } = planDrafts(
      [
        aDispute('a', [['2026-03-02', usd(9n)]]),
        aDispute('b', [['2026-03-20', usd(1n)]], { model: 'other' }),
        aDispute('c', [['2026-04-02', usd(8n)]]),
        aDispute('d', [['2026-03-02', usd(7n)]], { kind: 'tool_fee_mismatch' }),
        aDispute('e', [['2026-03-02', usd(6n)]], { accountId: 'b' }),
        aDispute('f', [['2026-03-02', usd(5n)]], { provider: 'anthropic' }),
      ],
      [],
    );
    expect(drafts.map(({ group }) => group.disputes.map(({ id }) => id).join(''))).toEqual([
      ...['ab', 'c', 'd', 'e', 'f'],
    ]);
    expect(withheld).toEqual([]);
  });

  it('net the undercharges of a month where there is most, and the rest in the next one', () => {
    const disputes = [
      aDispute('large', [['2026-03-02', usd(10n)]]),
      aDispute('small', [['2026-03-02', usd(5n)]], { kind: 'tool_fee_mismatch' }),
    ];
    const undercharges = [
      anUndercharge('u', '2026-03-01', usd(6n)),
      anUndercharge('v', '2026-03-30', usd(4n)),
      anUndercharge('elsewhere', '2026-04-01', usd(99n)),
      anUndercharge('other', '2026-03-01', usd(99n), { accountId: 'b' }),
    ];
    expect(shown(planDrafts(disputes, undercharges).drafts)).toEqual([
      ['large', 'u'],
      ['small', 'v'],
    ]);
  });

  it('of a month with more undercharges than the overcharges can bear are withheld, and marked as such', () => {
    const disputes = [
      aDispute('large', [['2026-03-02', usd(10n)]]),
      aDispute('small', [['2026-03-02', usd(5n)]], { kind: 'tool_fee_mismatch' }),
      aDispute('april', [['2026-04-02', usd(1n)]]),
    ];
    const undercharges = [anUndercharge('u', '2026-03-01', usd(12n))];
    const { drafts, withheld } = planDrafts(disputes, undercharges);
    expect(shown(drafts)).toEqual([['april']]);
    expect(withheld.map(({ group, underchargedPico }) => [group.disputes[0]?.id, underchargedPico])).toEqual([
      ['large', usd(12n)],
      ['small', usd(12n)],
    ]);
  });

  it('have every dispute once, and net every undercharge of their months once, whatever the order', () => {
    fc.assert(
      fc.property(drawnDisputes, drawnUndercharges, fc.integer(), (disputes, undercharges, turn) => {
        const plan = planDrafts(disputes, undercharges);
        const groups = [...plan.drafts, ...plan.withheld].map(({ group }) => group);
        expect(groups.flatMap((group) => group.disputes.map(({ id }) => id)).sort()).toEqual(
          disputes.map(({ id }) => id).sort(),
        );
        const netted = plan.drafts.flatMap((draft) => draft.undercharges);
        expect(new Set(netted).size).toBe(netted.length);
        for (const one of undercharges) {
          const touched = plan.drafts.some(
            ({ group }) =>
              group.provider === one.provider &&
              group.accountId === one.accountId &&
              group.disputes.some((dispute) =>
                dispute.days.some(({ day }) => day.slice(0, 7) === one.day.slice(0, 7)),
              ),
          );
          expect(netted.includes(one)).toBe(touched);
        }
        for (const { group, undercharges: taken } of plan.drafts)
          expect(netDraft('x', { disputes: group.disputes, undercharges: taken })).toBeDefined();
        const turned = planDrafts(rotate(disputes, turn), rotate(undercharges, turn));
        expect(shown(turned.drafts)).toEqual(shown(plan.drafts));
      }),
      PARAMETERS,
    );
  });

  it('leave nothing that another plan would draft', () => {
    fc.assert(
      fc.property(drawnDisputes, drawnUndercharges, (disputes, undercharges) => {
        const { drafts, withheld } = planDrafts(disputes, undercharges);
        const netted = new Set(drafts.flatMap((draft) => draft.undercharges));
        const again = planDrafts(
          withheld.flatMap(({ group }) => group.disputes),
          undercharges.filter((one) => !netted.has(one)),
        );
        expect(again.drafts).toEqual([]);
      }),
      PARAMETERS,
    );
  });
});

const shown = (drafts: ReturnType<typeof planDrafts>['drafts']) =>
  drafts.map(({ group, undercharges }) => [
    ...group.disputes.map(({ id }) => id).sort(),
    ...undercharges.map(({ findingId }) => findingId).sort(),
  ]);
