import { z } from 'zod';
import type { FrozenBill, PeriodClosing } from '../../../db/billing/periods.js';
import type { UsageMeasures } from '../../../db/usage/usage.js';
import { type Month, PERIOD_STATUSES, parseMonth } from '../../../domain/billing/periods.js';
import { decimalFromPico, type Pico, usdNumberFromPico } from '../../../domain/money.js';
import { isoOrNull } from '../../../domain/period.js';
import type { PeriodFacts } from '../../../usecases/billing/periods.js';
import { offsetParameters, pageFields } from '../../paging.js';

export const PERIODS_PATH = '/api/v1/periods';

/** Restated days that one answer lists; the sums include every restated day. */
const RESTATED_MAX = 1_000;

export const periodParams = z.object({
  period: z
    .string()
    .refine((text) => parseMonth(text) !== undefined, { error: 'must be a month such as 2026-01' })
    .meta({ example: '2026-01' }),
});

export const listPeriodsQuery = z.object({
  ...offsetParameters(240, 36),
});

const closingFields = {
  period: z.string(),
  status: z.enum(PERIOD_STATUSES),
  closed_at: z.string().nullable(),
  closed_by: z.string().nullable().meta({ description: 'The key that closed it' }),
  closed_with: z.string().nullable().meta({
    description: 'The month whose closing closed it: the first closing takes all earlier months along',
  }),
};

const listedPeriodSchema = z.strictObject({
  ...closingFields,
  total_cost_usd: z.number().nullable().meta({ description: 'As closed; null while the month is open' }),
  url: z.string(),
});

export const listPeriodsResponse = z.strictObject({
  periods: z.array(listedPeriodSchema),
  ...pageFields,
});

const totalsSchema = z
  .strictObject({
    cost_usd: z.number(),
    cost_usd_exact: z.string(),
    reported_cost_usd: z.number(),
    computed_cost_usd: z.number(),
    call_count: z.int(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    cache_read: z.int(),
    cache_creation: z.int(),
    unpriced_calls: z.int(),
  })
  .meta({ id: 'PeriodTotals' });

const billedSchema = z.strictObject({
  provider: z.string(),
  provider_account_id: z.string(),
  charge_category: z.string(),
  frozen_usd: z.number().nullable(),
  adjustments_usd: z.number(),
  current_usd: z.number(),
  current_usd_exact: z.string(),
});

export const periodResponse = z
  .strictObject({
    ...closingFields,
    frozen: z
      .strictObject({
        own: totalsSchema.meta({ description: 'Of the month’s own calls' }),
        booked: totalsSchema.meta({ description: 'Of changes of earlier months that are dated in this one' }),
        total: totalsSchema.meta({ description: 'own + booked: what the month was charged with' }),
        by_provider: z.array(
          z.strictObject({ provider: z.string(), cost_usd: z.number(), call_count: z.int() }),
        ),
      })
      .nullable()
      .meta({ description: 'Null while the month is open. It never moves' }),
    booked: totalsSchema.meta({ description: 'Changes of earlier closed months that are dated in this one' }),
    adjustments: totalsSchema.meta({
      description: 'Changes of this month’s calls since it was closed, dated in later months',
    }),
    current: totalsSchema.meta({
      description: 'The month’s own calls as known now: frozen.own + adjustments',
    }),
    billed: z.array(billedSchema).meta({ description: 'Bills by the copies that count' }),
    restated: z
      .array(
        z.strictObject({
          provider: z.string(),
          provider_account_id: z.string(),
          charge_category: z.string(),
          day: z.string(),
          booked_on: z.string(),
          settled: z.boolean(),
          amount_usd: z.number(),
        }),
      )
      .meta({ description: 'Billed days that were restated since the closing; at most 1,000' }),
    restated_count: z.int(),
  })
  .meta({ id: 'Period' });

function presentTotals(sums: UsageMeasures): z.output<typeof totalsSchema> {
  return {
    cost_usd: usdNumberFromPico(sums.costPico),
    cost_usd_exact: decimalFromPico(sums.costPico),
    reported_cost_usd: usdNumberFromPico(sums.reportedCostPico),
    computed_cost_usd: usdNumberFromPico(sums.computedCostPico),
    call_count: sums.calls,
    input_tokens: sums.inputTokens,
    output_tokens: sums.outputTokens,
    cache_read: sums.cacheRead,
    cache_creation: sums.cacheCreation,
    unpriced_calls: sums.unpriced,
  };
}

const NOTHING: UsageMeasures = {
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheRead: 0,
  cacheCreation: 0,
  reasoningTok: 0,
  costPico: 0n,
  computedCostPico: 0n,
  reportedCostPico: 0n,
  unpriced: 0,
};

/** Adds usage measures. */
export function addMeasures(all: Iterable<UsageMeasures>): UsageMeasures {
  const sum = { ...NOTHING };
  for (const one of all) {
    sum.calls += one.calls;
    sum.inputTokens += one.inputTokens;
    sum.outputTokens += one.outputTokens;
    sum.cacheRead += one.cacheRead;
    sum.cacheCreation += one.cacheCreation;
    sum.reasoningTok += one.reasoningTok;
    sum.costPico += one.costPico;
    sum.computedCostPico += one.computedCostPico;
    sum.reportedCostPico += one.reportedCostPico;
    sum.unpriced += one.unpriced;
  }
  return sum;
}

function presentClosing(period: Month, closing: PeriodClosing | undefined) {
  return {
    period,
    status: closing ? ('closed' as const) : ('open' as const),
    closed_at: isoOrNull(closing?.closedAtMicros ?? null),
    closed_by: closing?.closedBy ?? null,
    closed_with: closing?.closedWith ?? null,
  };
}

export function presentListedPeriod(
  period: Month,
  closing: PeriodClosing | undefined,
  frozen: { own: UsageMeasures; booked: UsageMeasures } | undefined,
): z.output<typeof listedPeriodSchema> {
  return {
    ...presentClosing(period, closing),
    total_cost_usd: closing
      ? usdNumberFromPico((frozen?.own.costPico ?? 0n) + (frozen?.booked.costPico ?? 0n))
      : null,
    url: `${PERIODS_PATH}/${period}`,
  };
}

export function presentPeriod(facts: PeriodFacts): z.output<typeof periodResponse> {
  const own = addMeasures(facts.frozen.own.values());
  const booked = addMeasures(facts.frozen.booked.values());
  const providers = [...new Set([...facts.frozen.own.keys(), ...facts.frozen.booked.keys()])].sort();
  return {
    ...presentClosing(facts.period, facts.closing),
    frozen: facts.closing
      ? {
          own: presentTotals(own),
          booked: presentTotals(booked),
          total: presentTotals(addMeasures([own, booked])),
          by_provider: providers.map((provider) => {
            const parts = [facts.frozen.own.get(provider), facts.frozen.booked.get(provider)];
            const sum = addMeasures(parts.filter((part) => part !== undefined));
            return { provider, cost_usd: usdNumberFromPico(sum.costPico), call_count: sum.calls };
          }),
        }
      : null,
    booked: presentTotals(facts.booked.totals),
    adjustments: presentTotals(facts.adjustments.totals),
    current: presentTotals(facts.current.totals),
    billed: presentBilled(facts),
    restated: facts.restated.slice(0, RESTATED_MAX).map((one) => ({
      provider: one.provider,
      provider_account_id: one.accountId,
      charge_category: one.chargeCategory,
      day: one.day,
      booked_on: one.bookedOn,
      settled: one.isSettled,
      amount_usd: usdNumberFromPico(one.amountPico),
    })),
    restated_count: facts.restated.length,
  };
}

type BillKey = Pick<FrozenBill, 'provider' | 'accountId' | 'chargeCategory' | 'amountPico'>;

function presentBilled(facts: PeriodFacts): z.output<typeof billedSchema>[] {
  const lines = new Map<string, { key: BillKey; frozen: Pico; current: Pico }>();
  const add = (rows: readonly BillKey[], part: 'frozen' | 'current') => {
    for (const row of rows) {
      const name = [row.provider, row.accountId, row.chargeCategory].join('|');
      const line = lines.get(name) ?? { key: row, frozen: 0n, current: 0n };
      line[part] += row.amountPico;
      lines.set(name, line);
    }
  };
  add(facts.billed, 'current');
  add(facts.frozenBills, 'frozen');
  return [...lines]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { key, frozen, current }]) => ({
      provider: key.provider,
      provider_account_id: key.accountId,
      charge_category: key.chargeCategory,
      frozen_usd: facts.closing ? usdNumberFromPico(frozen) : null,
      adjustments_usd: facts.closing ? usdNumberFromPico(current - frozen) : 0,
      current_usd: usdNumberFromPico(current),
      current_usd_exact: decimalFromPico(current),
    }));
}
