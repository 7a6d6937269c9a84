import type { StorableEvent } from '../../db/events/eventColumns.js';
import { type JudgeCost, knownCost, type NewAlert, newAlert } from '../../db/policies/policyAlerts.js';
import { Turns } from '../../db/turns.js';
import { publicPrefix } from '../../domain/access/keyRules.js';
import type { CallRecord, Json } from '../../domain/events/event.js';
import type { Violation } from '../../domain/policies/alert.js';
import {
  bytesMaxOf,
  type CompiledPolicies,
  compilePolicies,
  type JudgedCall,
  judgeCall,
  type Unjudged,
  unjudgedOf,
} from '../../domain/policies/judge.js';
import { readPatternVerdict } from '../../domain/policies/patternVerdict.js';
import { type Policy, type PolicyType, PROMPTS_SCANNED_MAX } from '../../domain/policies/policy.js';

/** Prompts that are searched between two checks of the clock. */
const PROMPTS_A_LOOK = 2;

/** Results of judging a batch's calls, before it is known which of them are new. */
export interface Judgement {
  /** Alerts by event, valid if the event is stored. */
  alerts: ReadonlyMap<string, readonly NewAlert[]>;
  /** Policy violations in superseded reports, for the call that replaces them. */
  violationsOf: ReadonlyMap<string, readonly Violation[]>;
  /** Policies that could not be evaluated, by event, valid if the event is stored. */
  unjudged: ReadonlyMap<string, readonly Unjudged[]>;
}

export const NOTHING_JUDGED: Judgement = { alerts: new Map(), violationsOf: new Map(), unjudged: new Map() };

const NO_REPORTS: readonly StorableEvent[] = [];
const NOTHING: readonly Violation[] = [];

/**
 * Evaluates the policies for a batch's calls, whose payloads must still be present. Each call is judged once, from all
 * its reports in the batch.
 */
export async function judgeBatch(events: readonly StorableEvent[], judges: Judges): Promise<Judgement> {
  if (judges.isEmpty) return NOTHING_JUDGED;
  const turns = new Turns();
  const { violationsOf, reports } = await judgeReports(events, judges, turns);
  const alerts = new Map<string, readonly NewAlert[]>();
  const unjudged = new Map<string, readonly Unjudged[]>();
  const seen = new Set<string>();
  for (const event of events) {
    // An event that is in the batch twice is judged as it is stored: in its first form.
    if (event.supersededBy !== null || seen.has(event.id)) continue;
    seen.add(event.id);
    const others = reports.get(event.id) ?? NO_REPORTS;
    const judged = judgedCallOf(event, others);
    const broken = judgeCall(judges.ofCall, judged);
    const said = await searchPrompts(judged, judges, turns);
    const all = [...broken, ...said, ...others.flatMap(({ id }) => violationsOf.get(id) ?? NOTHING)];
    if (all.length > 0) alerts.set(event.id, alertsOf(event, all));
    const open = [...unjudgedOf(judges.ofCall, judged), ...unjudgedPrompts(judged, judges)];
    if (open.length > 0) unjudged.set(event.id, open);
    if (turns.isOver()) await turns.next();
  }
  return { alerts, violationsOf, unjudged };
}

/** Violations in superseded reports, and the superseded reports by the event that replaces them. */
async function judgeReports(events: readonly StorableEvent[], judges: Judges, turns: Turns) {
  const violationsOf = new Map<string, readonly Violation[]>();
  const reports = new Map<string, StorableEvent[]>();
  for (const event of events) {
    if (event.supersededBy === null) continue;
    const judged = judgedCallOf(event, NO_REPORTS);
    const said = [...judgeCall(judges.ofReport, judged), ...(await searchPrompts(judged, judges, turns))];
    if (said.length > 0) violationsOf.set(event.id, said);
    const others = reports.get(event.supersededBy);
    if (others) others.push(event);
    else reports.set(event.supersededBy, [event]);
    if (turns.isOver()) await turns.next();
  }
  return { violationsOf, reports };
}

/** One alert for each policy: its first violation. */
function alertsOf(event: StorableEvent, violations: readonly Violation[]): NewAlert[] {
  const first = new Map<string, Violation>();
  for (const violation of violations)
    if (!first.has(violation.policyType)) first.set(violation.policyType, violation);
  return [...first.values()].map((violation) => newAlert(event, violation));
}

function unjudgedPrompts(judged: JudgedCall, { ofPrompts }: Judges): readonly Unjudged[] {
  return ofPrompts === undefined ? [] : unjudgedOf(ofPrompts, judged);
}

/** The patterns that match the prompts, a few prompts at a time, because a call may have any number of prompts. */
function searchPrompts(
  judged: JudgedCall,
  { ofPrompts }: Judges,
  turns: Turns,
): readonly Violation[] | Promise<readonly Violation[]> {
  if (ofPrompts === undefined) return NOTHING;
  const prompts = judged.prompts().slice(0, PROMPTS_SCANNED_MAX);
  if (prompts.length <= PROMPTS_A_LOOK) return judgeCall(ofPrompts, { ...judged, prompts: () => prompts });
  return searchMany(judged, prompts, ofPrompts, turns);
}

async function searchMany(
  judged: JudgedCall,
  prompts: readonly string[],
  ofPrompts: CompiledPolicies,
  turns: Turns,
): Promise<readonly Violation[]> {
  for (let at = 0; at < prompts.length; at += PROMPTS_A_LOOK) {
    const some = prompts.slice(at, at + PROMPTS_A_LOOK);
    const found = judgeCall(ofPrompts, { ...judged, prompts: () => some });
    if (found.length > 0) return found;
    if (turns.isOver()) await turns.next();
  }
  return NOTHING;
}

/** A call as policies see it: its own prompts, and its key, else the key of another report of it. */
function judgedCallOf(event: StorableEvent, others: readonly StorableEvent[]): JudgedCall {
  const { call, apiKeyId } = event;
  return {
    model: call.model,
    prompts: call.prompts,
    hasPrompts: hasPrompts(event) || others.some(hasPrompts),
    patternVerdict: readPatternVerdict(call.service),
    // The `_service.environment` tag; ingest filled it in where the client names the environment elsewhere.
    environment: call.environment,
    keyPrefix: keyPrefixOf(call) ?? leastPrefix(others) ?? publicPrefix(apiKeyId),
    costPico: knownCost(event),
  };
}

/** Every call with a prompt has the hash of its prompts until it is stored. */
function hasPrompts({ call }: StorableEvent): boolean {
  return call.promptHash !== null;
}

/** The smallest key prefix, so that the result does not depend on the order of reports. */
function leastPrefix(reports: readonly StorableEvent[]): string | undefined {
  return reports.length === 0 ? undefined : reports.flatMap(({ call }) => keyPrefixOf(call) ?? []).sort()[0];
}

function keyPrefixOf({ service }: CallRecord): string | null {
  const prefix: Json | undefined = isObject(service) ? service.api_key_prefix : undefined;
  return typeof prefix === 'string' && prefix !== '' ? prefix : null;
}

function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * An organization's compiled policies, separated by their input, because not every report of a call is judged by all of
 * them.
 */
export class Judges {
  static readonly NONE = new Judges([]);

  /** Whether there is nothing to judge. */
  readonly isEmpty: boolean;
  /** Policies on the whole call: its model, its cost, its key. */
  readonly ofCall: CompiledPolicies;
  /** Policies on fields of each report of the call. */
  readonly ofReport: CompiledPolicies;
  /** Policies on the cost alone. */
  readonly ofCost: CompiledPolicies;
  /** Policies on prompts; undefined: prompts are not read. */
  readonly ofPrompts: CompiledPolicies | undefined;
  /** Upper bound of their memory, bytes. */
  readonly bytesMax: number;
  /** Number of skipped patterns. */
  readonly skippedPatterns: number;

  constructor(policies: readonly Policy[]) {
    const compiled = policies.map((policy) => ({ type: policy.type, rules: compile(policy).rules }));
    const of = (...types: PolicyType[]) => ({
      rules: compiled.flatMap(({ type, rules }) => (types.includes(type) ? rules : [])),
    });
    this.ofCall = of('approved_models', 'key_environment_check', 'approval_required_threshold_cents');
    this.ofReport = of('key_environment_check');
    this.ofCost = of('approval_required_threshold_cents');
    const ofPrompts = of('banned_patterns');
    this.ofPrompts = ofPrompts.rules.length === 0 ? undefined : ofPrompts;
    this.isEmpty = this.ofCall.rules.length === 0 && this.ofPrompts === undefined;
    this.bytesMax = bytesMaxOf(this.ofCall) + bytesMaxOf(ofPrompts);
    this.skippedPatterns = policies.reduce((sum, { skipped }) => sum + skipped.length, 0);
  }
}

/**
 * Compiles a policy. One that was edited in the database by hand and cannot be parsed judges nothing, so that calls are
 * still stored.
 */
function compile(policy: Policy): CompiledPolicies {
  try {
    return compilePolicies([policy]);
  } catch {
    return { rules: [] };
  }
}

/** Judges a call's cost where its completed form has another cost than each of its reports. */
export function judgeCostBy({ ofCost }: Judges): JudgeCost {
  return ({ call }, costPico) =>
    judgeCall(ofCost, { model: call.model, prompts: () => [], environment: null, keyPrefix: null, costPico });
}
