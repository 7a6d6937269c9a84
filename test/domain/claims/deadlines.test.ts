import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BusinessDays,
  type ClaimClock,
  type ClaimDeadline,
  dueNotice,
  nextDeadline,
} from '../../../domain/claims/deadlines.js';
import { CLAIM_STATUSES, isTerminal } from '../../../domain/claims/lifecycle.js';
import { isoFromMicros, listDays, microsOfDay, parseInstant, shiftDay } from '../../../domain/period.js';

const UTC = new BusinessDays({ timeZone: 'UTC', holidays: [] });
const micros = (iso: string) => parseInstant(iso)?.micros ?? 0n;
/** A Thursday, weeks before Christmas and long before its charges are too old. */
const ENTERED = micros('2026-11-19T15:00:00Z');
const aClock = (parts: Partial<ClaimClock> = {}): ClaimClock => ({
  status: 'submitted_to_provider',
  enteredAtMicros: ENTERED,
  periodEnd: '2026-11-10',
  notifiedSteps: [],
  snoozedUntilMicros: null,
  ...parts,
});
const describeDeadline = (deadline: ClaimDeadline | undefined) =>
  deadline && `${deadline.action} ${isoFromMicros(deadline.atMicros)}`;
/** The notices of a claim in a status, in order. */
function allOf(clock: ClaimClock, days = UTC, most = 5): ClaimDeadline[] {
  const told: ClaimDeadline[] = [];
  while (told.length < most) {
    const notifiedSteps = [...clock.notifiedSteps, ...told.flatMap(({ steps }) => steps)];
    const next = nextDeadline({ ...clock, notifiedSteps }, days);
    if (!next) break;
    told.push(next);
  }
  return told;
}

describe('the deadlines of a claim', () => {
  it('are a reminder and then the time to escalate, in business days', () => {
    expect(allOf(aClock()).map(describeDeadline)).toEqual([
      'remind 2026-11-24T15:00:00Z',
      'suggest_escalation 2026-11-30T15:00:00Z',
    ]);
  });

  it('of a draft are a reminder and the age of its charges, in days of the calendar', () => {
    expect(allOf(aClock({ status: 'draft', periodEnd: '2026-11-15' })).map(describeDeadline)).toEqual([
      'remind 2026-12-09T15:00:00Z',
      'urgent 2026-12-30T00:00:00Z',
    ]);
    expect(allOf(aClock({ status: 'draft', periodEnd: '2026-10-15' })).map(describeDeadline)).toEqual([
      'urgent 2026-11-29T00:00:00Z',
      'remind 2026-12-09T15:00:00Z',
    ]);
  });

  it('of a draft that is made late call it urgent soon, and not where it is too late', () => {
    const urgent = (periodEnd: string) =>
      allOf(aClock({ status: 'draft', periodEnd }))
        .filter(({ action }) => action === 'urgent')
        .map(describeDeadline);
    expect(urgent('2026-10-01')).toEqual(['urgent 2026-11-19T16:00:00Z']);
    expect(urgent('2026-09-21')).toEqual(['urgent 2026-11-19T16:00:00Z']);
    expect(urgent('2026-09-20')).toEqual([]);
  });

  it('of an escalated claim come again and again', () => {
    expect(allOf(aClock({ status: 'escalated' }), UTC, 3).map(describeDeadline)).toEqual([
      'remind 2026-11-30T15:00:00Z',
      'remind 2026-12-09T15:00:00Z',
      'remind 2026-12-18T15:00:00Z',
    ]);
  });

  it('are none of a claim that is over', () => {
    for (const status of CLAIM_STATUSES.filter(isTerminal))
      for (const snoozedUntilMicros of [null, ENTERED + 1n])
        expect(nextDeadline(aClock({ status, snoozedUntilMicros }), UTC)).toBeUndefined();
  });

  it('each cause one reminder, however the calendar changes between them', () => {
    const holidays = fc.subarray(listDays('2026-11-15', '2027-02-15'));
    const zone = fc.constantFrom('UTC', 'Asia/Tokyo', 'America/New_York');
    const calendars = fc.array(fc.record({ timeZone: zone, holidays }), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.constantFrom(...CLAIM_STATUSES),
        fc.integer({ min: 0, max: 59 }),
        calendars,
        (status, age, all) => {
          const clock = aClock({ status, periodEnd: shiftDay('2026-11-19', -age) });
          const steps: string[] = [];
          for (const calendar of all)
            steps.push(
              ...(nextDeadline({ ...clock, notifiedSteps: steps }, new BusinessDays(calendar))?.steps ?? []),
            );
          expect(new Set(steps).size).toBe(steps.length);
          const last = all.at(-1) ?? { timeZone: 'UTC', holidays: [] };
          const left = allOf({ ...clock, notifiedSteps: steps }, new BusinessDays(last), 5);
          const names = [...steps, ...left.flatMap((one) => one.steps)];
          if (status === 'escalated') expect(names[0]).toBe('remind:1');
          else if (isTerminal(status)) expect(names).toEqual([]);
          else if (status === 'draft') expect(names).toContain('remind');
          else expect([...names].sort()).toEqual(['remind', 'suggest_escalation']);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('a snooze', () => {
  it('ends with one notice, for what asks for most of all that was due by then', () => {
    const until = (iso: string, parts: Partial<ClaimClock> = {}) =>
      nextDeadline(aClock({ snoozedUntilMicros: micros(iso), ...parts }), UTC);
    expect(until('2026-11-20')).toMatchObject({ action: 'remind', steps: [] });
    expect(until('2026-11-25')).toMatchObject({ action: 'remind', steps: ['remind'] });
    expect(until('2026-12-25')).toMatchObject({
      action: 'suggest_escalation',
      steps: ['remind', 'suggest_escalation'],
    });
    expect(until('2026-12-25', { status: 'escalated' })).toMatchObject({
      action: 'remind',
      steps: ['remind:1', 'remind:2', 'remind:3'],
    });
    const nothingLeft = { notifiedSteps: ['remind', 'suggest_escalation'] };
    expect(until('2026-12-25', nothingLeft)).toMatchObject({ action: 'remind', steps: [] });
  });

  it('has what was not due by then come at its time', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...CLAIM_STATUSES.filter((status) => !isTerminal(status))),
        fc.integer({ min: 1, max: 366 * 24 }),
        (status, hours) => {
          const snoozedUntilMicros = ENTERED + BigInt(hours) * 3_600_000_000n;
          const before = allOf(aClock({ status }), UTC, 60);
          const end = nextDeadline(aClock({ status, snoozedUntilMicros }), UTC);
          expect(end?.atMicros).toBe(snoozedUntilMicros);
          const after = allOf(aClock({ status, notifiedSteps: end?.steps ?? [] }), UTC, 5);
          const later = before.filter(({ atMicros }) => atMicros > snoozedUntilMicros);
          expect(after).toEqual(later.slice(0, after.length));
          expect(end?.steps).toEqual(before.slice(0, before.length - later.length).map(({ name }) => name));
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('the notice of a deadline', () => {
  const claim = {
    ...aClock({ status: 'draft', periodEnd: '2026-10-15' }),
    ...{ id: '0199f3a2-c4d5-7e3a-8f00-112233445566', provider: 'openai', recoverableCents: 12_345 },
  };

  it('states what it is about, since when, and by when', () => {
    const [urgent] = allOf(claim);
    if (!urgent) throw new Error('a draft has deadlines');
    expect(dueNotice(claim, urgent, urgent.atMicros)).toEqual({
      code: 'claim_due',
      key: 'claim_due:clm_0199f3a2c4d57e3a8f00112233445566:draft:2026-11-19T15:00:00Z:urgent',
      subject: { type: 'claim', id: 'clm_0199f3a2c4d57e3a8f00112233445566' },
      severity: 'high',
      message:
        'The claim clm_0199f3a2c4d57e3a8f00112233445566 is still a draft: send it to the provider, or discard it (since 2026-11-19). Its charges are of 2026-10-15 and before; the terms of many providers hear of none that is older than 60 days, which it will be on 2026-12-14.',
      details: {
        action: 'urgent',
        status: 'draft',
        due_at: '2026-11-29T00:00:00Z',
        since: '2026-11-19T15:00:00Z',
        total_recoverable_cents: 12_345,
      },
      provider: 'openai',
    });
  });

  it('has a key of its own for each step of each time in a status', () => {
    const keys = CLAIM_STATUSES.flatMap((status) =>
      [ENTERED, microsOfDay('2026-12-01')].flatMap((enteredAtMicros) => {
        const clock = { ...claim, status, enteredAtMicros };
        return allOf(clock, UTC, 3).map((one) => dueNotice(clock, one, one.atMicros).key);
      }),
    );
    expect(new Set(keys).size).toBe(keys.length);
  });
});
