import { z } from 'zod';
import { BILLED_CLASSES } from '../../../domain/billing/billedRow.js';
import { decimalFromPico, type Pico, usdNumberFromPico } from '../../../domain/money.js';
import { dayOf, parseInstant } from '../../../domain/period.js';
import { findProvider, PROVIDERS } from '../../../domain/providers.js';
import {
  AUDIT_LINES_MAX,
  type AuditLine,
  differenceOf,
  perMtok,
  type UnjudgedLine,
} from '../../../domain/reconciliation/audit/audit.js';
import { RATE_HINTS, UNJUDGED_REASONS } from '../../../domain/reconciliation/audit/judgeMeter.js';
import { AUDIT_DAYS_MAX, type AuditReport } from '../../../usecases/reconciliation/billAudit.js';
import { formatParameter } from '../../csv.js';
import { presentRange, rangeSchema } from '../statement/wire.js';

const dayParameter = z
  .string()
  .transform((text, context): string => {
    const instant = parseInstant(text);
    if (instant?.dateOnly) return dayOf(instant.micros);
    context.addIssue({ code: 'custom', message: 'must be a UTC day such as 2026-01-31' });
    return z.NEVER;
  })
  .meta({ type: 'string' });

export const auditQuery = z.object({
  provider: z
    .string({ error: `is required: one of ${PROVIDERS.join(', ')}` })
    .transform((word) => findProvider(word) ?? word)
    .pipe(z.enum(PROVIDERS, { error: `must be one of ${PROVIDERS.join(', ')}` }))
    .meta({ enum: [...PROVIDERS] }),
  from: dayParameter
    .optional()
    .meta({ description: `First day; by default the first billed one, at most ${AUDIT_DAYS_MAX} days back` }),
  to: dayParameter.optional().meta({ description: 'Last day, included; by default the last billed one' }),
  format: formatParameter,
});

const usd = z.number();
const rate = z.number().nullable();

const lineSchema = z
  .strictObject({
    provider_account_id: z.string(),
    model: z.string(),
    token_class: z.enum(BILLED_CLASSES),
    service_tier: z.string(),
    is_batch: z
      .boolean()
      .nullable()
      .meta({ description: 'Null where the bill does not separate batch calls' }),
    long_context: z.boolean().nullable(),
    region: z.string().nullable(),
    mixture: z.boolean().meta({
      description: 'Batch and standard, or long and ordinary requests, on one line: its rates are averages',
    }),
    first_day: z.string(),
    last_day: z.string(),
    days: z.int().meta({ description: 'Days with such a charge' }),
    tokens: z.number(),
    billed_usd: usd,
    agreed_usd: usd.meta({
      description: 'The billed quantity at the agreed rates; at list without a contract',
    }),
    list_usd: usd.nullable(),
    difference_usd: usd.meta({ description: 'billed_usd − agreed_usd; negative: charged too little' }),
    difference_usd_exact: z.string().meta({ description: 'The same to the pico-dollar' }),
    billed_per_mtok: rate,
    agreed_per_mtok: rate,
    list_per_mtok: rate,
    looks_like: z.array(z.enum(RATE_HINTS)).meta({
      description: 'Known mistakes that give exactly this amount on every day: a hint, not a finding',
    }),
    price_source: z.string(),
    agreement: z.string().meta({ description: 'How far the price sources agree' }),
    disputed: z.boolean(),
  })
  .meta({ id: 'AuditLine' });

const unjudgedSchema = z
  .strictObject({
    provider_account_id: z.string(),
    label: z.string(),
    token_class: z.enum(BILLED_CLASSES),
    reason: z.enum(UNJUDGED_REASONS),
    first_day: z.string(),
    last_day: z.string(),
    days: z.int(),
    quantity: z.number().nullable(),
    billed_usd: usd,
  })
  .meta({ id: 'UnjudgedLine' });

const span = z.strictObject({ first_day: z.string(), last_day: z.string() });

export const auditResponse = z
  .strictObject({
    provider: z.enum(PROVIDERS),
    status: z.enum(['audited', 'no_billing_data']),
    from: z.string().nullable(),
    to: z.string().nullable(),
    billed: span.nullable().meta({ description: 'The days for which this provider has bills at all' }),
    days: z.int().meta({ description: 'Days of the range with a bill' }),
    prices_version: z.string(),
    totals: z.strictObject({
      billed_usd: usd.meta({ description: 'judged_usd + not_judged_usd' }),
      judged_usd: usd.meta({ description: 'agreed_usd + difference_usd' }),
      not_judged_usd: usd,
      agreed_usd: usd,
      difference_usd: usd.meta({ description: 'above_usd + below_usd + rounding_usd' }),
      difference_usd_exact: z.string(),
      above_usd: usd.meta({ description: 'Charged above the agreed rate' }),
      below_usd: usd.meta({ description: 'Charged below it, from zero down' }),
      rounding_usd: usd.meta({ description: 'What rounding leaves of the charges at the agreed rate' }),
    }),
    differences: z
      .array(lineSchema)
      .meta({ description: `Charged at another rate, largest amount first; at most ${AUDIT_LINES_MAX}` }),
    omitted: z.strictObject({ lines: z.int(), billed_usd: usd, difference_usd: usd }),
    as_agreed: z
      .array(lineSchema)
      .meta({ description: 'Charged at the agreed rate, one line a model, class and rate' }),
    not_judged: z
      .array(unjudgedSchema)
      .meta({ description: 'What the bill alone does not let one judge, and why' }),
    missing: z.array(rangeSchema).meta({ description: 'Days of the range without a bill' }),
    provisional: z.array(rangeSchema).meta({ description: 'Days that the provider may still restate' }),
  })
  .meta({ id: 'Audit' });

const number = usdNumberFromPico;

const rateNumber = (amountPico: Pico | null, quantity: bigint): number | null => {
  const pico = perMtok(amountPico, quantity);
  return pico === null ? null : number(pico);
};

function presentLine(line: AuditLine): z.output<typeof lineSchema> {
  const difference = differenceOf(line);
  return {
    provider_account_id: line.accountId,
    model: line.label,
    token_class: line.tokenClass,
    service_tier: line.serviceTier,
    is_batch: line.isBatch,
    long_context: line.longContext,
    region: line.region,
    mixture: line.isMixture,
    first_day: line.firstDay,
    last_day: line.lastDay,
    days: line.days,
    tokens: number(line.quantity),
    billed_usd: number(line.billedPico),
    agreed_usd: number(line.agreedPico),
    list_usd: line.listPico === null ? null : number(line.listPico),
    difference_usd: number(difference),
    difference_usd_exact: decimalFromPico(difference),
    billed_per_mtok: rateNumber(line.billedPico, line.quantity),
    agreed_per_mtok: rateNumber(line.agreedPico, line.quantity),
    list_per_mtok: rateNumber(line.listPico, line.quantity),
    looks_like: [...line.looksLike],
    price_source: line.priceSource,
    agreement: line.agreement,
    disputed: line.disputed,
  };
}

function presentUnjudged(line: UnjudgedLine): z.output<typeof unjudgedSchema> {
  return {
    provider_account_id: line.accountId,
    label: line.label,
    token_class: line.tokenClass,
    reason: line.reason,
    first_day: line.firstDay,
    last_day: line.lastDay,
    days: line.days,
    quantity: line.quantity === null ? null : number(line.quantity),
    billed_usd: number(line.billedPico),
  };
}

/** The audit as JSON, for the API and the command line. */
export function presentAudit(report: AuditReport, pricesVersion: string): z.output<typeof auditResponse> {
  const { totals, omitted, billed } = report;
  const difference = totals.judgedPico - totals.agreedPico;
  return {
    provider: report.provider,
    status: billed === null ? 'no_billing_data' : 'audited',
    from: report.fromDay,
    to: report.toDay,
    billed: billed && { first_day: billed.firstDay, last_day: billed.lastDay },
    days: report.days,
    prices_version: pricesVersion,
    totals: {
      billed_usd: number(totals.billedPico),
      judged_usd: number(totals.judgedPico),
      not_judged_usd: number(totals.notJudgedPico),
      agreed_usd: number(totals.agreedPico),
      difference_usd: number(difference),
      difference_usd_exact: decimalFromPico(difference),
      above_usd: number(totals.abovePico),
      below_usd: number(totals.belowPico),
      rounding_usd: number(totals.roundingPico),
    },
    differences: report.differences.map(presentLine),
    omitted: {
      lines: omitted.lines,
      billed_usd: number(omitted.billedPico),
      difference_usd: number(omitted.billedPico - omitted.agreedPico),
    },
    as_agreed: report.asAgreed.map(presentLine),
    not_judged: report.notJudged.map(presentUnjudged),
    missing: report.missing.map(presentRange),
    provisional: report.provisional.map(presentRange),
  };
}
