import { z } from 'zod';
import type { BilledAdjustment } from '../../../db/billing/periods.js';
import type { ComparedInvoice } from '../../../db/invoices/comparedInvoices.js';
import { BILLED_CLASSES } from '../../../domain/billing/billedRow.js';
import { publicId, publicSourceId } from '../../../domain/ids.js';
import { TIES } from '../../../domain/invoices/tieOut.js';
import { type Pico, usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import { UNJUDGED_REASONS } from '../../../domain/reconciliation/audit/judgeMeter.js';
import { NOT_PRICED_LABELS_MAX } from '../../../domain/reconciliation/statement/statement.js';
import {
  type DayRange,
  discountsOf,
  explainedByFindingsOf,
  invoiceTotalOf,
  type StatementFigures,
} from '../../../domain/reconciliation/statement/statementFigures.js';
import { DIFFERENCES_MAX, type MonthStatement } from '../../../usecases/reconciliation/monthStatement.js';
import { formatParameter } from '../../csv.js';
import { monthParameter } from '../../query.js';
import { sourceDifferenceSchema } from '../gapRuns/wire.js';

export const statementQuery = z.object({ period: monthParameter, format: formatParameter });

const usd = z.number();

const figures = {
  list_usd: usd.meta({ description: 'Usage at list, as far as it can be priced' }),
  discounts_usd: usd.meta({
    description:
      'List − billed of what can be priced, signed: contract_discount_usd + other_discount_usd − rate_difference_usd',
  }),
  contract_discount_usd: usd.meta({ description: 'List − agreed, by the contract' }),
  other_discount_usd: usd.meta({
    description: 'The list price that the bill itself names − billed, where the quantity cannot be priced',
  }),
  rate_difference_usd: usd.meta({
    description: 'Charged above (positive) or below the agreed rate; GET /reconciliation/audit has the lines',
  }),
  not_priced_usd: usd.meta({ description: 'Billed usage without a list price; not_priced names it' }),
  restated_since_closing_usd: usd.meta({
    description: 'Of a closed month: billed usage as it was closed − as its bills say now; else 0',
  }),
  billed_usage_usd: usd.meta({
    description: 'list_usd − discounts_usd + not_priced_usd + restated_since_closing_usd',
  }),
  purchases_usd: usd,
  adjustments_usd: usd,
  credits_usd: usd,
  refunds_usd: usd,
  tax_usd: usd,
  invoice_total_usd: usd.meta({ description: 'The sum of the six amounts before it' }),
  verified_usd: z
    .strictObject({ HIGH: usd, MEDIUM: usd, LOW: usd, UNVERIFIED: usd })
    .meta({ description: 'Billed usage that observed calls explain, by grade' }),
  not_observable_usd: usd.meta({ description: 'Charges that no call can show' }),
  not_yet_observed_usd: usd.meta({ description: 'Of days before the first event of the account' }),
  not_compared_usd: usd.meta({ description: 'Of days that no run has compared since their bill changed' }),
  across_accounts_usd: usd.meta({
    description: 'Compared only as a sum over the provider’s accounts; zero for a provider and the total',
  }),
  not_matched_by_calls_usd: usd.meta({
    description:
      'The rest: explained_by_findings_usd + unexplained_usd. verified_usd, these five and restated_since_closing_usd sum to billed_usage_usd',
  }),
  not_matched_rate_usd: usd.meta({
    description: 'Of not_matched_by_calls_usd: charged above the agreed rate',
  }),
  explained_by_findings_usd: usd.meta({
    description:
      'not_matched_by_calls_usd − unexplained_usd: what findings explain, calls that are missing at the usual share, rounding, and what has been decided or is not final',
  }),
  in_findings_usd: usd.meta({
    description: 'What findings with an explanation come to, undercharges taken off; part of no sum',
  }),
  unexplained_usd: usd.meta({
    description:
      'What nothing explains: unexplained_critical_usd + unexplained_review_usd of GET /financial/summary with from and to of this month. To the cent',
  }),
  disputed_usd: usd.meta({
    description: 'What is disputed of these days now, claimed or not; part of no sum',
  }),
  credited_usd: usd.meta({
    description:
      'What providers credited on claims over these days, whenever it came; the row of the credit itself is in credits_usd of the month that bills it. Part of no sum',
  }),
  free_allowance_list_usd: usd.meta({
    description: 'What usage at amount zero would cost at list; part of no sum',
  }),
};

const figuresSchema = z.strictObject(figures).meta({ id: 'StatementFigures' });
const place = { provider: z.string(), provider_account_id: z.string() };
export const rangeSchema = z
  .strictObject({ ...place, first_day: z.string(), last_day: z.string(), days: z.int() })
  .meta({ id: 'DayRange' });

const adjustmentSchema = z
  .strictObject({
    ...place,
    day: z.string(),
    charge_category: z.string(),
    amount_usd: usd,
    booked_on: z.string().meta({ description: 'UTC day on which the newer copy came' }),
    settled: z.boolean().meta({ description: 'False while the month in which it is booked is open' }),
  })
  .meta({ id: 'BilledAdjustment' });

const statementInvoiceSchema = z
  .strictObject({
    ...place,
    invoice_id: z.string(),
    number: z.string().nullable(),
    period_start: z.string(),
    period_end: z.string().meta({ description: 'Inclusive' }),
    currency: z.string().nullable(),
    total: usd.nullable().meta({ description: 'As printed, in its currency' }),
    tie: z.enum(TIES).meta({ description: 'How its usage compares with the bill of the same days' }),
    tie_reason: z.string().nullable().meta({ description: 'Why it is not comparable' }),
    tie_currency: z.string().nullable().meta({ description: 'Of the three amounts that follow' }),
    invoiced_usage: usd.nullable(),
    billed_usage: usd.nullable(),
    difference: usd.nullable().meta({ description: 'invoiced_usage − billed_usage' }),
  })
  .meta({ id: 'StatementInvoice' });

export const statementResponse = z
  .strictObject({
    period: z.string().meta({ example: '2026-10' }),
    status: z.enum(['final', 'provisional', 'no_billing_data']),
    final_from: z
      .string()
      .meta({ description: 'The first day on which no day of the month can be restated any more' }),
    currency: z.literal('USD'),
    generated_at: z.string(),
    total: figuresSchema,
    providers: z.array(z.strictObject({ provider: z.string(), ...figures })),
    accounts: z.array(z.strictObject({ ...place, ...figures })),
    not_priced: z
      .array(
        z.strictObject({
          ...place,
          label: z.string(),
          token_class: z.enum(BILLED_CLASSES),
          reason: z.enum([...UNJUDGED_REASONS, 'no_list_price']),
          billed_usd: usd,
        }),
      )
      .meta({
        description: `Billed usage without a list price, largest amount first; beyond ${NOT_PRICED_LABELS_MAX} labels added up`,
      }),
    coverage: z.strictObject({
      complete: z.boolean().meta({ description: 'Every day that is over has a bill, of every account' }),
      missing: z
        .array(rangeSchema)
        .meta({ description: 'Days without any bill: not free, their cost is unknown' }),
      provisional: z.array(rangeSchema).meta({
        description: 'Days that may still be restated, or whose copy was read while they could',
      }),
      stale_copies: z
        .array(rangeSchema)
        .meta({ description: 'Of these: days that only a newer copy of the bill makes final' }),
    }),
    closing: z
      .strictObject({
        closed_at: z.string(),
        closed_by: z.string().nullable(),
        adjustments: z
          .array(adjustmentSchema)
          .meta({ description: 'What its bills say now beyond what was closed' }),
        adjustments_usd: usd,
      })
      .nullable()
      .meta({
        description: 'Null while the month is open; a closed one shows what was billed at its closing',
      }),
    booked_adjustments: z.array(adjustmentSchema).meta({
      description:
        'How bills of earlier, closed months were restated, booked in this one; part of no sum above',
    }),
    booked_adjustments_usd: usd,
    sources: z.array(
      z.strictObject({
        ...place,
        kind: z.enum(['file', 'api']),
        source_id: z.string().meta({ description: 'imp_… of an imported file, con_… of a connection' }),
        name: z.string(),
        told_at: z
          .string()
          .meta({ description: 'When it was last read, or the provider last said the same' }),
        first_day: z.string(),
        last_day: z.string(),
        days: z.int(),
      }),
    ),
    invoices: z
      .array(statementInvoiceSchema)
      .meta({ description: 'Uploaded invoices that charge for a day of the month; part of no sum' }),
    source_differences: z
      .array(sourceDifferenceSchema)
      .meta({ description: `Copies of a bill that do not say the same; at most ${DIFFERENCES_MAX}` }),
  })
  .meta({ id: 'Statement' });

const number = usdNumberFromPico;

function presentFigures(figures: StatementFigures): z.output<typeof figuresSchema> {
  const { billed, verified } = figures;
  return {
    list_usd: number(figures.listPico),
    discounts_usd: number(discountsOf(figures)),
    contract_discount_usd: number(figures.contractDiscountPico),
    other_discount_usd: number(figures.otherDiscountPico),
    rate_difference_usd: number(figures.rateDifferencePico),
    not_priced_usd: number(figures.notPricedPico),
    restated_since_closing_usd: number(figures.restatedPico),
    billed_usage_usd: number(billed.usage),
    purchases_usd: number(billed.purchase),
    adjustments_usd: number(billed.adjustment),
    credits_usd: number(billed.credit),
    refunds_usd: number(billed.refund),
    tax_usd: number(billed.tax),
    invoice_total_usd: number(invoiceTotalOf(figures)),
    verified_usd: {
      HIGH: number(verified.HIGH),
      MEDIUM: number(verified.MEDIUM),
      LOW: number(verified.LOW),
      UNVERIFIED: number(verified.UNVERIFIED),
    },
    not_observable_usd: number(figures.notObservablePico),
    not_yet_observed_usd: number(figures.notYetObservedPico),
    not_compared_usd: number(figures.notComparedPico),
    across_accounts_usd: number(figures.acrossAccountsPico),
    not_matched_by_calls_usd: number(figures.notMatchedPico),
    not_matched_rate_usd: number(figures.notMatchedRatePico),
    explained_by_findings_usd: number(explainedByFindingsOf(figures)),
    in_findings_usd: number(figures.inFindingsPico),
    unexplained_usd: number(figures.unexplainedPico),
    disputed_usd: number(figures.disputedPico),
    credited_usd: number(figures.creditedPico),
    free_allowance_list_usd: number(figures.freeAllowancePico),
  };
}

export function presentRange(range: DayRange): z.output<typeof rangeSchema> {
  return {
    provider: range.provider,
    provider_account_id: range.accountId,
    first_day: range.firstDay,
    last_day: range.lastDay,
    days: range.days,
  };
}

function presentInvoice(invoice: ComparedInvoice): z.output<typeof statementInvoiceSchema> {
  const { comparedAmount, billedAmount } = invoice;
  return {
    provider: invoice.provider,
    provider_account_id: invoice.accountId,
    invoice_id: publicId('inv', invoice.id),
    number: invoice.number,
    period_start: invoice.fromDay,
    period_end: invoice.toDay,
    currency: invoice.currency,
    total: usdNumberOrNull(invoice.total),
    tie: invoice.tie,
    tie_reason: invoice.tieReason,
    tie_currency: invoice.tieCurrency,
    invoiced_usage: usdNumberOrNull(comparedAmount),
    billed_usage: usdNumberOrNull(billedAmount),
    difference:
      comparedAmount === null || billedAmount === null ? null : number(comparedAmount - billedAmount),
  };
}

export function presentStatement(
  statement: MonthStatement,
  nowMicros: bigint,
): z.output<typeof statementResponse> {
  return {
    period: statement.period,
    status: statement.status,
    final_from: statement.finalFrom,
    currency: 'USD',
    generated_at: isoFromMicros(nowMicros),
    total: presentFigures(statement.total),
    providers: statement.providers.map((one) => ({ provider: one.provider, ...presentFigures(one) })),
    accounts: statement.accounts.map((one) => ({
      provider: one.provider,
      provider_account_id: one.accountId,
      ...presentFigures(one),
    })),
    not_priced: statement.notPriced.map((one) => ({
      provider: one.provider,
      provider_account_id: one.accountId,
      label: one.label,
      token_class: one.tokenClass,
      reason: one.reason,
      billed_usd: number(one.billedPico),
    })),
    coverage: {
      complete: statement.missing.length === 0,
      missing: statement.missing.map(presentRange),
      provisional: statement.provisional.map(presentRange),
      stale_copies: statement.staleCopies.map(presentRange),
    },
    closing: statement.closing && {
      closed_at: isoFromMicros(statement.closing.closedAtMicros),
      closed_by: statement.closing.closedBy,
      adjustments: statement.closing.adjustments.map(presentAdjustment),
      adjustments_usd: number(sumOf(statement.closing.adjustments)),
    },
    booked_adjustments: statement.bookedAdjustments.map(presentAdjustment),
    booked_adjustments_usd: number(sumOf(statement.bookedAdjustments)),
    sources: statement.sources.map((source) => ({
      provider: source.provider,
      provider_account_id: source.accountId,
      kind: source.kind,
      source_id: publicId(source.kind === 'api' ? 'con' : 'imp', source.sourceId),
      name: source.name,
      told_at: isoFromMicros(source.toldAtMicros),
      first_day: source.firstDay,
      last_day: source.lastDay,
      days: source.days,
    })),
    invoices: statement.invoices.map(presentInvoice),
    source_differences: statement.sourceDifferences.map((difference) => ({
      provider: difference.provider,
      provider_account_id: difference.accountId,
      day: difference.day,
      span: difference.span,
      charge_category: difference.chargeCategory,
      counted_kind: difference.countedKind,
      counted_import_id: publicSourceId(difference.countedKind, difference.countedSourceId),
      counted_usd: number(difference.countedPico),
      other_kind: difference.otherKind,
      other_import_id: publicSourceId(difference.otherKind, difference.otherSourceId),
      other_usd: number(difference.otherPico),
      difference_usd: number(difference.otherPico - difference.countedPico),
    })),
  };
}

function presentAdjustment(adjustment: BilledAdjustment): z.output<typeof adjustmentSchema> {
  return {
    provider: adjustment.provider,
    provider_account_id: adjustment.accountId,
    day: adjustment.day,
    charge_category: adjustment.chargeCategory,
    amount_usd: number(adjustment.amountPico),
    booked_on: adjustment.bookedOn,
    settled: adjustment.isSettled,
  };
}

function sumOf(adjustments: readonly BilledAdjustment[]): Pico {
  return adjustments.reduce((sum, { amountPico }) => sum + amountPico, 0n);
}
