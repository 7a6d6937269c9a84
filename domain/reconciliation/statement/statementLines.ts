import type { Pico } from '../../money.js';
import { explainedByFindingsOf, invoiceTotalOf, type StatementFigures } from './statementFigures.js';

/**
 * The three sums of a statement: the items of each add up to its footing. `usage`: from list price to billed usage;
 * `invoice`: from billed usage to the invoice; `verification`: what is known of the billed usage.
 */
export const STATEMENT_SECTIONS = ['usage', 'invoice', 'verification'] as const;
export type StatementSection = (typeof STATEMENT_SECTIONS)[number];

export interface StatementLine {
  section: StatementSection;
  /** In snake_case, with its unit, as it stands in a CSV. */
  name: string;
  /** `footing`: the sum of the section's items; `memo`: beside the sums. */
  kind: 'item' | 'footing' | 'memo';
  amount(figures: StatementFigures): Pico;
}

function line(
  section: StatementSection,
  name: string,
  amount: StatementLine['amount'],
  kind: StatementLine['kind'] = 'item',
): StatementLine {
  return { section, name, kind, amount };
}

/** The lines of a statement in their order; discounts are negative here, so that every section is one sum. */
export const STATEMENT_LINES: readonly StatementLine[] = [
  line('usage', 'list_usd', (f) => f.listPico),
  line('usage', 'contract_discount_usd', (f) => -f.contractDiscountPico),
  line('usage', 'other_discount_usd', (f) => -f.otherDiscountPico),
  line('usage', 'rate_difference_usd', (f) => f.rateDifferencePico),
  line('usage', 'not_priced_usd', (f) => f.notPricedPico),
  line('usage', 'restated_since_closing_usd', (f) => f.restatedPico),
  line('usage', 'billed_usage_usd', (f) => f.billed.usage, 'footing'),
  line('usage', 'free_allowance_list_usd', (f) => f.freeAllowancePico, 'memo'),
  line('invoice', 'billed_usage_usd', (f) => f.billed.usage),
  line('invoice', 'purchases_usd', (f) => f.billed.purchase),
  line('invoice', 'adjustments_usd', (f) => f.billed.adjustment),
  line('invoice', 'credits_usd', (f) => f.billed.credit),
  line('invoice', 'refunds_usd', (f) => f.billed.refund),
  line('invoice', 'tax_usd', (f) => f.billed.tax),
  line('invoice', 'invoice_total_usd', invoiceTotalOf, 'footing'),
  line('verification', 'verified_high_usd', (f) => f.verified.HIGH),
  line('verification', 'verified_medium_usd', (f) => f.verified.MEDIUM),
  line('verification', 'verified_low_usd', (f) => f.verified.LOW),
  line('verification', 'verified_unverified_usd', (f) => f.verified.UNVERIFIED),
  line('verification', 'not_observable_usd', (f) => f.notObservablePico),
  line('verification', 'not_yet_observed_usd', (f) => f.notYetObservedPico),
  line('verification', 'not_compared_usd', (f) => f.notComparedPico),
  line('verification', 'across_accounts_usd', (f) => f.acrossAccountsPico),
  line('verification', 'explained_by_findings_usd', explainedByFindingsOf),
  line('verification', 'unexplained_usd', (f) => f.unexplainedPico),
  line('verification', 'restated_since_closing_usd', (f) => f.restatedPico),
  line('verification', 'billed_usage_usd', (f) => f.billed.usage, 'footing'),
  line('verification', 'not_matched_by_calls_usd', (f) => f.notMatchedPico, 'memo'),
  line('verification', 'not_matched_rate_usd', (f) => f.notMatchedRatePico, 'memo'),
  line('verification', 'in_findings_usd', (f) => f.inFindingsPico, 'memo'),
  line('verification', 'disputed_usd', (f) => f.disputedPico, 'memo'),
  line('verification', 'credited_usd', (f) => f.creditedPico, 'memo'),
];
