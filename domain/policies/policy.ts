/**
 * What an organization wants of its calls: one policy of each type. A call that breaks one is told in the alerts feed;
 * nothing is blocked by a policy.
 */
export const POLICY_TYPES = [
  'approved_models',
  'banned_patterns',
  'key_environment_check',
  'approval_required_threshold_cents',
] as const;
export type PolicyType = (typeof POLICY_TYPES)[number];

/** What each type is told, by the names on the wire, as it was sent. */
export interface PolicyConfigs {
  approved_models: { models: readonly string[] };
  banned_patterns: { regexes: readonly string[] };
  key_environment_check: { prod_key_prefixes: readonly string[]; allowed_envs: readonly string[] };
  approval_required_threshold_cents: { threshold_cents: number };
}

/** A type with the configuration that is its own. */
export type TypedConfig = { [T in PolicyType]: { type: T; config: PolicyConfigs[T] } }[PolicyType];

/** Why a pattern is passed over. */
export const SKIP_CODES = ['invalid', 'slow'] as const;

/** A pattern of banned_patterns that is stored and not searched for. Decided when the policy is put, for every instance. */
export interface SkippedPattern {
  /** Its place in `regexes`. */
  index: number;
  code: (typeof SKIP_CODES)[number];
  /** A sentence for whoever wrote it. */
  reason: string;
}

interface PolicyOf<T extends PolicyType> {
  /** Of the organization: 1, 2, … in the order in which its policies were first put. */
  id: number;
  type: T;
  config: PolicyConfigs[T];
  enabled: boolean;
  skipped: readonly SkippedPattern[];
}
export type Policy = { [T in PolicyType]: PolicyOf<T> }[PolicyType];

/** Characters of each prompt that are searched, after stripping. */
export const PROMPT_SCAN_CHARS = 512;
/** Prompts of a call that are searched. */
export const PROMPTS_SCANNED_MAX = 10_000;
export const MODELS_MAX = 1_000;
export const MODEL_CHARS_MAX = 256;
export const REGEXES_MAX = 100;
export const REGEX_CHARS_MAX = 512;
export const PREFIXES_MAX = 100;
export const PREFIX_CHARS_MAX = 128;
export const THRESHOLD_CENTS_MAX = 1_000_000_000;
