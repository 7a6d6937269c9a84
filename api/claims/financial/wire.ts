import { z } from 'zod';
import type { SavingsRun } from '../../../db/policies/savingsRuns.js';
import type { FinancialSummary, RecoverableMonth } from '../../../domain/claims/financialSummary.js';
import { decimalFromPico, usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { instantParameter } from '../../query.js';

export const FINANCIAL_SUMMARY_PATH = '/api/v1/financial/summary';

export const summaryQuery = z.object({
  from: instantParameter
    .optional()
    .meta({ description: 'Days and calls from here on; absent: from the first one' }),
  to: instantParameter
    .optional()
    .meta({ description: 'Days and calls up to here; a date means the whole day; absent: up to now' }),
});

const cents = (description: string) => z.number().meta({ description: `${description}. To the cent` });
const exact = (description: string) => z.string().meta({ description: `${description}. Exact` });

const monthSchema = z
  .strictObject({
    provider: z.string(),
    provider_account_id: z.string(),
    month: z.string().meta({ example: '2026-10' }),
    confirmed_usd_exact: exact('Overcharges that are graded HIGH, or that somebody has confirmed'),
    review_usd_exact: exact('Overcharges of the grades MEDIUM and LOW'),
    undercharged_usd_exact: exact('What the provider charged too little'),
    recoverable_confirmed_usd: cents(
      'Confirmed less undercharged, not below zero, rounded down; adds up to the number of the same name',
    ),
    recoverable_review_usd: cents(
      'Review less what is left of undercharged, not below zero, rounded down; adds up likewise',
    ),
    unexplained_critical_usd: cents('Large charges that nothing explains; adds up likewise'),
    unexplained_review_usd: cents('Other charges that nothing explains; adds up likewise'),
  })
  .meta({ id: 'RecoverableMonth' });

export const summaryResponse = z
  .strictObject({
    recoverable_confirmed_usd: cents('Billing errors that are to be asked back'),
    recoverable_review_usd: cents('Possible billing errors that somebody has to look into'),
    prevented_usd: cents('What calls would have cost that enforcement rules have blocked'),
    preventable_modeled_usd: cents(
      'What the rules would have saved by the newest savings run: of 30 days unless from and to are given',
    ),
    unexplained_critical_usd: cents('Large charges that nothing explains'),
    unexplained_review_usd: cents('Other charges that nothing explains'),
    total_financial_opportunity_usd: cents('The sum of the six numbers as they are shown'),
    from: z.string().nullable(),
    to: z.string().nullable(),
    preventable_modeled_as_of: z
      .string()
      .nullable()
      .meta({ description: 'When that run began; null: none has been run, and the number says nothing' }),
    breakdown: z.array(monthSchema).meta({ description: 'Newest month first' }),
    not_counted: z
      .strictObject({
        provisional_usd_exact: exact('Overcharges of days that the provider may still restate'),
        unverified_usd_exact: exact('Overcharges that cannot be verified'),
        not_claimable_usd_exact: exact(
          'Overcharges of kinds that are not asked back unless somebody confirms',
        ),
        unexplained_undercharged_usd_exact: exact('Charges too low that nothing explains'),
      })
      .meta({ description: 'What was found and stands in none of the six numbers' }),
  })
  .meta({ id: 'FinancialSummary' });

function presentMonth(month: RecoverableMonth): z.output<typeof monthSchema> {
  return {
    provider: month.provider,
    provider_account_id: month.accountId,
    month: month.month,
    confirmed_usd_exact: decimalFromPico(month.confirmedPico),
    review_usd_exact: decimalFromPico(month.reviewPico),
    undercharged_usd_exact: decimalFromPico(month.underchargedPico),
    recoverable_confirmed_usd: usdNumberFromPico(month.recoverableConfirmedPico),
    recoverable_review_usd: usdNumberFromPico(month.recoverableReviewPico),
    unexplained_critical_usd: usdNumberFromPico(month.unexplainedCriticalPico),
    unexplained_review_usd: usdNumberFromPico(month.unexplainedReviewPico),
  };
}

export function presentFinancialSummary(
  summary: FinancialSummary,
  window: { fromMicros: bigint | undefined; toMicros: bigint | undefined },
  modeled: SavingsRun | undefined,
): z.output<typeof summaryResponse> {
  return {
    recoverable_confirmed_usd: usdNumberFromPico(summary.recoverableConfirmedPico),
    recoverable_review_usd: usdNumberFromPico(summary.recoverableReviewPico),
    prevented_usd: usdNumberFromPico(summary.preventedPico),
    preventable_modeled_usd: usdNumberFromPico(summary.preventableModeledPico),
    unexplained_critical_usd: usdNumberFromPico(summary.unexplainedCriticalPico),
    unexplained_review_usd: usdNumberFromPico(summary.unexplainedReviewPico),
    total_financial_opportunity_usd: usdNumberFromPico(summary.totalPico),
    from: window.fromMicros === undefined ? null : isoFromMicros(window.fromMicros),
    to: window.toMicros === undefined ? null : isoFromMicros(window.toMicros - 1n),
    preventable_modeled_as_of: isoOrNull(modeled?.asOfMicros ?? null),
    breakdown: summary.breakdown.map(presentMonth),
    not_counted: {
      provisional_usd_exact: decimalFromPico(summary.provisionalPico),
      unverified_usd_exact: decimalFromPico(summary.unverifiedPico),
      not_claimable_usd_exact: decimalFromPico(summary.notClaimablePico),
      unexplained_undercharged_usd_exact: decimalFromPico(summary.unexplainedUnderchargedPico),
    },
  };
}
