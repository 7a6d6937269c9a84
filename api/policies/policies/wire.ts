import { z } from 'zod';
import type { StoredPolicy } from '../../../db/policies/policies.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros } from '../../../domain/period.js';
import { SEVERITIES, type Violation } from '../../../domain/policies/alert.js';
import type { PreviewResult } from '../../../domain/policies/judge.js';
import {
  MODEL_CHARS_MAX,
  MODELS_MAX,
  POLICY_TYPES,
  type PolicyConfigs,
  type PolicyType,
  PREFIX_CHARS_MAX,
  PREFIXES_MAX,
  REGEX_CHARS_MAX,
  REGEXES_MAX,
  type SkippedPattern,
  THRESHOLD_CENTS_MAX,
  type TypedConfig,
} from '../../../domain/policies/policy.js';
import { validate } from '../../query.js';

export const POLICIES_PATH = '/api/v1/policies';

const textList = (itemsMax: number, charsMax: number, description: string) =>
  z
    .array(
      z
        .string()
        .min(1, { error: 'must not be empty' })
        .max(charsMax, { error: `must have at most ${charsMax} characters` }),
    )
    .max(itemsMax, { error: `must have at most ${itemsMax} entries` })
    .meta({ description });

const THRESHOLD_RULE = `must be whole cents from 0 to ${THRESHOLD_CENTS_MAX}`;

/** Each type's configuration, without unknown fields: a misspelt name must not silently disable a policy. */
const CONFIGS = {
  approved_models: z.strictObject({
    models: textList(
      MODELS_MAX,
      MODEL_CHARS_MAX,
      'Allowed model ids, compared character by character; empty: nothing is judged',
    ),
  }),
  banned_patterns: z.strictObject({
    regexes: textList(
      REGEXES_MAX,
      REGEX_CHARS_MAX,
      'Regular expressions in RE2 syntax, searched for anywhere in the first 512 characters of each prompt',
    ),
  }),
  key_environment_check: z.strictObject({
    prod_key_prefixes: textList(
      PREFIXES_MAX,
      PREFIX_CHARS_MAX,
      'What production keys begin with; empty: nothing is judged',
    ),
    allowed_envs: textList(PREFIXES_MAX, PREFIX_CHARS_MAX, 'Environments from which such keys may be used'),
  }),
  approval_required_threshold_cents: z.strictObject({
    threshold_cents: z
      .int({
        error: (issue) => (issue.input === undefined ? `is missing: ${THRESHOLD_RULE}` : THRESHOLD_RULE),
      })
      .min(0, { error: THRESHOLD_RULE })
      .max(THRESHOLD_CENTS_MAX, { error: THRESHOLD_RULE })
      .meta({ description: 'A call that costs as much or more is flagged; 0: nothing is judged' }),
  }),
} satisfies { [T in PolicyType]: z.ZodType<PolicyConfigs[T]> };

/** The documented configuration: one of four. `configOf` validates it by the policy's type. */
const configField = z.unknown().meta({
  override: {
    description: 'The configuration of the type that the path names',
    anyOf: POLICY_TYPES.map((type) => {
      const { $schema: _, ...schema } = z.toJSONSchema(CONFIGS[type]);
      return { title: type, ...(schema as object) };
    }),
  },
});

export const policyBody = z
  .strictObject({ config: configField, enabled: z.boolean().default(true) })
  .meta({ id: 'PolicyBody' });

const TYPE_RULE = `must be one of ${POLICY_TYPES.join(', ')}`;

export const policyParams = z.object({
  policy_type: z
    .string()
    .transform((text, context): PolicyType => {
      const type = POLICY_TYPES.find((one) => one === text);
      if (type) return type;
      context.addIssue({ code: 'custom', message: TYPE_RULE, params: { code: 'invalid_policy_type' } });
      return z.NEVER;
    })
    .meta({ enum: [...POLICY_TYPES] }),
});

/** The configuration of a body, validated by its type. Error: invalid_body, with the path of every fault. */
export function configOf(type: PolicyType, config: unknown): TypedConfig {
  const { config: valid } = validate(z.strictObject({ config: CONFIGS[type] }), { config }, 'body');
  return { type, config: valid } as TypedConfig;
}

const warningSchema = z.strictObject({
  path: z.string().meta({ example: 'config.regexes[3]' }),
  reason: z.string(),
});

const policyFields = {
  id: z.int(),
  policy_type: z.enum(POLICY_TYPES),
  config: configField,
  enabled: z.boolean(),
};
const warningsField = z
  .array(warningSchema)
  .optional()
  .meta({ description: 'Patterns that are stored and not searched for; absent where there are none' });

export const putPolicyResponse = z
  .strictObject({ ...policyFields, warnings: warningsField })
  .meta({ id: 'PutPolicy' });

const policySchema = z
  .strictObject({
    ...policyFields,
    updated_at: z.string(),
    warnings: warningsField,
    wrapper_warnings: z.array(warningSchema).optional().meta({
      description: 'Patterns that wrappers with policyVerdicts cannot evaluate; absent where there are none',
    }),
  })
  .meta({ id: 'Policy' });

export const listPoliciesResponse = z.strictObject({ policies: z.array(policySchema) });

function presentWarnings(skipped: readonly SkippedPattern[]): z.output<typeof warningsField> {
  return skipped.map(({ index, reason }) => ({ path: `config.regexes[${index}]`, reason }));
}

/** The configuration's fields in the documented order; jsonb does not keep an order. */
function presentConfig({ type, config }: TypedConfig): PolicyConfigs[PolicyType] {
  switch (type) {
    case 'approved_models':
      return { models: config.models };
    case 'banned_patterns':
      return { regexes: config.regexes };
    case 'key_environment_check':
      return { prod_key_prefixes: config.prod_key_prefixes, allowed_envs: config.allowed_envs };
    case 'approval_required_threshold_cents':
      return { threshold_cents: config.threshold_cents };
  }
}

export function presentPutPolicy(policy: StoredPolicy): z.output<typeof putPolicyResponse> {
  return {
    id: policy.id,
    policy_type: policy.type,
    config: presentConfig(policy),
    enabled: policy.enabled,
    ...(policy.skipped.length > 0 ? { warnings: presentWarnings(policy.skipped) } : {}),
  };
}

/** @param notEvaluated indexes of patterns that wrappers cannot evaluate */
export function presentPolicy(
  policy: StoredPolicy,
  notEvaluated: readonly number[],
): z.output<typeof policySchema> {
  const { warnings, ...fields } = presentPutPolicy(policy);
  return {
    ...fields,
    updated_at: isoFromMicros(policy.updatedAtMicros),
    ...(warnings ? { warnings } : {}),
    ...(notEvaluated.length > 0 ? { wrapper_warnings: notEvaluated.map(presentNotEvaluated) } : {}),
  };
}

function presentNotEvaluated(index: number): z.output<typeof warningSchema> {
  return {
    path: `config.regexes[${index}]`,
    reason:
      'wrappers do not evaluate it, because its table is too large: bound its repetitions more tightly, or set capturePayloads',
  };
}

const reasonCount = z.int().meta({ description: 'Events' });

export const previewResponse = z
  .strictObject({
    policy_type: z.enum(POLICY_TYPES),
    events: z.int().meta({ description: 'How many of the newest events were looked at' }),
    oldest: z.string().nullable().meta({ description: 'Time of the oldest of them' }),
    flagged: z.int().meta({ description: 'How many of them the policy would have flagged' }),
    unjudged: z
      .strictObject({
        prompts_not_stored: reasonCount,
        environment_unknown: reasonCount,
        key_unknown: reasonCount,
        cost_unknown: reasonCount,
      })
      .meta({ description: 'How many could not be judged, by what is not known of them' }),
    flagged_events: z
      .array(
        z.strictObject({
          event_id: z.string(),
          timestamp: z.string(),
          severity: z.enum(SEVERITIES),
          message: z.string(),
          details: z.record(z.string(), z.unknown()),
        }),
      )
      .meta({ description: 'The newest of the flagged ones, at most 100' }),
    warnings: warningsField,
  })
  .meta({ id: 'PolicyPreview' });

export function presentPreview(
  type: PolicyType,
  result: PreviewResult,
  skipped: readonly SkippedPattern[],
): z.output<typeof previewResponse> {
  const { unjudged } = result;
  return {
    policy_type: type,
    events: result.events,
    oldest: result.oldestMicros === null ? null : isoFromMicros(result.oldestMicros),
    flagged: result.flagged,
    unjudged: {
      prompts_not_stored: unjudged.prompts_not_stored,
      environment_unknown: unjudged.environment_unknown,
      key_unknown: unjudged.key_unknown,
      cost_unknown: unjudged.cost_unknown,
    },
    flagged_events: result.shown.map(({ id, timestampMicros, violation }) => ({
      event_id: publicId('evt', id),
      timestamp: isoFromMicros(timestampMicros),
      severity: violation.severity,
      message: violation.message,
      details: presentDetails(violation),
    })),
    ...(skipped.length > 0 ? { warnings: presentWarnings(skipped) } : {}),
  };
}

/** `judgeCall` builds the details from the policy's fields; they contain no text of prompts. */
function presentDetails({ details }: Violation): { [name: string]: unknown } {
  return { ...details };
}
