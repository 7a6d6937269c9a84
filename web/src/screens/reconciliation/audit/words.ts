import type { paths } from '../../../api/client';

export type Audit =
  paths['/api/v1/reconciliation/audit']['get']['responses'][200]['content']['application/json'];
export type RateLine = Audit['differences'][number];
export type UnjudgedLine = Audit['not_judged'][number];

/** Known mistakes that give exactly the amount of a line. */
export const LOOKS_LIKE: Record<RateLine['looks_like'][number], string> = {
  contract_rate_not_applied: 'contract rate not applied',
  batch_discount_not_applied: 'batch discount not applied',
  service_tier_rate_misapplied: 'rate of another service tier',
  long_context_rate_misapplied: 'rate of long requests',
  cache_read_rate_mismatch: 'cache reads at another rate',
  cache_write_rate_mismatch: 'cache writes at another rate',
  modality_rate_mismatch: 'rate of another modality',
  region_uplift_misapplied: 'uplift of a region',
  price_effective_date_mismatch: 'old price after a price change',
};

/** Reasons for which a bill alone proves no rate. */
export const REASON: Record<UnjudgedLine['reason'], string> = {
  not_observable: 'not a charge for calls',
  not_per_token: 'not charged by token',
  unparsed_line: 'line not understood',
  negative_amount: 'negative amount',
  no_quantity: 'no quantity on the bill',
  no_price: 'no price known',
  assumed_rate: 'no source gives the rate',
  batch_unknown: 'batch not separated',
  length_unknown: 'request length unknown',
  free_allowance: 'free allowance',
};

export const days = ({ first_day: from, last_day: to }: { first_day: string; last_day: string }) =>
  from === to ? from : `${from} – ${to}`;

/** The class of tokens with what else sets its rate. */
export function rateClass(line: RateLine): string {
  const parts = [line.token_class.replaceAll('_', ' ')];
  if (line.service_tier && line.service_tier !== 'standard') parts.push(line.service_tier);
  if (line.is_batch) parts.push('batch');
  if (line.long_context) parts.push('long requests');
  if (line.region) parts.push(line.region);
  if (line.mixture) parts.push('averages');
  return parts.join(', ');
}
