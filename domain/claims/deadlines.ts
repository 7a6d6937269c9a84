/** When somebody is to be reminded of a claim. Nothing moves by itself: a deadline is a notice and no more. */
import { isoFromMicros, MICROS_PER_HOUR, shiftDay } from '../period.js';
import type { BusinessDays } from './businessDays.js';
import { type ClaimStatus, isTerminal } from './lifecycle.js';

/** `urgent`: a draft whose charges will soon be too old for most providers to look at. */
export const CLAIM_ACTIONS = ['remind', 'urgent', 'suggest_escalation'] as const;
export type ClaimAction = (typeof CLAIM_ACTIONS)[number];

export interface ClaimDeadline {
  action: ClaimAction;
  atMicros: bigint;
  /** What is told apart of the notices of a claim in a status: of one name there is one notice. */
  name: string;
  /** The steps that it stands for; none where it only ends a quiet time. */
  steps: readonly string[];
}

/** What a deadline follows from, beside the organization's calendar. */
export interface ClaimClock {
  status: ClaimStatus;
  /** When it came into its status. */
  enteredAtMicros: bigint;
  /** The last day that was charged, `YYYY-MM-DD`. */
  periodEnd: string;
  /** The steps of its status that somebody was told of. */
  stepsTold: readonly string[];
  /** Until then somebody wants to hear nothing of it, and then to be told. */
  snoozedUntilMicros: bigint | null;
}

interface Step {
  name: string;
  action: ClaimAction;
  atMicros: bigint;
}

/** Business days in a status after which somebody is reminded, and after which it is time to escalate. */
const DAYS: Readonly<Partial<Record<ClaimStatus, { remind: number; escalate?: number }>>> = {
  draft: { remind: 14 },
  submitted_to_provider: { remind: 3, escalate: 7 },
  provider_acknowledged: { remind: 10, escalate: 15 },
  under_review: { remind: 14, escalate: 30 },
  credit_approved: { remind: 35, escalate: 45 },
};
/** An escalated claim is brought to mind again each time that so many business days have passed. */
const ESCALATED_EVERY_DAYS = 7;
/** Days after a charge within which the terms of most providers want to hear of it: days of the calendar. */
export const DISPUTE_WINDOW_DAYS = 60;
/** Of these; what is left is enough to send a claim and to be asked something. */
const URGENT_DAYS = 45;
/** Whoever makes a draft of old charges knows of it, and has this long to send it. */
const URGENT_AFTER = MICROS_PER_HOUR;

/**
 * The next notice of a claim: the earliest step of its status that nobody was told of, which may be past. Of a claim that is
 * snoozed one at the end of that, for all that was due by then. Undefined where none is left.
 */
export function nextDeadline(claim: ClaimClock, days: BusinessDays): ClaimDeadline | undefined {
  const { snoozedUntilMicros: until } = claim;
  const left: Step[] = [];
  for (const step of stepsOf(claim, days)) {
    if (claim.stepsTold.includes(step.name)) continue;
    if (until !== null && step.atMicros > until) break;
    left.push(step);
    if (until === null) break;
  }
  if (until !== null && !isTerminal(claim.status))
    return {
      action: strongestOf(left),
      atMicros: until,
      name: `snoozed:${isoFromMicros(until)}`,
      steps: left.map(({ name }) => name),
    };
  const [first] = left;
  return first && { ...first, steps: [first.name] };
}

/** The steps of a status in the order of their times; those of an escalated claim never end. */
function* stepsOf({ status, enteredAtMicros, periodEnd }: ClaimClock, days: BusinessDays): Generator<Step> {
  const inDays = (count: number) => days.after(enteredAtMicros, count);
  if (status === 'escalated') {
    for (let time = 1; ; time += 1)
      yield { name: `remind:${time}`, action: 'remind', atMicros: inDays(time * ESCALATED_EVERY_DAYS) };
  }
  const counts = DAYS[status];
  if (!counts) return;
  const steps: Step[] = [{ name: 'remind', action: 'remind', atMicros: inDays(counts.remind) }];
  if (counts.escalate !== undefined)
    steps.push({
      ...{ name: 'suggest_escalation', action: 'suggest_escalation' as const },
      atMicros: inDays(counts.escalate),
    });
  const urgentMicros = status === 'draft' ? urgentAt(enteredAtMicros, periodEnd, days) : undefined;
  if (urgentMicros !== undefined) steps.push({ name: 'urgent', action: 'urgent', atMicros: urgentMicros });
  yield* steps.sort((a, b) => (a.atMicros < b.atMicros ? -1 : 1));
}

/** When a draft becomes urgent; undefined where its charges were too old already when it was made. */
function urgentAt(enteredAtMicros: bigint, periodEnd: string, days: BusinessDays): bigint | undefined {
  const due = days.startOfDay(shiftDay(periodEnd, URGENT_DAYS));
  const earliest = enteredAtMicros + URGENT_AFTER;
  const at = due > earliest ? due : earliest;
  return at < days.startOfDay(shiftDay(periodEnd, DISPUTE_WINDOW_DAYS)) ? at : undefined;
}

/** Of several that come as one: what asks for more than to be looked at. */
function strongestOf(steps: readonly Step[]): ClaimAction {
  return steps.find(({ action }) => action !== 'remind')?.action ?? 'remind';
}
