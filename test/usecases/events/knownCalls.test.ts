import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { StorableEvent } from '../../../db/events/eventColumns.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { KNOWN_CALLS_MAX, KnownCalls } from '../../../usecases/events/knownCalls.js';
import { aPlace, aReport, ReportedCalls } from '../../db/support/reportedCalls.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

const ORG = randomUUID();
let numbered = 0;

function anEvent(call: CallRecord, supersededBy: string | null = null): StorableEvent {
  numbered += 1;
  const price = { computedPico: null, priceGaps: [], contextBand: 0 };
  const id = `event ${numbered}`;
  return { id, apiKeyHash: '', apiKeyId: '', call, price, projectId: null, supersededBy };
}

/** The cache after a report of the call at second 1 was stored. */
function afterFirst(): { known: KnownCalls; first: StorableEvent } {
  const known = new KnownCalls();
  const first = anEvent(aReport('call', 1, { trace: aPlace(1, 1) }));
  known.remember(ORG, first);
  return { known, first };
}

describe('the calls that a process stored last', () => {
  it('let a poorer report of one of them be stored as superseded', () => {
    const { known, first } = afterFirst();
    const second = anEvent(aReport('call', 2, { trace: aPlace(2, 1) }));
    const { winners } = known.assume(ORG, [second]);
    expect([second.supersededBy, second.isResponseKnown]).toEqual([first.id, true]);
    expect(winners.get(second.id)?.eventId).toBe(first.id);
  });

  it('assume nothing of another call, of another organization or of the same event', () => {
    const { known, first } = afterFirst();
    const others = [anEvent(aReport('other call', 2)), { ...first, call: aReport('call', 1) }];
    const { winners, richer } = known.assume(ORG, others);
    expect([winners.size, richer.size]).toEqual([0, 0]);
    expect(known.assume(randomUUID(), [anEvent(aReport('call', 2))]).winners.size).toBe(0);
    expect(others.map(({ supersededBy }) => supersededBy)).toEqual([null, null]);
  });

  it('lose to a richer report, which is stored as a call without claiming the known id', () => {
    const { known } = afterFirst();
    const richer = anEvent(aReport('call', 0));
    expect(known.assume(ORG, [richer]).richer).toEqual(new Set([richer.id]));
    expect([richer.supersededBy, richer.isResponseKnown]).toEqual([null, true]);
  });

  it('count for all reports that a batch merged, unless one of them has another response id', () => {
    const { known, first } = afterFirst();
    const best = anEvent(aReport('call', 2));
    const merged = anEvent(aReport('call', 3), best.id);
    expect(known.assume(ORG, [merged, best]).mergedInto).toEqual(new Map([[merged.id, best.id]]));
    expect([merged.supersededBy, best.supersededBy]).toEqual([first.id, first.id]);
    const gateway = anEvent(aReport('call', 4));
    const provider = anEvent(aReport('the id that the provider gave', 5), gateway.id);
    expect(known.assume(ORG, [gateway, provider]).winners.size).toBe(0);
    expect([gateway.supersededBy, provider.supersededBy]).toEqual([null, gateway.id]);
  });

  it('are looked up again after an hour, and forgotten where an assumption was wrong', () => {
    const { known } = afterFirst();
    const later = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 3_600_001);
    expect(known.assume(ORG, [anEvent(aReport('call', 2))]).winners.size).toBe(0);
    later.mockRestore();
    const { known: other } = afterFirst();
    other.forget(ORG, [anEvent(aReport('call', 2))]);
    expect(other.assume(ORG, [anEvent(aReport('call', 2))]).winners.size).toBe(0);
  });

  it('are worth remembering until no call of the organization was reported again for ten minutes', () => {
    const known = new KnownCalls();
    expect(known.expectsRepeats(ORG)).toBe(false);
    known.noteRepeat(ORG);
    expect([known.expectsRepeats(ORG), known.expectsRepeats(randomUUID())]).toEqual([true, false]);
    const later = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 600_001);
    expect(known.expectsRepeats(ORG)).toBe(false);
    later.mockRestore();
  });

  it('are at most a fixed number, of which the oldest are forgotten', () => {
    const { known } = afterFirst();
    for (let call = 1; call < KNOWN_CALLS_MAX; call += 1)
      known.remember(ORG, anEvent(aReport(`c${call}`, 1)));
    expect(known.assume(ORG, [anEvent(aReport('call', 2))]).winners.size).toBe(1);
    known.remember(ORG, anEvent(aReport('one more', 1)));
    expect(known.assume(ORG, [anEvent(aReport('call', 2))]).winners.size).toBe(0);
  });
});

const EARLIER = 'an earlier call';

/** An organization of which each writer has stored a call that was reported twice: they remember its next calls. */
async function callsReportedTwice(test: TestDatabase): Promise<ReportedCalls> {
  const calls = await ReportedCalls.of(test);
  for (const writer of [0, 0, 1, 2]) {
    numbered += 1;
    await calls.send([aReport(EARLIER, 1_000 + numbered)], writer);
  }
  return calls;
}

/** The events of later calls: those that count, and those that do not. */
async function laterEvents(calls: ReportedCalls) {
  const { live, superseded } = await calls.events();
  const isLater = ({ requestId }: { requestId: string | null }) => requestId !== EARLIER;
  return { live: live.filter(isLater), superseded: superseded.filter(isLater) };
}

describe('a report of a call that this process knows', () => {
  let test: TestDatabase;
  beforeAll(async () => {
    test = await createTestDatabase({ poolMax: 4 });
  });
  afterAll(() => test.close());

  it('completes the event that counts, as a report does that another process knows', async () => {
    const forms = [];
    for (const isRestarted of [false, true]) {
      const calls = await callsReportedTwice(test);
      await calls.send([aReport('call', 1, { trace: aPlace(1, 1) })]);
      if (isRestarted) calls.restart();
      await calls.send([
        aReport('call', 2, { trace: aPlace(2, 1), teamId: 'search', userId: 'u1' }),
        aReport('call', 3, { trace: aPlace(3, 1), feature: 'chat' }),
      ]);
      const { live, superseded } = await laterEvents(calls);
      const [event] = live;
      expect(superseded.map(({ supersededBy }) => supersededBy)).toEqual([event?.id, event?.id]);
      expect(await calls.misdirected()).toEqual([]);
      await calls.compareTotals();
      forms.push(live.map(({ teamId, userId, feature, costPico }) => [teamId, userId, feature, costPico]));
    }
    expect(forms[0]).toEqual([['search', 'u1', 'chat', 13_000_000_000n]]);
    expect(forms[1]).toEqual(forms[0]);
  });

  it('follows the event that another process made count meanwhile', async () => {
    const calls = await callsReportedTwice(test);
    await calls.send([aReport('call', 5)], 0);
    await calls.send([aReport('call', 1)], 1);
    await calls.send([aReport('call', 7, { teamId: 'search' })], 0);
    const { live } = await laterEvents(calls);
    expect(live.map(({ timestampMicros, teamId }) => [timestampMicros, teamId])).toEqual([
      [aReport('call', 1).startMicros, 'search'],
    ]);
    await calls.compareTotals();
  });

  it('counts instead of the known event where it is richer, also where only its response id names it', async () => {
    for (const trace of [aPlace(2, 1), null]) {
      const calls = await callsReportedTwice(test);
      await calls.send([aReport('call', 5, { trace: aPlace(1, 1) })]);
      await calls.send([aReport('call', 1, { trace, teamId: 'search' }), aReport('other', 2)]);
      await calls.send([aReport('call', 3, { trace: aPlace(3, 1) })]);
      const { live, superseded } = await laterEvents(calls);
      const times = [aReport('other', 2).startMicros, aReport('call', 1).startMicros];
      expect(live.map(({ timestampMicros }) => timestampMicros)).toEqual(times);
      expect(superseded).toHaveLength(2);
      expect(await calls.misdirected()).toEqual([]);
      const { rows } = await test.superuser.query(
        'select from call_spans where org_id = $1 and response_id is null and trace_id is null',
        [calls.orgDb.orgId],
      );
      expect(rows).toEqual([]);
      await calls.compareTotals();
    }
  });

  it('counts instead of the known event where the known id is gone for its age', async () => {
    const calls = await callsReportedTwice(test);
    await calls.send([aReport('call', 5)]);
    await test.superuser.query('delete from call_spans where org_id = $1', [calls.orgDb.orgId]);
    await calls.send([aReport('call', 1)]);
    const { rows } = await test.superuser.query('select response_id from call_spans where org_id = $1', [
      calls.orgDb.orgId,
    ]);
    expect(rows).toEqual([{ response_id: 'call' }]);
  });

  it('that changes nothing that totals need is no revision, and leaves the price as it was', async () => {
    const calls = await ReportedCalls.of(test);
    await calls.send([aReport('call', 1)]);
    await test.superuser.query('update events set computed_cost_usd = 7, cost_usd = 7 where org_id = $1', [
      calls.orgDb.orgId,
    ]);
    // It starts later, so it names the biller from now on.
    await calls.send([aReport('call', 3)]);
    const { rows } = await test.superuser.query(
      `select biller_span is not null as is_named, revised_xid, cost_usd::text, (select count(*)::int from event_adjustments where org_id = $1) as copies
       from events where org_id = $1 and superseded_by is null`,
      [calls.orgDb.orgId],
    );
    expect(rows).toEqual([{ is_named: true, revised_xid: null, cost_usd: '7.000000000000', copies: 0 }]);
    await calls.send([aReport('call', 4, { teamId: 'search' })]);
    const { rows: after } = await test.superuser.query(
      'select count(*)::int as copies from event_adjustments where org_id = $1',
      [calls.orgDb.orgId],
    );
    expect(after).toEqual([{ copies: 3 }]);
  });

  it('counts where the known event is gone for its age', async () => {
    const calls = await callsReportedTwice(test);
    await calls.send([aReport('call', 1)]);
    await test.superuser.query('delete from events where org_id = $1', [calls.orgDb.orgId]);
    await calls.send([aReport('call', 2)]);
    expect((await laterEvents(calls)).live).toHaveLength(1);
  });

  it('counts instead of a poorer event that another process made count meanwhile', async () => {
    const calls = await callsReportedTwice(test);
    const poor = { reportedClasses: 1 };
    await calls.send([aReport('call', 1, { reportedClasses: 5 })], 0);
    await test.superuser.query(`update events set told_classes = 0 where org_id = $1`, [calls.orgDb.orgId]);
    await calls.send([aReport('call', 2, poor)], 0);
    const { live } = await laterEvents(calls);
    expect(live.map(({ timestampMicros }) => timestampMicros)).toEqual([aReport('call', 2).startMicros]);
    await calls.compareTotals();
  });
});
