/** Kinds of differences (docs/domain-language.md). They are never renamed, since rows last for years. */

/** The charge for a unit is wrong. */
export const RATE_KINDS = [
  'batch_discount_not_applied',
  'cache_read_rate_mismatch',
  'cache_write_rate_mismatch',
  'cached_tokens_double_metered',
  'long_context_rate_misapplied',
  'service_tier_rate_misapplied',
  'region_uplift_misapplied',
  'modality_rate_mismatch',
  'contract_rate_not_applied',
  'promotional_rate_not_applied',
  'price_effective_date_mismatch',
  'list_rate_mismatch',
  'model_misattribution',
] as const;

/** The number of units is wrong. */
export const QUANTITY_KINDS = [
  'duplicate_charge',
  'failed_request_billed',
  'cancelled_stream_overbilled',
  'token_count_inflation',
  'tool_fee_mismatch',
  'hosting_fee_after_delete',
  'unauthorized_key_usage',
  'period_double_count',
] as const;

/** The bill's own arithmetic is wrong. */
export const INVOICE_KINDS = [
  'credit_not_applied',
  'tax_or_fx_error',
  'rounding_accumulation',
  'invoice_total_mismatch',
] as const;

/** Explanations that are no mistake of the provider. */
export const BENIGN_KINDS = [
  'unobserved_usage',
  'timing_shift',
  'late_usage_adjustment',
  'stale_price_reference',
  'contract_terms',
  'client_metering_error',
  'insufficient_evidence',
  'other',
] as const;

export const VIOLATION_KINDS = [...RATE_KINDS, ...QUANTITY_KINDS, ...INVOICE_KINDS] as const;
export type ViolationKind = (typeof VIOLATION_KINDS)[number];
export type BenignKind = (typeof BENIGN_KINDS)[number];

export const TAXONOMY_KINDS = [...VIOLATION_KINDS, ...BENIGN_KINDS] as const;
export type TaxonomyKind = (typeof TAXONOMY_KINDS)[number];

/** The kind of a finding: a key of the taxonomy, or `unexplained`. */
export const FINDING_KINDS = [...TAXONOMY_KINDS, 'unexplained'] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export function isViolation(kind: FindingKind): kind is ViolationKind {
  return (VIOLATION_KINDS as readonly string[]).includes(kind);
}
