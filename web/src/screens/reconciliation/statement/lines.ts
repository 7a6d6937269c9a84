import type { components } from '../../../api/client';
import { withQuery } from '../../../app/filters';
import type { Decimal } from '../../../app/format';
import { negated } from '../../../parts/exactSum';

export type Statement = components['schemas']['Statement'];
export type Figures = components['schemas']['StatementFigures'];

export interface Line {
  id: string;
  name: string;
  value: (figures: Figures) => Decimal;
  /** The rows behind the number. */
  href?: (period: string) => string;
  help?: string;
  /** Not shown where it is zero everywhere. */
  isRare?: boolean;
  /** The result of another sum: it has the same cents here. */
  isResult?: boolean;
}

export interface Sum {
  title: string;
  lead: string;
  lines: Line[];
  result: string;
  total: (figures: Figures) => Decimal;
}

export const firstDay = (period: string) => `${period}-01`;

export function lastDay(period: string): string {
  const [year = 0, month = 1] = period.split('-').map(Number);
  return new Date(Date.UTC(year, month, 0)).toISOString().slice(0, 10);
}

const days = (period: string) => ({ from: firstDay(period), to: lastDay(period) });
const findings = (filters: Record<string, string>) => (period: string) =>
  withQuery('/findings', { ...filters, ...days(period) });

/** Added in a closed month, so that the sum keeps its result. */
const RESTATED: Line = {
  id: 'restated',
  name: 'Restated since the closing',
  value: (one) => one.restated_since_closing_usd,
  isRare: true,
};

export const SUMS: readonly Sum[] = [
  {
    title: 'Usage',
    lead: 'From the list price to what was billed for usage.',
    result: 'Billed usage',
    total: (one) => one.billed_usage_usd,
    lines: [
      {
        id: 'list',
        name: 'List price',
        value: (one) => one.list_usd,
        help: 'Billed quantities at list prices',
      },
      { id: 'contract', name: 'Contract discount', value: (one) => negated(one.contract_discount_usd) },
      {
        id: 'other',
        name: 'Other discount',
        value: (one) => negated(one.other_discount_usd),
        isRare: true,
      },
      {
        id: 'rate',
        name: 'Rate difference',
        value: (one) => one.rate_difference_usd,
        help: 'Charged above or below the agreed rates',
        href: (period) => withQuery('/audit', days(period)),
      },
      {
        id: 'unpriced',
        name: 'Not priced',
        value: (one) => one.not_priced_usd,
        help: 'Charges without a list price',
      },
      RESTATED,
    ],
  },
  {
    title: 'Invoice',
    lead: 'From billed usage to the total that the provider asks for.',
    result: 'Invoice total',
    total: (one) => one.invoice_total_usd,
    lines: [
      { id: 'usage', name: 'Billed usage', value: (one) => one.billed_usage_usd, isResult: true },
      { id: 'purchases', name: 'Purchases', value: (one) => one.purchases_usd },
      { id: 'adjustments', name: 'Adjustments', value: (one) => one.adjustments_usd },
      { id: 'credits', name: 'Credits', value: (one) => one.credits_usd },
      { id: 'refunds', name: 'Refunds', value: (one) => one.refunds_usd },
      { id: 'tax', name: 'Tax', value: (one) => one.tax_usd },
    ],
  },
  {
    title: 'Verification',
    lead: 'How much of the billed usage your calls explain.',
    result: 'Billed usage',
    total: (one) => one.billed_usage_usd,
    lines: [
      {
        id: 'high',
        name: 'Verified, high confidence',
        value: (one) => one.verified_usd.HIGH,
        href: () => '/gaps',
      },
      {
        id: 'medium',
        name: 'Verified, medium confidence',
        value: (one) => one.verified_usd.MEDIUM,
        isRare: true,
      },
      { id: 'low', name: 'Verified, low confidence', value: (one) => one.verified_usd.LOW, isRare: true },
      {
        id: 'unverified',
        name: 'Matched, not verified',
        value: (one) => one.verified_usd.UNVERIFIED,
        help: 'Days that the provider may still restate',
        isRare: true,
      },
      {
        id: 'hidden',
        name: 'Not observable',
        value: (one) => one.not_observable_usd,
        help: 'Charges that no call can show',
      },
      {
        id: 'early',
        name: 'Not yet observed',
        value: (one) => one.not_yet_observed_usd,
        help: 'Days before the first event of the account',
        isRare: true,
      },
      {
        id: 'uncompared',
        name: 'Not compared',
        value: (one) => one.not_compared_usd,
        help: 'Days that no run has compared since their bill changed',
        href: () => '/gaps',
        isRare: true,
      },
      { id: 'across', name: 'Across accounts', value: (one) => one.across_accounts_usd, isRare: true },
      {
        id: 'explained',
        name: 'Explained by findings',
        value: (one) => one.explained_by_findings_usd,
        help: 'Findings, missing calls, rounding, and provisional days',
        href: findings({}),
      },
      {
        id: 'unexplained',
        name: 'Unexplained',
        value: (one) => one.unexplained_usd,
        href: findings({ kind: 'unexplained' }),
      },
      RESTATED,
    ],
  },
];

/** Figures beside the sums. */
export const MEMO: readonly Line[] = [
  { id: 'findings', name: 'In findings', value: (one) => one.in_findings_usd, href: findings({}) },
  { id: 'disputed', name: 'Disputed now', value: (one) => one.disputed_usd, href: () => '/disputes' },
  { id: 'credited', name: 'Credited on claims', value: (one) => one.credited_usd, href: () => '/claims' },
  {
    id: 'excess',
    name: 'Charged above the agreed rate, unmatched',
    value: (one) => one.not_matched_rate_usd,
  },
  { id: 'free', name: 'Free allowance at list price', value: (one) => one.free_allowance_list_usd },
];

export const NOT_PRICED_REASON: Record<Statement['not_priced'][number]['reason'], string> = {
  not_observable: 'no call can show it',
  not_per_token: 'charged by the request or as a fee',
  unparsed_line: 'unknown label',
  negative_amount: 'a correction inside the usage',
  no_quantity: 'no quantity on the bill or in the usage report',
  no_price: 'no source has a price',
  assumed_rate: 'the rate is assumed',
  batch_unknown: 'the share of batch is unknown',
  length_unknown: 'the share of long requests is unknown',
  free_allowance: 'usage at amount zero',
  no_list_price: 'no list price',
};

/** The UTC month before this one. */
export function lastMonth(): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)).toISOString().slice(0, 7);
}

export const thisMonth = () => new Date().toISOString().slice(0, 7);

export function monthBefore(period: string, step: number): string {
  const [year = 0, month = 1] = period.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 - step, 1)).toISOString().slice(0, 7);
}
