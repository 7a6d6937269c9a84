import type { components } from '../../api/client';

export type Policy = components['schemas']['Policy'];
export type PolicyType = Policy['policy_type'];
export type PolicyBody = components['schemas']['PolicyBody'];

export const POLICIES: { type: PolicyType; name: string; does: string }[] = [
  {
    type: 'approved_models',
    name: 'Approved models',
    does: 'Raises an alert for a call of any other model.',
  },
  {
    type: 'banned_patterns',
    name: 'Banned patterns',
    does: 'Raises an alert for a prompt that matches a pattern, such as one with a password.',
  },
  {
    type: 'key_environment_check',
    name: 'Production keys',
    does: 'Raises an alert for a production key that is used from another environment.',
  },
  {
    type: 'approval_required_threshold_cents',
    name: 'Expensive calls',
    does: 'Raises an alert for a single call that costs as much or more.',
  },
];

export const policyName = (type: PolicyType) => POLICIES.find((one) => one.type === type)?.name ?? type;

/** The texts of the editor: one value a line; the threshold in dollars. */
export interface Draft {
  models: string;
  regexes: string;
  prefixes: string;
  environments: string;
  dollars: string;
}

export function draftOf(policy: Policy | undefined): Draft {
  const config = (policy?.config ?? {}) as Partial<{
    models: string[];
    regexes: string[];
    prod_key_prefixes: string[];
    allowed_envs: string[];
    threshold_cents: number;
  }>;
  const lines = (values: string[] | undefined) => (values ?? []).join('\n');
  const cents = config.threshold_cents;
  return {
    models: lines(config.models),
    regexes: lines(config.regexes),
    prefixes: lines(config.prod_key_prefixes),
    environments: lines(config.allowed_envs),
    dollars: cents === undefined ? '' : dollarsOf(cents),
  };
}

/** Whole cents as dollars: 220 is `2.20`. */
export function dollarsOf(cents: number): string {
  const digits = String(cents).padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** Dollars as whole cents; undefined for anything else. */
export function centsOf(dollars: string): number | undefined {
  const match = /^([0-9]{1,8})(?:\.([0-9]{1,2}))?$/.exec(dollars.trim());
  return match ? Number(match[1] + (match[2] ?? '').padEnd(2, '0')) : undefined;
}

/** Values of a text with one value a line. A pattern keeps its spaces. */
export const linesOf = (text: string, isTrimmed = true) =>
  text
    .split('\n')
    .map((line) => (isTrimmed ? line.trim() : line.replace(/\r$/, '')))
    .filter((line) => line.trim() !== '');

/** The configuration that the texts describe; undefined while one of them is not complete. */
export function configOf(type: PolicyType, draft: Draft): PolicyBody['config'] | undefined {
  if (type === 'approved_models') return { models: linesOf(draft.models) };
  if (type === 'banned_patterns') return { regexes: linesOf(draft.regexes, false) };
  if (type === 'key_environment_check')
    return { prod_key_prefixes: linesOf(draft.prefixes), allowed_envs: linesOf(draft.environments) };
  const cents = centsOf(draft.dollars);
  return cents === undefined ? undefined : { threshold_cents: cents };
}

/** The number of the pattern at a path such as `config.regexes[3]`, from 1. */
export const patternNumber = (path: string): number => Number(/\[(\d+)\]/.exec(path)?.[1] ?? 0) + 1;
