import { summarize } from '../../domain/claims/financialSummary.js';
import { listDays, shiftDay } from '../../domain/period.js';
import type { ReportFigures, SpendBy, SpendGroup } from '../../domain/reports/figures.js';
import { periodBefore, type ReportPeriod } from '../../domain/reports/report.js';
import { chargeBack } from '../../domain/usage/chargeback.js';

const USD = 1_000_000_000_000n;

const sums = (groups: readonly SpendGroup[]): SpendBy => {
  const add = (of: (group: SpendGroup) => number) => groups.reduce((sum, group) => sum + of(group), 0);
  return {
    totals: {
      calls: add(({ calls }) => calls),
      inputTokens: add(({ inputTokens }) => inputTokens),
      outputTokens: add(({ outputTokens }) => outputTokens),
      cacheRead: 0,
      cacheCreation: 0,
      costPico: groups.reduce((sum, { costPico }) => sum + costPico, 0n),
      unpriced: add(({ unpriced }) => unpriced),
    },
    groups,
  };
};

const group = (key: string, costPico: bigint): SpendGroup => ({
  key,
  calls: Number(costPico / (USD / 40n)) + 1,
  inputTokens: Number(costPico / 1_000_000n) + 100,
  outputTokens: Number(costPico / 4_000_000n) + 40,
  cacheRead: 0,
  cacheCreation: 0,
  costPico,
  unpriced: 0,
});

/** Spend of a day, the same each time: less on weekends, growing, with thirds of a pico-dollar that must be rounded. */
const daySpend = (at: number): bigint =>
  ((at % 7 < 5 ? 310n : 120n) * USD +
    BigInt(at) * 3_333_333_333_333n +
    BigInt((at * 37) % 11) * 9_876_543_210_987n) /
  1n;

const NO_SPEND = sums([]);

/** A report's figures without a database: nothing, or calls, alerts, blocked calls, bills and claims of so many teams. */
export function reportFigures({
  period = { fromDay: '2026-10-01', toDay: '2026-10-31' },
  teams = 0,
}: {
  period?: ReportPeriod;
  teams?: number;
} = {}): ReportFigures {
  const previous = periodBefore(period);
  const base = { period, previous, asOfMicros: 1_793_880_000_000_000n };
  const enforcement = { preventedPico: 0n, preventableModeledPico: 0n };
  if (teams === 0)
    return {
      ...base,
      spend: {
        ...{ models: NO_SPEND, previousModels: NO_SPEND, days: NO_SPEND, previousDays: NO_SPEND },
        chargeback: {
          ...chargeBack([], { costPico: 0n, tokens: 0, rows: 0 }, 'none', []),
          allocation: 'none',
        },
        adjustmentsPico: null,
      },
      violations: { alerts: [], previousAlerts: 0, policies: [] },
      enforcement: {
        ...{ calls: 0, callsWithoutAmount: 0, preventedPico: 0n, rules: [], previousPreventedPico: 0n },
        ...{ blocking: 0, observing: 0, modeled: null },
      },
      reconciliation: { billedPico: 0n, matchedByGrade: {}, summary: summarize([], enforcement), claims: [] },
    };
  const dayList = listDays(period.fromDay, shiftDay(period.toDay, 1));
  const days = sums(dayList.map((day, at) => group(day, daySpend(at))));
  const total = days.totals.costPico;
  const share = (weights: readonly number[], names: readonly string[]) => {
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    const parts = weights.map((weight) => (total * BigInt(weight)) / BigInt(all));
    parts[0] = (parts[0] ?? 0n) + total - parts.reduce((sum, part) => sum + part, 0n);
    const groups = parts.map((part, at) => group(names[at] ?? '', part));
    // The same calls and tokens whichever way they are grouped.
    const [first] = groups as [SpendGroup];
    for (const name of ['calls', 'inputTokens', 'outputTokens'] as const)
      first[name] += days.totals[name] - groups.reduce((sum, one) => sum + one[name], 0);
    return sums(groups);
  };
  const models = share(
    [44, 20, 16, 9, 6, 3, 2],
    [
      'claude-opus-5',
      'gpt-6-sol',
      'gpt-5.6-terra',
      'claude-sonnet-5-5',
      'claude-haiku-4-5',
      'gpt-5-mini',
      '',
    ],
  );
  const names = Array.from({ length: teams }, (_, at) =>
    teams === 1
      ? 'platform'
      : `team-${String(at + 1).padStart(2, '0')}-${['growth', 'search', 'support', 'billing'][at % 4]}`,
  );
  const byTeam = share(
    names.map((_, at) => teams - at + 2),
    names,
  );
  const called = byTeam.groups.map(({ key, costPico, calls, inputTokens, outputTokens }) => ({
    ...{ key, costPico, rows: calls, tokens: inputTokens + outputTokens },
  }));
  const all = called.reduce(
    (sum, { costPico, rows, tokens }) => ({
      costPico: sum.costPico + costPico,
      ...{ rows: sum.rows + rows, tokens: sum.tokens + tokens },
    }),
    { costPico: 0n, rows: 0, tokens: 0 },
  );
  const alerts = dayList.flatMap((day, at) =>
    (['high', 'medium', 'low'] as const).flatMap((severity, place) =>
      (at + place) % 4 === 0
        ? [
            {
              ...{ day, severity, notice: null, alerts: 3 + ((at * 7 + place) % 9) },
              policyType: severity === 'high' ? ('banned_patterns' as const) : ('approved_models' as const),
              status: at % 3 === 0 ? ('open' as const) : ('acknowledged' as const),
              costPico: BigInt(at + 1) * 123_456_789_012n,
            },
          ]
        : [],
    ),
  );
  const billedPico = (total * 104n) / 100n;
  return {
    ...base,
    spend: {
      models,
      previousModels: sums(models.groups.map((one) => group(one.key, (one.costPico * 9n) / 10n))),
      days,
      previousDays: sums(
        listDays(previous.fromDay, period.fromDay).map((day, at) => group(day, (daySpend(at) * 9n) / 10n)),
      ),
      chargeback: { ...chargeBack(called, all, 'none', []), allocation: 'none' },
      adjustmentsPico: null,
    },
    violations: {
      alerts,
      previousAlerts: 41,
      policies: [
        { type: 'approved_models', enabled: true },
        { type: 'banned_patterns', enabled: true },
        { type: 'key_environment_check', enabled: false },
      ],
    },
    enforcement: {
      ...{ calls: 214, callsWithoutAmount: 3, preventedPico: 318n * USD + 333_333_333_333n },
      rules: [
        {
          name: 'Session budget of the support bot',
          calls: 120,
          preventedPico: 201n * USD + 111_111_111_111n,
        },
        { name: 'Token ceiling', calls: 80, preventedPico: 90n * USD + 222_222_222_222n },
        { name: 'Repeated prompts within a minute', calls: 14, preventedPico: 27n * USD },
      ],
      ...{ previousPreventedPico: 290n * USD, blocking: 3, observing: 1 },
      modeled: {
        ...{ fromMicros: 1_790_812_800_000_000n, toMicros: 1_793_404_800_000_000n, isOfPeriod: false },
        ...{ asOfMicros: 1_793_448_000_000_000n, savedPico: 512n * USD + 400_000_000_000n },
        rules: [
          { name: 'Session budget of the support bot', calls: 301, savedPico: 400n * USD + 400_000_000_000n },
          { name: 'Smaller model for summaries', calls: 1_204, savedPico: 112n * USD },
        ],
      },
    },
    reconciliation: {
      billedPico,
      matchedByGrade: {
        HIGH: (billedPico * 90n) / 100n,
        MEDIUM: (billedPico * 4n) / 100n,
        LOW: billedPico / 100n,
      },
      summary: summarize(
        [
          finding('anthropic', 'de300000-0000-4000-8000-000000000001', period.fromDay.slice(0, 7), 208n),
          finding('openai', 'org-DemoLabs0000000000000000', period.toDay.slice(0, 7), 145n),
        ],
        enforcement,
      ),
      claims: [
        {
          ...{ provider: 'anthropic', accountId: 'de300000-0000-4000-8000-000000000001' },
          ...{
            periodStart: period.fromDay,
            periodEnd: shiftDay(period.fromDay, 8),
            status: 'under_review' as const,
          },
          ...{ recoverableCents: 20_804n, creditIssuedCents: null },
        },
        {
          ...{ provider: 'openai', accountId: '', periodStart: period.fromDay, periodEnd: period.fromDay },
          ...{ status: 'credit_issued' as const, recoverableCents: 5_000n, creditIssuedCents: 4_500n },
        },
      ],
    },
  };
}

const finding = (provider: string, accountId: string, month: string, dollars: bigint) => ({
  ...{
    provider,
    accountId,
    month,
    isUnexplained: false,
    isConfirmed: true,
    direction: 'overcharge' as const,
  },
  ...{
    blame: 'provider' as const,
    claimable: true,
    grade: 'HIGH' as const,
    provisional: false,
    critical: false,
  },
  impactPico: dollars * USD + 345_678_901_234n,
});
