import type { components } from '../api/client';

type Kind = components['schemas']['ReviewItem']['kind'];

/** Names of the kinds of differences, as docs/explanations.md explains them. */
const NAMES: Record<Kind, string> = {
  batch_discount_not_applied: 'Batch discount missing',
  cache_read_rate_mismatch: 'Wrong cache read rate',
  cache_write_rate_mismatch: 'Wrong cache write rate',
  cached_tokens_double_metered: 'Cached tokens billed twice',
  long_context_rate_misapplied: 'Wrong long-context rate',
  service_tier_rate_misapplied: 'Wrong service tier rate',
  region_uplift_misapplied: 'Wrong region uplift',
  modality_rate_mismatch: 'Wrong modality rate',
  contract_rate_not_applied: 'Contract rate missing',
  promotional_rate_not_applied: 'Promotional rate missing',
  price_effective_date_mismatch: 'Price of another period',
  list_rate_mismatch: 'Differs from the list price',
  model_misattribution: 'Billed as another model',
  duplicate_charge: 'Duplicate charge',
  failed_request_billed: 'Failed calls billed',
  cancelled_stream_overbilled: 'Cancelled streams overbilled',
  token_count_inflation: 'Token count too high',
  tool_fee_mismatch: 'Wrong tool fee',
  hosting_fee_after_delete: 'Hosting fee after deletion',
  unauthorized_key_usage: 'Unauthorized key',
  period_double_count: 'Day billed in two months',
  credit_not_applied: 'Credit missing',
  tax_or_fx_error: 'Tax or exchange rate error',
  rounding_accumulation: 'Accumulated rounding',
  invoice_total_mismatch: 'Invoice total mismatch',
  unobserved_usage: 'Calls that were not recorded',
  timing_shift: 'Booked on another day',
  late_usage_adjustment: 'Late usage adjustment',
  stale_price_reference: 'Outdated price reference',
  contract_terms: 'Contract terms',
  client_metering_error: 'Client metering error',
  insufficient_evidence: 'Insufficient evidence',
  other: 'Other',
  unexplained: 'Unexplained',
  policy: 'Policy',
};

export const kindName = (kind: string) => NAMES[kind as Kind] ?? kind.replaceAll('_', ' ');

/** Kinds that a provider may name as the reason of a denial. */
export const DENIAL_KINDS = (Object.keys(NAMES) as Kind[])
  .filter((kind) => kind !== 'policy' && kind !== 'unexplained')
  .map((value) => ({ value, label: NAMES[value] }))
  .sort((one, other) => one.label.localeCompare(other.label));

export const KIND_OPTIONS = (Object.keys(NAMES) as Kind[])
  .filter((kind) => kind !== 'policy')
  .map((value) => ({ value: value as string, label: NAMES[value] }))
  .sort((one, other) => one.label.localeCompare(other.label));
