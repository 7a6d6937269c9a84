import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { StoredRule } from '../../../db/policies/enforcementRules.js';
import { DomainError, type FieldIssue } from '../../../domain/errors.js';
import { LABEL_CHARS_MAX, MODEL_CHARS_MAX } from '../../../domain/events/event.js';
import { stripText } from '../../../domain/events/jsonValues.js';
import { publicId } from '../../../domain/ids.js';
import { PICO_PER_USD, type Pico, parseScaled, usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import {
  BUDGET_DECIMALS,
  BUDGET_USD_MAX,
  MAX_TOKENS_MAX,
  RULE_MODES,
  RULE_TYPES,
  type Rule,
  type RuleConfigs,
  type RuleScope,
  type RuleType,
  TOOL_CALLS_MAX,
  WINDOW_SECONDS_MAX,
} from '../../../domain/policies/enforcement/rule.js';
import type { WrapperPatterns } from '../../../usecases/policies/patternTables.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { booleanParameter, nameField } from '../../query.js';

export const RULES_PATH = '/api/v1/enforcement-rules';
export const ENFORCEMENT_CONFIG_PATH = '/api/v1/enforcement/config';
export const ENFORCEMENT_PATTERNS_PATH = '/api/v1/enforcement/patterns';

/** Seconds between two requests of a wrapper for the rules. */
const POLL_SECONDS = 60;

function wholeField(min: number, max: number) {
  const rule = `must be a whole number from ${min} to ${max}`;
  return z.int({ error: rule }).min(min, { error: rule }).max(max, { error: rule });
}

const BUDGET_RULE = `must be US dollars above 0, at most ${BUDGET_USD_MAX}, with at most ${BUDGET_DECIMALS} decimals`;
const PICO_PER_STEP = PICO_PER_USD / 10n ** BigInt(BUDGET_DECIMALS);
/** Digits that are parsed, so that a longer fraction is refused and not rounded. */
const READ_DECIMALS = 24;

/** A budget; a JSON number counts as its shortest decimal. */
const budgetField = z
  .union([z.number(), z.string().max(64)], { error: BUDGET_RULE })
  .transform((value, context): Pico => {
    const fine = parseScaled(String(value), READ_DECIMALS);
    const step = 10n ** BigInt(READ_DECIMALS - BUDGET_DECIMALS);
    if (fine !== undefined && fine > 0n && fine % step === 0n) {
      const pico = (fine / step) * PICO_PER_STEP;
      if (pico <= BigInt(BUDGET_USD_MAX) * PICO_PER_USD) return pico;
    }
    context.addIssue({ code: 'custom', message: BUDGET_RULE });
    return z.NEVER;
  })
  .meta({ type: ['number', 'string'], description: `A number or a decimal text: ${BUDGET_RULE}` });

/** Text that is compared with calls. Text that ingest would change is refused, because it could never match a call. */
const comparedField = (max: number) =>
  z
    .string()
    .min(1, { error: 'must not be empty; leave it out' })
    .max(max, { error: `must have at most ${max} characters` })
    .refine((text) => stripText(text) === text, {
      error: 'must be printable ASCII, as calls are stored with it',
    });

/** The config field of each rule type; a rule sets exactly one. */
const CONFIG_FIELDS = {
  max_tokens: wholeField(1, MAX_TOKENS_MAX).meta({
    description: 'Tokens of all classes together that a call may have',
  }),
  budget_usd: budgetField,
  window_seconds: wholeField(1, WINDOW_SECONDS_MAX),
  max_tool_calls: wholeField(0, TOOL_CALLS_MAX),
  to_model: comparedField(MODEL_CHARS_MAX).meta({ description: 'The model that calls go to' }),
};
type ConfigField = keyof typeof CONFIG_FIELDS;

const FIELD_OF_TYPE = {
  token_ceiling: 'max_tokens',
  session_budget_usd: 'budget_usd',
  duplicate_window_seconds: 'window_seconds',
  max_tool_calls: 'max_tool_calls',
  model_downgrade: 'to_model',
} as const satisfies Record<RuleType, ConfigField>;

const scopeFields = {
  team_id: comparedField(LABEL_CHARS_MAX).nullable().default(null),
  feature: comparedField(LABEL_CHARS_MAX).nullable().default(null),
  model: comparedField(MODEL_CHARS_MAX).nullable().default(null),
};
const scopeField = z
  .strictObject(scopeFields)
  .transform(fromScope)
  .meta({ description: 'Only calls whose labels equal all of those that are named, exactly' });
const scopeWithModel = z
  .strictObject(
    {
      ...scopeFields,
      model: comparedField(MODEL_CHARS_MAX).meta({ description: 'The model whose calls go to another one' }),
    },
    {
      error: ({ code, input }) =>
        code === 'invalid_type' && input === undefined
          ? 'is missing: name the model in scope.model'
          : undefined,
    },
  )
  .transform(fromScope);

function fromScope(scope: {
  team_id: string | null;
  feature: string | null;
  model: string | null;
}): RuleScope {
  return { teamId: scope.team_id, feature: scope.feature, model: scope.model };
}

const modeField = z.enum(RULE_MODES, { error: `must be one of ${RULE_MODES.join(', ')}` });

const commonFields = {
  name: nameField.nullable().default(null),
  enabled: z.boolean().default(true),
  mode: modeField
    .default('block')
    .meta({ description: 'block: wrappers stop the call; observe: they let it through' }),
};

const ANY_SCOPE = scopeField.prefault({});

export const createRuleBody = z
  .discriminatedUnion(
    'type',
    [
      z.strictObject({
        type: z.literal('token_ceiling'),
        config: z.strictObject({ max_tokens: CONFIG_FIELDS.max_tokens }),
        scope: ANY_SCOPE,
        ...commonFields,
      }),
      z.strictObject({
        type: z.literal('session_budget_usd'),
        config: z.strictObject({ budget_usd: CONFIG_FIELDS.budget_usd }),
        scope: ANY_SCOPE,
        ...commonFields,
      }),
      z.strictObject({
        type: z.literal('duplicate_window_seconds'),
        config: z.strictObject({ window_seconds: CONFIG_FIELDS.window_seconds }),
        scope: ANY_SCOPE,
        ...commonFields,
      }),
      z.strictObject({
        type: z.literal('max_tool_calls'),
        config: z.strictObject({ max_tool_calls: CONFIG_FIELDS.max_tool_calls }),
        scope: ANY_SCOPE,
        ...commonFields,
      }),
      z.strictObject({
        type: z.literal('model_downgrade'),
        config: z.strictObject({ to_model: CONFIG_FIELDS.to_model }),
        scope: scopeWithModel,
        ...commonFields,
      }),
    ],
    { error: `must be one of ${RULE_TYPES.join(', ')}` },
  )
  .meta({
    id: 'NewEnforcementRule',
    // Each variant declares `type: object` and forbids other fields; on the union they would apply to the first variant
    // only.
    override: ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
      delete jsonSchema.type;
    },
  });

/** The type cannot change: stored calls refer to the rule by its id, and keep its meaning. */
export const updateRuleBody = z
  .strictObject({
    name: nameField.nullable().optional(),
    config: z
      .strictObject({
        max_tokens: CONFIG_FIELDS.max_tokens.optional(),
        budget_usd: CONFIG_FIELDS.budget_usd.optional(),
        window_seconds: CONFIG_FIELDS.window_seconds.optional(),
        max_tool_calls: CONFIG_FIELDS.max_tool_calls.optional(),
        to_model: CONFIG_FIELDS.to_model.optional(),
      })
      .optional()
      .meta({ description: 'The one field of the rule’s type' }),
    scope: scopeField.optional().meta({ description: 'In place of the whole former scope' }),
    enabled: z.boolean().optional(),
    mode: modeField.optional(),
  })
  .meta({ id: 'EnforcementRuleChanges' });

type ConfigChange = NonNullable<z.output<typeof updateRuleBody>['config']>;

/**
 * The given fields as the config of a rule of this type. Error: invalid_body, which names missing fields and fields of
 * another type.
 */
export function configOfType<T extends RuleType>(type: T, given: ConfigChange): RuleConfigs[T] {
  const field = FIELD_OF_TYPE[type];
  const issues: FieldIssue[] = Object.entries(given)
    .filter(([name, value]) => name !== field && value !== undefined)
    .map(([name]) => issueOf(`config.${name}`, `is not of a rule of type ${type}; leave it out`));
  if (given[field] === undefined) issues.push(issueOf(`config.${field}`, 'is missing: give it'));
  if (issues.length > 0) {
    const detail = issues.map((issue) => `${issue.field}: ${issue.message}`).join('; ');
    throw new DomainError('invalid_body', detail, { issues });
  }
  return CONFIG_OF_TYPE[type](given as Required<ConfigChange>) as RuleConfigs[T];
}

function issueOf(field: string, message: string): FieldIssue {
  return { in: 'body', field, message };
}

const CONFIG_OF_TYPE: { [T in RuleType]: (given: Required<ConfigChange>) => RuleConfigs[T] } = {
  token_ceiling: (given) => ({ maxTokens: given.max_tokens as number }),
  session_budget_usd: (given) => ({ budgetPico: given.budget_usd as Pico }),
  duplicate_window_seconds: (given) => ({ windowSeconds: given.window_seconds as number }),
  max_tool_calls: (given) => ({ maxToolCalls: given.max_tool_calls as number }),
  model_downgrade: (given) => ({ toModel: given.to_model as string }),
};

export const ruleParams = z.object({
  id: z.string().meta({ example: 'rul_0199f3a2c4d57e3a8f00112233445566' }),
});

export const listRulesQuery = z.object({
  type: z.enum(RULE_TYPES, { error: `must be one of ${RULE_TYPES.join(', ')}` }).optional(),
  enabled: booleanParameter.optional(),
  mode: modeField.optional(),
  ...offsetParameters(),
});

const configSchema = z.union([
  z.strictObject({ max_tokens: z.int() }),
  z.strictObject({ budget_usd: z.number() }),
  z.strictObject({ window_seconds: z.int() }),
  z.strictObject({ max_tool_calls: z.int() }),
  z.strictObject({ to_model: z.string() }),
]);
const scopeSchema = z.strictObject({
  team_id: z.string().nullable(),
  feature: z.string().nullable(),
  model: z.string().nullable(),
});

/** A rule as wrappers apply it. */
export const ruleFields = {
  id: z.string(),
  name: z.string().nullable(),
  type: z.enum(RULE_TYPES),
  mode: z.enum(RULE_MODES),
  config: configSchema,
  scope: scopeSchema,
};

export const ruleSchema = z
  .strictObject({
    ...ruleFields,
    enabled: z.boolean(),
    created_at: z.string(),
    updated_at: z.string(),
    created_by: z.string().meta({ description: 'The id of the key that made it' }),
    removed_at: z.string().nullable().meta({
      description: 'Set: it is in no list any more and only documents why calls were blocked',
    }),
  })
  .meta({ id: 'EnforcementRule' });

export const listRulesResponse = z.strictObject({ enforcement_rules: z.array(ruleSchema), ...pageFields });

export const enforcementConfigResponse = z
  .strictObject({
    version: z.string().meta({ description: 'Of the rest: equal versions are equal rules' }),
    poll_seconds: z.int().meta({ description: 'How long to wait before asking again' }),
    rules: z.array(z.strictObject(ruleFields)).meta({ description: 'In the order in which they are asked' }),
  })
  .meta({ id: 'EnforcementConfig' });

const whole = z.int();

export const enforcementPatternsResponse = z
  .strictObject({
    version: z.string().meta({ description: 'Of the list of patterns; verdicts name it' }),
    poll_seconds: whole.meta({ description: 'How long to wait before asking again' }),
    patterns: z
      .array(z.strictObject({ index: whole, id: z.string() }))
      .meta({ description: 'The patterns that the automata find, by their place in `regexes`' }),
    not_evaluated: z.array(whole).meta({
      description: 'Patterns that need larger tables than wrappers get; only the API searches for them',
    }),
    automata: z
      .array(
        z.strictObject({
          classes: z.array(whole).meta({
            description: 'The column of tab, line feed, carriage return and the 95 printable characters',
          }),
          next: z.array(whole).meta({ description: 'The next state, by state and column, row after row' }),
          begins: z.array(whole).meta({
            description: 'By state: the pattern that begins after the character just read; -1: none',
          }),
          begins_first: z.array(whole).meta({
            description: 'By state: the pattern that begins the prompt, once all is read; -1: none',
          }),
        }),
      )
      .meta({ description: 'Each reads a prompt from its end to its beginning, from state 0' }),
  })
  .meta({ id: 'EnforcementPatterns' });

export function presentEnforcementPatterns({
  version,
  patterns,
  notEvaluated,
  automata,
}: WrapperPatterns): z.output<typeof enforcementPatternsResponse> {
  return {
    version,
    poll_seconds: POLL_SECONDS,
    patterns: patterns.map(({ index, id }) => ({ index, id })),
    not_evaluated: [...notEvaluated],
    automata: automata.map(({ classes, next, begins, beginsFirst }) => ({
      classes,
      next,
      begins,
      begins_first: beginsFirst,
    })),
  };
}

function presentConfig(rule: Rule): z.output<typeof configSchema> {
  switch (rule.type) {
    case 'token_ceiling':
      return { max_tokens: rule.config.maxTokens };
    case 'session_budget_usd':
      return { budget_usd: usdNumberFromPico(rule.config.budgetPico) };
    case 'duplicate_window_seconds':
      return { window_seconds: rule.config.windowSeconds };
    case 'max_tool_calls':
      return { max_tool_calls: rule.config.maxToolCalls };
    case 'model_downgrade':
      return { to_model: rule.config.toModel };
  }
}

export function presentRuleFields(rule: Rule) {
  const { teamId, feature, model } = rule.scope;
  return {
    id: publicId('rul', rule.id),
    name: rule.name,
    type: rule.type,
    mode: rule.mode,
    config: presentConfig(rule),
    scope: { team_id: teamId, feature, model },
  };
}

export function presentRule(rule: StoredRule): z.output<typeof ruleSchema> {
  return {
    ...presentRuleFields(rule),
    enabled: rule.enabled,
    created_at: isoFromMicros(rule.createdAtMicros),
    updated_at: isoFromMicros(rule.updatedAtMicros),
    created_by: rule.createdBy,
    removed_at: isoOrNull(rule.removedAtMicros),
  };
}

/** The rules as wrappers receive them: on every instance, equal rules have equal bytes and the same version. */
export function presentEnforcementConfig(rules: readonly Rule[]): z.output<typeof enforcementConfigResponse> {
  const config = { poll_seconds: POLL_SECONDS, rules: rules.map(presentRuleFields) };
  const version = createHash('sha256').update(JSON.stringify(config)).digest('hex').slice(0, 32);
  return { version, ...config };
}
