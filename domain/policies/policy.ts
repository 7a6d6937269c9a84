import type { AuditDetails } from '../access/auditLog.js';
import { decimalFromPico, PICO_PER_USD, type Pico } from '../money.js';
import type { Violation } from './alert.js';

/** An organization has one policy of each type. A call that breaks one raises an alert; nothing is blocked. */
export const POLICY_TYPES = [
  'approved_models',
  'banned_patterns',
  'key_environment_check',
  'approval_required_threshold_cents',
] as const;
export type PolicyType = (typeof POLICY_TYPES)[number];

/** The configuration of each type, with its field names on the wire, as it was sent. */
export interface PolicyConfigs {
  approved_models: { models: readonly string[] };
  banned_patterns: { regexes: readonly string[] };
  key_environment_check: { prod_key_prefixes: readonly string[]; allowed_envs: readonly string[] };
  approval_required_threshold_cents: { threshold_cents: number };
}

/** A type with its configuration. */
export type TypedConfig = { [T in PolicyType]: { type: T; config: PolicyConfigs[T] } }[PolicyType];

/** Reasons why a pattern is skipped. */
export const SKIP_CODES = ['invalid', 'slow'] as const;

/**
 * A pattern of banned_patterns that is stored but not searched. Decided once for every instance, when the policy
 * is put.
 */
export interface SkippedPattern {
  index: number;
  code: (typeof SKIP_CODES)[number];
  /** A sentence for the author of the pattern. */
  reason: string;
}

interface PolicyOf<T extends PolicyType> {
  /** Number within the organization: 1, 2, … in the order in which its policies were first put. */
  id: number;
  type: T;
  config: PolicyConfigs[T];
  enabled: boolean;
  skipped: readonly SkippedPattern[];
}
export type Policy = { [T in PolicyType]: PolicyOf<T> }[PolicyType];

/** Searched characters of each prompt, after stripping. */
export const PROMPT_SCAN_CHARS = 512;
/** Maximum searched prompts of a call. */
export const PROMPTS_SCANNED_MAX = 10_000;
export const MODELS_MAX = 1_000;
export const MODEL_CHARS_MAX = 256;
export const REGEXES_MAX = 100;
export const REGEX_CHARS_MAX = 512;
export const PREFIXES_MAX = 100;
export const PREFIX_CHARS_MAX = 128;
export const THRESHOLD_CENTS_MAX = 1_000_000_000;

const PICO_PER_CENT = PICO_PER_USD / 100n;
/** A cost of at least this many times the threshold is of high severity. */
const HIGH_TIMES = 10n;

export interface CostRule extends Pick<Violation, 'policyId' | 'policyType'> {
  thresholdCents: bigint;
}

/** Compares in whole pico-dollars, so that nothing is lost to rounding: 0.29 USD is 29 cents. */
export function costViolation({ thresholdCents, ...named }: CostRule, cost: Pico): Violation | undefined {
  const threshold = thresholdCents * PICO_PER_CENT;
  if (cost < threshold) return undefined;
  return {
    ...named,
    severity: cost >= threshold * HIGH_TIMES ? 'high' : 'medium',
    message: `The call cost ${priceTag(cost)}; calls of ${priceTag(threshold)} and more need approval.`,
    details: {
      // Cut off instead of rounded, so that whole cents compare with the threshold like the exact cost.
      cost_cents: Number(cost / PICO_PER_CENT),
      threshold_cents: Number(thresholdCents),
    },
  };
}

/** "$2.90", "$0.289999": every known digit, and always the cents. */
function priceTag(pico: Pico): string {
  const [whole, fraction = ''] = decimalFromPico(pico).split('.');
  return `$${whole}.${fraction.padEnd(2, '0')}`;
}

/** The audit log's details of a put: old and new values, and for lists the added and removed items. */
export function describePut(before: Policy | undefined, after: Policy): AuditDetails {
  const details: { [name: string]: AuditDetails[string] } = {
    policy_type: after.type,
    enabled: after.enabled,
    patterns_skipped: after.type === 'banned_patterns' ? after.skipped.length : undefined,
  };
  if (before && before.enabled !== after.enabled) details.old_enabled = before.enabled;
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  for (const [name, value] of Object.entries(now)) {
    const was = old[name];
    if (typeof value === 'number') {
      details[name] = value;
      if (was !== undefined && was !== value) details[`old_${name}`] = was;
      continue;
    }
    const had = Array.isArray(was) ? was : [];
    const added = value.filter((item) => !had.includes(item));
    const removed = had.filter((item) => !value.includes(item));
    if (added.length > 0) details[`${name}_added`] = added;
    if (removed.length > 0) details[`${name}_removed`] = removed;
  }
  return details;
}

function fieldsOf(policy: Policy | undefined): { [name: string]: number | readonly string[] } {
  return { ...policy?.config } as { [name: string]: number | readonly string[] };
}
