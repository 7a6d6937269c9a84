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

/** When somebody is to be reminded of a claim. Nothing moves by itself: a deadline is a notice and no more. */

/** `urgent`: a draft whose charges will soon be too old for most providers to look at. */
const CLAIM_ACTIONS = ['remind', 'urgent', 'suggest_escalation'] as const;
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
  enteredAtMicros: bigint;
  /** The last day that was charged, `YYYY-MM-DD`. */
  periodEnd: string;
  /** The steps of its status that somebody was told of. */
  notifiedSteps: readonly string[];
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

/** The earliest step of the status without a notice, which may be past; a snoozed claim has one when that ends. */
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

/** Business days: not weekends or the calendar's holidays, in the calendar's time zone. */

/** When an organization works. */
interface WorkCalendar {
  timeZone: string;
  /** Days on which nobody works, `YYYY-MM-DD`. */
  holidays: readonly string[];
}

const MICROS_PER_SECOND = 1_000_000n;
const MICROS_PER_MILLI = 1_000n;
/** No time zone is as far as that from UTC. */
const OFFSET_MAX = 27n * MICROS_PER_HOUR;
/** 1970-01-01 was a Thursday, 0 is Sunday. */
const EPOCH_WEEKDAY = 4;
const DAYS_OF_WEEK = 7;

/** A calendar to count by; it remembers where days begin. Days are counted from 1970-01-01, as the calendar has them. */
export class BusinessDays {
  readonly #holidays: ReadonlySet<number>;
  readonly #format: Intl.DateTimeFormat;
  readonly #starts = new Map<number, bigint>();

  /** A time zone that is none, which only a hand can have written into the settings, counts as UTC. */
  constructor({ timeZone, holidays }: WorkCalendar) {
    this.#holidays = new Set(holidays.flatMap(numbersOf));
    this.#format = formatOf(timeZone);
  }

  /** As far into its day as `fromMicros`; days off do not count, so from a Saturday it is a day's start. Monotonic. */
  after(fromMicros: bigint, count: number): bigint {
    let day = this.#dayOf(fromMicros);
    let intoMicros = fromMicros - this.#startOf(day);
    if (!this.#isBusinessDay(day)) {
      intoMicros = 0n;
      day = this.#nextBusinessDay(day);
    }
    for (let left = count; left > 0; left -= 1) day = this.#nextBusinessDay(day);
    const [start, end] = [this.#startOf(day), this.#startOf(day + 1)];
    // Where clocks are put forward a day is shorter than the one that is counted from.
    return start + intoMicros < end ? start + intoMicros : end;
  }

  /** The first time of a day, `YYYY-MM-DD`. */
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

  /** By where days begin, so that an hour that clocks show twice around midnight belongs to one day only. */
  #dayOf(micros: bigint): number {
    let day = this.#shownDayOf(micros);
    while (micros < this.#startOf(day)) day -= 1;
    while (micros >= this.#startOf(day + 1)) day += 1;
    return day;
  }

  /** The first second at which clocks show this day or a later one: some zones have left days out. */
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

/** None of what looks like a day and is none: only a hand can have written it into the settings. */
function numbersOf(day: string): number[] {
  const instant = parseInstant(day);
  return instant?.dateOnly ? [Number(instant.micros / MICROS_PER_DAY)] : [];
}

export interface DueClaim extends ClaimClock {
  id: string;
  provider: string;
  recoverableCents: number;
}

/** What has not happened yet. */
const WAITING: Readonly<Partial<Record<ClaimStatus, string>>> = {
  draft: 'is still a draft: send it to the provider, or discard it',
  submitted_to_provider: 'was not acknowledged by the provider',
  provider_acknowledged: 'was acknowledged and not taken up by the provider',
  under_review: 'is still under review',
  credit_approved: 'was approved, and its credit is not recorded',
  escalated: 'is escalated and not decided',
};

/** The notice of a deadline that was due at a time: of each there is one, whatever becomes of the calendar. */
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
