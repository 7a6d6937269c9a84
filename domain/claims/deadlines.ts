import { publicId } from '../ids.js';
import {
  dayOf,
  isoFromMicros,
  MICROS_PER_DAY,
  MICROS_PER_HOUR,
  microsOfDay,
  parseInstant,
  shiftDay,
} from '../period.js';
import type { Notice } from '../policies/alert.js';
import { type ClaimStatus, isTerminal } from './lifecycle.js';

/** Computes reminders of claims. A deadline only creates a notice; it never changes a claim's status. */

/** `urgent`: the charges of a draft will soon be too old for most providers to accept a claim. */
const CLAIM_ACTIONS = ['remind', 'urgent', 'suggest_escalation'] as const;
export type ClaimAction = (typeof CLAIM_ACTIONS)[number];

export interface ClaimDeadline {
  action: ClaimAction;
  atMicros: bigint;
  /** The name of the notice within a claim's status; each name has one notice. */
  name: string;
  /** The steps that the notice covers; empty: it only ends a snooze. */
  steps: readonly string[];
}

/** The fields of a claim from which its deadlines follow, beside the organization's calendar. */
export interface ClaimClock {
  status: ClaimStatus;
  enteredAtMicros: bigint;
  /** The last charged day, `YYYY-MM-DD`. */
  periodEnd: string;
  /** The steps of its status that already had a notice. */
  notifiedSteps: readonly string[];
  /** The end of the snooze, when its notice is due; null: not snoozed. */
  snoozedUntilMicros: bigint | null;
}

interface Step {
  name: string;
  action: ClaimAction;
  atMicros: bigint;
}

/** Business days in a status before a reminder, and before the suggestion to escalate. */
const DAYS: Readonly<Partial<Record<ClaimStatus, { remind: number; escalate?: number }>>> = {
  draft: { remind: 14 },
  submitted_to_provider: { remind: 3, escalate: 7 },
  provider_acknowledged: { remind: 10, escalate: 15 },
  under_review: { remind: 14, escalate: 30 },
  credit_approved: { remind: 35, escalate: 45 },
};
/** An escalated claim has a reminder every this number of business days. */
const ESCALATED_EVERY_DAYS = 7;
/** Calendar days after a charge within which most providers' terms accept a claim. */
export const DISPUTE_WINDOW_DAYS = 60;
/**
 * Days after the charge when a draft becomes urgent; the rest of the window suffices to send the claim and answer
 * questions.
 */
const URGENT_DAYS = 45;
/** The creator of a draft of old charges knows their age and has this time to send it. */
const URGENT_AFTER = MICROS_PER_HOUR;

/**
 * The earliest step of the status without a notice, which may be in the past; for a snoozed claim not before the
 * snooze ends.
 */
export function nextDeadline(claim: ClaimClock, days: BusinessDays): ClaimDeadline | undefined {
  const { snoozedUntilMicros: until } = claim;
  const left: Step[] = [];
  for (const step of stepsOf(claim, days)) {
    if (claim.notifiedSteps.includes(step.name)) continue;
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

/** The steps of a status by time; those of an escalated claim never end. */
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

/** The time when a draft becomes urgent; undefined: its charges were too old when it was created. */
function urgentAt(enteredAtMicros: bigint, periodEnd: string, days: BusinessDays): bigint | undefined {
  const due = days.startOfDay(shiftDay(periodEnd, URGENT_DAYS));
  const earliest = enteredAtMicros + URGENT_AFTER;
  const at = due > earliest ? due : earliest;
  return at < days.startOfDay(shiftDay(periodEnd, DISPUTE_WINDOW_DAYS)) ? at : undefined;
}

/** The strongest action of several steps in one notice. */
function strongestOf(steps: readonly Step[]): ClaimAction {
  return steps.find(({ action }) => action !== 'remind')?.action ?? 'remind';
}

/** Business days are all days except weekends and the calendar's holidays, in the calendar's time zone. */

/** The business days of an organization. */
interface WorkCalendar {
  timeZone: string;
  /** Days without work, `YYYY-MM-DD`. */
  holidays: readonly string[];
}

const MICROS_PER_SECOND = 1_000_000n;
const MICROS_PER_MILLI = 1_000n;
/** Every time zone is closer to UTC than this. */
const OFFSET_MAX = 27n * MICROS_PER_HOUR;
/** 1970-01-01 was a Thursday; 0 is Sunday. */
const EPOCH_WEEKDAY = 4;
const DAYS_OF_WEEK = 7;

/** Counts by a calendar and caches the starts of its days. Days are numbered from 1970-01-01 in the calendar's zone. */
export class BusinessDays {
  readonly #holidays: ReadonlySet<number>;
  readonly #format: Intl.DateTimeFormat;
  readonly #starts = new Map<number, bigint>();

  /** An invalid time zone counts as UTC; only a manual edit of the settings can cause it. */
  constructor({ timeZone, holidays }: WorkCalendar) {
    this.#holidays = new Set(holidays.flatMap(numbersOf));
    this.#format = formatOf(timeZone);
  }

  /**
   * The same time of day as `fromMicros`, `count` business days later. From a day off it is the start of a day.
   * Monotonic.
   */
  after(fromMicros: bigint, count: number): bigint {
    let day = this.#dayOf(fromMicros);
    let intoMicros = fromMicros - this.#startOf(day);
    if (!this.#isBusinessDay(day)) {
      intoMicros = 0n;
      day = this.#nextBusinessDay(day);
    }
    for (let left = count; left > 0; left -= 1) day = this.#nextBusinessDay(day);
    const [start, end] = [this.#startOf(day), this.#startOf(day + 1)];
    // On the day of a forward clock change the day can be shorter than the time of day.
    return start + intoMicros < end ? start + intoMicros : end;
  }

  /** The start of a day, `YYYY-MM-DD`. */
  startOfDay(day: string): bigint {
    return this.#startOf(numberOf(day));
  }

  #nextBusinessDay(day: number): number {
    let next = day + 1;
    while (!this.#isBusinessDay(next)) next += 1;
    return next;
  }

  #isBusinessDay(day: number): boolean {
    const weekday = (((day + EPOCH_WEEKDAY) % DAYS_OF_WEEK) + DAYS_OF_WEEK) % DAYS_OF_WEEK;
    return weekday !== 0 && weekday !== 6 && !this.#holidays.has(day);
  }

  /** By the starts of days, so that an hour that clocks repeat around midnight belongs to one day only. */
  #dayOf(micros: bigint): number {
    let day = this.#shownDayOf(micros);
    while (micros < this.#startOf(day)) day -= 1;
    while (micros >= this.#startOf(day + 1)) day += 1;
    return day;
  }

  /** The first second at which local clocks show this day or a later one, since some zones have skipped days. */
  #startOf(day: number): bigint {
    const known = this.#starts.get(day);
    if (known !== undefined) return known;
    const midnight = BigInt(day) * MICROS_PER_DAY;
    let [before, from] = [midnight - OFFSET_MAX, midnight + OFFSET_MAX];
    while (from - before > MICROS_PER_SECOND) {
      const middle = before + ((from - before) / MICROS_PER_SECOND / 2n) * MICROS_PER_SECOND;
      if (this.#shownDayOf(middle) >= day) from = middle;
      else before = middle;
    }
    this.#starts.set(day, from);
    return from;
  }

  #shownDayOf(micros: bigint): number {
    const millis = micros / MICROS_PER_MILLI - (micros % MICROS_PER_MILLI < 0n ? 1n : 0n);
    let [year, month, day] = [0, 0, 0];
    for (const { type, value } of this.#format.formatToParts(Number(millis))) {
      if (type === 'year') year = Number(value);
      else if (type === 'month') month = Number(value);
      else if (type === 'day') day = Number(value);
    }
    return Math.floor(Date.UTC(year, month - 1, day) / Number(MICROS_PER_DAY / MICROS_PER_MILLI));
  }
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const parts = { calendar: 'iso8601', year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  try {
    return new Intl.DateTimeFormat('en-u-nu-latn', { ...parts, timeZone });
  } catch {
    return new Intl.DateTimeFormat('en-u-nu-latn', { ...parts, timeZone: 'UTC' });
  }
}

function numberOf(day: string): number {
  return Number(microsOfDay(day) / MICROS_PER_DAY);
}

/** Empty for a text that looks like a day but is none; only a manual edit of the settings can contain it. */
function numbersOf(day: string): number[] {
  const instant = parseInstant(day);
  return instant?.dateOnly ? [Number(instant.micros / MICROS_PER_DAY)] : [];
}

export interface DueClaim extends ClaimClock {
  id: string;
  provider: string;
  recoverableCents: number;
}

/** The event that a claim in each status waits for. */
const WAITING: Readonly<Partial<Record<ClaimStatus, string>>> = {
  draft: 'is still a draft: send it to the provider, or discard it',
  submitted_to_provider: 'was not acknowledged by the provider',
  provider_acknowledged: 'was acknowledged and not taken up by the provider',
  under_review: 'is still under review',
  credit_approved: 'was approved, and its credit is not recorded',
  escalated: 'is escalated and not decided',
};

/** The notice of a deadline. Each due time has one notice, also after changes of the calendar. */
export function dueNotice(claim: DueClaim, deadline: ClaimDeadline, dueMicros: bigint): Notice {
  const { status, enteredAtMicros, provider, recoverableCents } = claim;
  const { action, name } = deadline;
  const id = publicId('clm', claim.id);
  const since = isoFromMicros(enteredAtMicros);
  return {
    code: 'claim_due',
    key: `claim_due:${id}:${status}:${since}:${name}`,
    subject: { type: 'claim', id },
    severity: action === 'urgent' ? 'high' : 'medium',
    message: sentenceOf(claim, action, id),
    details: {
      action,
      status,
      due_at: isoFromMicros(dueMicros),
      since,
      total_recoverable_cents: recoverableCents,
    },
    provider,
  };
}

function sentenceOf(claim: DueClaim, action: ClaimDeadline['action'], id: string): string {
  const { status, periodEnd, enteredAtMicros } = claim;
  const waiting = `The claim ${id} ${WAITING[status] ?? 'is open'} (since ${dayOf(enteredAtMicros)})`;
  if (action === 'urgent')
    return `${waiting}. Its charges are of ${periodEnd} and before; the terms of many providers hear of none that is older than ${DISPUTE_WINDOW_DAYS} days, which it will be on ${shiftDay(periodEnd, DISPUTE_WINDOW_DAYS)}.`;
  return action === 'suggest_escalation' ? `${waiting}. It may be time to escalate it.` : `${waiting}.`;
}
