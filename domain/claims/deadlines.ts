/** When somebody is to be reminded of a claim. Nothing moves by itself: a deadline is a notice and no more. */
import { MICROS_PER_DAY, microsOfDay } from '../period.js';
import type { ClaimStatus } from './lifecycle.js';

/** `urgent`: a draft whose charges will soon be too old for most providers to look at. */
export const CLAIM_ACTIONS = ['remind', 'urgent', 'suggest_escalation'] as const;
export type ClaimAction = (typeof CLAIM_ACTIONS)[number];

export interface ClaimDeadline {
  action: ClaimAction;
  atMicros: bigint;
}

/** What a deadline is counted from. */
export interface ClaimClock {
  status: ClaimStatus;
  /** When it came into its status. */
  enteredAtMicros: bigint;
  /** The first day that was charged, `YYYY-MM-DD`. */
  periodStart: string;
}

/** Days in a status after which somebody is reminded, and after which it is time to escalate. */
const DAYS: Readonly<Partial<Record<ClaimStatus, { remind: number; escalate?: number }>>> = {
  draft: { remind: 14 },
  submitted_to_provider: { remind: 3, escalate: 7 },
  provider_acknowledged: { remind: 10, escalate: 15 },
  under_review: { remind: 14, escalate: 30 },
  credit_approved: { remind: 35, escalate: 45 },
};
/** An escalated claim is brought to mind again each time that so many days have passed. */
const ESCALATED_EVERY_DAYS = 7n;
/** Of the 60 days after a charge within which the terms of most providers want to hear of it. */
const URGENT_DAYS = 45n;

/** The first deadline of a claim after a moment; undefined where none is left. */
export function nextDeadline(claim: ClaimClock, afterMicros: bigint): ClaimDeadline | undefined {
  return deadlinesOf(claim, afterMicros)
    .filter(({ atMicros }) => atMicros > afterMicros)
    .sort((a, b) => (a.atMicros < b.atMicros ? -1 : 1))[0];
}

function deadlinesOf({ status, enteredAtMicros, periodStart }: ClaimClock, after: bigint): ClaimDeadline[] {
  if (status === 'escalated') {
    const every = ESCALATED_EVERY_DAYS * MICROS_PER_DAY;
    const past = after < enteredAtMicros ? 0n : (after - enteredAtMicros) / every;
    return [{ action: 'remind', atMicros: enteredAtMicros + (past + 1n) * every }];
  }
  const days = DAYS[status];
  if (!days) return [];
  const inDays = (count: number) => enteredAtMicros + BigInt(count) * MICROS_PER_DAY;
  const found: ClaimDeadline[] = [{ action: 'remind', atMicros: inDays(days.remind) }];
  if (days.escalate !== undefined)
    found.push({ action: 'suggest_escalation', atMicros: inDays(days.escalate) });
  if (status === 'draft')
    found.push({ action: 'urgent', atMicros: microsOfDay(periodStart) + URGENT_DAYS * MICROS_PER_DAY });
  return found;
}
