import { stripText } from '../events/jsonValues.js';
import type { Pico } from '../money.js';
import type { Violation } from './alert.js';
import { type PatternMatch, PatternSet } from './patternSet.js';
import { type PatternVerdict, VerdictReader } from './patternVerdict.js';
import { type CostRule, costViolation, type Policy, type PolicyConfigs, type PolicyType } from './policy.js';

/** Judges calls when they are stored, without a clock or randomness, so that every instance judges alike. */

export interface JudgedCall {
  /** Stripped, as stored. */
  model: string;
  /** Every text part by itself; called only by policies with patterns. */
  prompts(): readonly string[];
  /** Whether a report of the call has a prompt; absent: `prompts` shows it. */
  hasPrompts?: boolean;
  /** The wrapper's result for a call whose prompts stay in the application. */
  patternVerdict?: PatternVerdict | undefined;
  /** The `_service.environment` tag; null: the environment is unknown. */
  environment: string | null;
  /** `_service.api_key_prefix`, else the public prefix of the key that sent the call. */
  keyPrefix: string | null;
  /** null: unpriced or unmetered, so the cost is unknown. */
  costPico: Pico | null;
}

/** Reasons why a policy cannot judge a call: the fact that it needs is unknown. */
export const UNJUDGED_REASONS = [
  'environment_unknown',
  'key_unknown',
  'cost_unknown',
  // The call came without prompts and without a wrapper's verdict.
  'prompts_unknown',
  // The wrapper's verdict is of another list of patterns.
  'verdict_outdated',
  // The wrapper could not evaluate every pattern and every prompt.
  'verdict_incomplete',
] as const;
export type UnjudgedReason = (typeof UNJUDGED_REASONS)[number];

export interface Unjudged {
  policyType: PolicyType;
  reason: UnjudgedReason;
}

/** Policies compiled to judge many calls. They hold compiled patterns, so share them between equal policies. */
export interface CompiledPolicies {
  readonly rules: readonly Rule[];
}

interface Rule {
  readonly policyType: PolicyType;
  /** Upper bound of its memory, bytes. */
  readonly bytesMax: number;
  violation(call: JudgedCall): Violation | undefined;
  /** The reason why the call cannot be judged; undefined: it can. */
  unjudged(call: JudgedCall): UnjudgedReason | undefined;
}

/** Shown characters of a client's key prefix; the public prefix of our own keys has 18. */
const SHOWN_PREFIX_CHARS = 20;

/** Memory of a rule without patterns, and of each listed text beside its characters, bytes. */
const BYTES_AROUND = 1_000;
const BYTES_PER_TEXT = 64;

const NOTHING: readonly Violation[] = [];
const ALL_JUDGED: readonly Unjudged[] = [];

/** Compiles policies. Disabled policies, and those with an empty list or a threshold of 0, judge nothing. */
export function compilePolicies(policies: readonly Policy[]): CompiledPolicies {
  const rules = policies
    .filter(({ enabled }) => enabled)
    .map(compileRule)
    .filter((rule) => rule !== undefined);
  return { rules };
}

export function judgeCall(policies: CompiledPolicies, call: JudgedCall): readonly Violation[] {
  let violations: Violation[] | undefined;
  for (const rule of policies.rules) {
    const violation = rule.violation(call);
    if (violation) violations = [...(violations ?? []), violation];
  }
  return violations ?? NOTHING;
}

/** Upper bound of the memory of compiled policies, bytes; usually they need far less. */
export function bytesMaxOf(policies: CompiledPolicies): number {
  return policies.rules.reduce((sum, { bytesMax }) => sum + bytesMax, 0);
}

/** Policies that cannot judge the call, with the reason; the call breaks none of them. */
export function unjudgedOf(policies: CompiledPolicies, call: JudgedCall): readonly Unjudged[] {
  let found: Unjudged[] | undefined;
  for (const rule of policies.rules) {
    const reason = rule.unjudged(call);
    if (reason) found = [...(found ?? []), { policyType: rule.policyType, reason }];
  }
  return found ?? ALL_JUDGED;
}

function compileRule(policy: Policy): Rule | undefined {
  const { id: policyId, type: policyType } = policy;
  switch (policy.type) {
    case 'approved_models':
      return modelRule({ policyId, policyType }, policy.config);
    case 'banned_patterns':
      return patternRule({ policyId, policyType }, policy);
    case 'key_environment_check':
      return keyRule({ policyId, policyType }, policy.config);
    case 'approval_required_threshold_cents':
      return thresholdRule({ policyId, policyType }, policy.config);
  }
}

function bytesOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + BYTES_PER_TEXT + 2 * text.length, BYTES_AROUND);
}

type Named = Pick<Violation, 'policyId' | 'policyType'>;

function modelRule(named: Named, { models }: PolicyConfigs['approved_models']): Rule | undefined {
  if (models.length === 0) return undefined;
  // The models of calls are stripped before the comparison, so the approved ones are too: a stray character is no
  // other model.
  const approved = new Set(models.map(stripText));
  return {
    policyType: named.policyType,
    bytesMax: bytesOf(models),
    violation: ({ model }) =>
      approved.has(model)
        ? undefined
        : {
            ...named,
            severity: 'medium',
            message: `The model ${model} is not among the approved models.`,
            details: { model },
          },
    unjudged: () => undefined,
  };
}

function patternRule(
  named: Named,
  { config, skipped }: Extract<Policy, { type: 'banned_patterns' }>,
): Rule | undefined {
  const patterns = PatternSet.of(config.regexes, skipped);
  if (!patterns) return undefined;
  const verdicts = new VerdictReader(config.regexes, skipped);
  const violationOf = (match: PatternMatch | undefined): Violation | undefined =>
    match && {
      ...named,
      severity: 'high',
      message: `A prompt of the call matches the banned pattern at config.regexes[${match.patternIndex}].`,
      details: { pattern_index: match.patternIndex, match_offset: match.offset },
    };
  return {
    policyType: named.policyType,
    bytesMax: patterns.bytesMax,
    violation: (call) => {
      const prompts = call.prompts();
      // A prompt that is here is searched; the verdict is for those that are not.
      if (prompts.length > 0) return violationOf(patterns.find(prompts));
      return violationOf(call.patternVerdict && verdicts.matchIn(call.patternVerdict));
    },
    unjudged: ({ hasPrompts, patternVerdict }) =>
      hasPrompts === true ? undefined : verdicts.unjudged(patternVerdict),
  };
}

function keyRule(
  named: Named,
  { prod_key_prefixes, allowed_envs }: PolicyConfigs['key_environment_check'],
): Rule | undefined {
  const prefixes = prod_key_prefixes.map(stripText).filter((prefix) => prefix !== '');
  if (prefixes.length === 0) return undefined;
  const allowed = new Set(allowed_envs.map(stripText));
  return {
    policyType: named.policyType,
    bytesMax: bytesOf([...prefixes, ...allowed]),
    violation: ({ environment, keyPrefix }) => {
      if (environment === null || keyPrefix === null || allowed.has(environment)) return undefined;
      const prefix = prefixes.find((some) => keyPrefix.startsWith(some));
      if (prefix === undefined) return undefined;
      return {
        ...named,
        severity: 'high',
        message: `A production key was used from the environment ${environment}.`,
        // A client may send more of its key than the prefix; readers of alerts must not see the key.
        details: { environment, key_prefix: keyPrefix.slice(0, Math.max(SHOWN_PREFIX_CHARS, prefix.length)) },
      };
    },
    unjudged: ({ environment, keyPrefix }) => {
      if (keyPrefix === null) return 'key_unknown';
      // A key outside production may be used in every environment.
      const isProduction = prefixes.some((prefix) => keyPrefix.startsWith(prefix));
      return isProduction && environment === null ? 'environment_unknown' : undefined;
    },
  };
}

function thresholdRule(
  named: Named,
  { threshold_cents }: PolicyConfigs['approval_required_threshold_cents'],
): Rule | undefined {
  if (threshold_cents === 0) return undefined;
  const rule: CostRule = { ...named, thresholdCents: BigInt(threshold_cents) };
  return {
    policyType: named.policyType,
    bytesMax: BYTES_AROUND,
    violation: ({ costPico }) => (costPico === null ? undefined : costViolation(rule, costPico)),
    unjudged: ({ costPico }) => (costPico === null ? 'cost_unknown' : undefined),
  };
}

/** A preview reads this number of the newest events. */
export const PREVIEW_EVENTS_MAX = 1_000;
const SHOWN_MAX = 100;
/** Prompts that are searched between two pauses: some milliseconds at most. */
const PROMPTS_A_TURN = 8;

/** A stored event as policies see it; prompts are undefined if none are stored. */
export interface PreviewedEvent extends Omit<JudgedCall, 'prompts' | 'hasPrompts' | 'patternVerdict'> {
  id: string;
  timestampMicros: bigint;
  prompts: readonly string[] | undefined;
}

/** Reasons why a preview cannot judge an event. */
export type PreviewedReason = 'environment_unknown' | 'key_unknown' | 'cost_unknown' | 'prompts_not_stored';

export interface PreviewResult {
  events: number;
  oldestMicros: bigint | null;
  flagged: number;
  /** Number of events by the missing fact. */
  unjudged: Record<PreviewedReason, number>;
  /** The first flagged events. */
  shown: { id: string; timestampMicros: bigint; violation: Violation }[];
}

/** Collects the events that a policy would have flagged, newest first. */
export class Preview {
  readonly result: PreviewResult = {
    events: 0,
    oldestMicros: null,
    flagged: 0,
    unjudged: { prompts_not_stored: 0, environment_unknown: 0, key_unknown: 0, cost_unknown: 0 },
    shown: [],
  };
  readonly #policies: CompiledPolicies;
  readonly #needsPrompts: boolean;
  /** Prompts searched since the last pause. */
  #searched = 0;

  constructor(policies: CompiledPolicies) {
    this.#policies = policies;
    this.#needsPrompts = policies.rules.some(({ policyType }) => policyType === 'banned_patterns');
  }

  /** Adds an event. `pause` lets other tasks run, since a call can hold thousands of prompts. */
  async add(event: PreviewedEvent, pause: () => Promise<void>): Promise<void> {
    const { id, timestampMicros, prompts } = event;
    const { result } = this;
    result.events += 1;
    result.oldestMicros = timestampMicros;
    if (this.#needsPrompts && prompts === undefined) {
      result.unjudged.prompts_not_stored += 1;
      return;
    }
    for (const { reason } of unjudgedOf(this.#policies, { ...event, prompts: () => [], hasPrompts: true }))
      if (reason in result.unjudged) result.unjudged[reason as PreviewedReason] += 1;
    const violation = await this.#judge(event, pause);
    if (!violation) return;
    result.flagged += 1;
    if (result.shown.length < SHOWN_MAX) result.shown.push({ id, timestampMicros, violation });
  }

  async #judge(event: PreviewedEvent, pause: () => Promise<void>): Promise<Violation | undefined> {
    const prompts = (this.#needsPrompts && event.prompts) || [];
    let at = 0;
    do {
      const some = prompts.slice(at, at + PROMPTS_A_TURN);
      const [violation] = judgeCall(this.#policies, { ...event, prompts: () => some });
      if (violation) return violation;
      at += PROMPTS_A_TURN;
      this.#searched += some.length;
      if (this.#searched >= PROMPTS_A_TURN) {
        this.#searched = 0;
        await pause();
      }
    } while (at < prompts.length);
    return undefined;
  }
}
