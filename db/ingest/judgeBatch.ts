import { setImmediate as letOthersRun } from 'node:timers/promises';
import { publicPrefix } from '../../domain/access/keyFormat.js';
import type { Violation } from '../../domain/alerts/alert.js';
import type { CallRecord, Json } from '../../domain/events/event.js';
import type { JudgedCall, Unjudged } from '../../domain/policies/judge.js';
import type { PolicyType } from '../../domain/policies/policy.js';
import type { StorableEvent } from '../queries/eventColumns.js';
import { knownCost, type NewAlert, newAlert } from '../queries/policyAlerts.js';
import type { Judges } from './judges.js';

/** Judging goes on for so long before requests that wait get their turn. */
const TURN_MS = 8;
/** Prompts that are searched without a look at the clock. */
const PROMPTS_A_LOOK = 64;

/** What is held against the call as a whole, and what against each telling of it. */
const OF_CALL: readonly PolicyType[] = [
  'approved_models',
  'key_environment_check',
  'approval_required_threshold_cents',
];
const OF_TELLING: readonly PolicyType[] = ['key_environment_check'];
const OF_PROMPTS: readonly PolicyType[] = ['banned_patterns'];

/** What policies say to the calls of a batch, before it is known which of them are new. */
export interface Judgement {
  /** Alerts of each event, if it is stored. */
  alerts: ReadonlyMap<string, readonly NewAlert[]>;
  /** What a superseded telling said that breaks a policy, for the call that stands for it. */
  saidBy: ReadonlyMap<string, readonly Violation[]>;
  /** What could not be judged of each event, if it is stored. */
  unjudged: ReadonlyMap<string, readonly Unjudged[]>;
}

export const NOTHING_JUDGED: Judgement = { alerts: new Map(), saidBy: new Map(), unjudged: new Map() };

/**
 * Holds the policies against the calls of a batch, whose payloads must still be there. A call is judged once, with what
 * all its tellings in the batch say.
 */
export async function judgeBatch(events: readonly StorableEvent[], judges: Judges): Promise<Judgement> {
  if (judges.isEmpty) return NOTHING_JUDGED;
  const turns = new Turns();
  const saidBy = new Map<string, readonly Violation[]>();
  const tellings = new Map<string, StorableEvent[]>();
  for (const event of events) {
    if (event.supersededBy === null) continue;
    const judged = judgedCallOf(event, []);
    const said = [...judges.judge(OF_TELLING, judged), ...(await searchPrompts(judged, judges, turns))];
    if (said.length > 0) saidBy.set(event.id, said);
    const others = tellings.get(event.supersededBy);
    if (others) others.push(event);
    else tellings.set(event.supersededBy, [event]);
  }
  const alerts = new Map<string, NewAlert[]>();
  const unjudged = new Map<string, readonly Unjudged[]>();
  for (const event of events) {
    // One that stands in the batch twice is judged as it is stored: the first time.
    if (event.supersededBy !== null || alerts.has(event.id)) continue;
    const others = tellings.get(event.id) ?? [];
    const judged = judgedCallOf(event, others);
    const broken = [...judges.judge(OF_CALL, judged), ...(await searchPrompts(judged, judges, turns))];
    for (const { id } of others) {
      for (const violation of saidBy.get(id) ?? [])
        if (!broken.some(({ policyType }) => policyType === violation.policyType)) broken.push(violation);
    }
    alerts.set(
      event.id,
      broken.map((violation) => newAlert(event, violation)),
    );
    const open = judges.unjudged(judged);
    if (open.length > 0) unjudged.set(event.id, open);
    await turns.next();
  }
  return { alerts, saidBy, unjudged };
}

/** The patterns that the prompts match, a few prompts at a time: nobody says how many a call has. */
async function searchPrompts(
  judged: JudgedCall,
  judges: Judges,
  turns: Turns,
): Promise<readonly Violation[]> {
  if (!judges.has('banned_patterns')) return [];
  const prompts = judged.prompts();
  for (let at = 0; at < prompts.length; at += PROMPTS_A_LOOK) {
    const some = prompts.length <= PROMPTS_A_LOOK ? prompts : prompts.slice(at, at + PROMPTS_A_LOOK);
    const found = judges.judge(OF_PROMPTS, { ...judged, prompts: () => some });
    if (found.length > 0) return found;
    await turns.next();
  }
  return [];
}

/** A call as policies see it: its own prompts, and the key that it, or else another telling of it, was made with. */
function judgedCallOf(event: StorableEvent, others: readonly StorableEvent[]): JudgedCall {
  const { call, apiKeyId } = event;
  return {
    model: call.model,
    prompts: call.prompts,
    // The `_service.environment` tag; where a client names it elsewhere, the tag was filled in from there.
    environment: call.environment,
    keyPrefix: toldPrefix(call) ?? leastPrefix(others) ?? publicPrefix(apiKeyId),
    costPico: knownCost(event),
  };
}

/** Whichever telling came first, it is the same one. */
function leastPrefix(tellings: readonly StorableEvent[]): string | undefined {
  return tellings.flatMap(({ call }) => toldPrefix(call) ?? []).sort()[0];
}

function toldPrefix({ service }: CallRecord): string | null {
  const prefix: Json | undefined = isObject(service) ? service.api_key_prefix : undefined;
  return typeof prefix === 'string' && prefix !== '' ? prefix : null;
}

function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Lets requests that wait have their turn, now and then: the worst legal patterns take a millisecond a prompt. */
class Turns {
  #since = performance.now();

  async next(): Promise<void> {
    if (performance.now() - this.#since < TURN_MS) return;
    await letOthersRun();
    this.#since = performance.now();
  }
}
