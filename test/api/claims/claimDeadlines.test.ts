import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findUuid, publicId } from '../../../domain/ids.js';
import { dayOf, isoFromMicros, shiftDay } from '../../../domain/period.js';
import { recordClaimMove } from '../../../usecases/claims/moveClaim.js';
import { noteClaimDue } from '../../../usecases/claims/reminders.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { aCommand, type ClaimToStore, storeClaim } from '../../support/claims.js';
import { CLAIMS, claimsOf } from '../support/claims.js';
import { send } from '../support/requests.js';

const SETTINGS = '/api/v1/organization/settings';
const MICROS_PER_DAY = 86_400_000_000n;
let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const nowMicros = () => BigInt(Date.now()) * 1_000n;
/** An organization with a claim; its public id. */
async function orgWithClaim(given: ClaimToStore = {}): Promise<{ org: TestOrganization; id: string }> {
  const org = await api.addOrganization();
  return { org, id: publicId('clm', (await storeClaim(org.orgDb, given)).id) };
}
const call = (org: TestOrganization, method: string, path: string, body: unknown, key = org.adminKey) =>
  send(api, {
    ...{ method, path, key },
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const snooze = (org: TestOrganization, id: string, until: unknown) =>
  call(org, 'POST', `${CLAIMS}/${id}/snooze`, { until });
const claimOf = async (org: TestOrganization, id: string) =>
  (await api.get(`${CLAIMS}/${id}`, org.adminKey)).body;
const uuidOf = (id: string) => findUuid('clm', id) ?? '';
const note = (org: TestOrganization, id: string) => noteClaimDue(org.orgDb, uuidOf(id));
/** Moves a claim's times back by `days`. */
const age = (id: string, days: number) =>
  api.database.superuser.query(
    `update claims set entered_at = entered_at - make_interval(days => $2), created_at = created_at - make_interval(days => $2),
       next_action_at = next_action_at - make_interval(days => $2), snoozed_until = snoozed_until - make_interval(days => $2)
     where id = $1`,
    [uuidOf(id), days],
  );
const noticesOf = async (org: TestOrganization) =>
  (await api.get('/api/v1/alerts?kind=notice', org.adminKey)).body.alerts
    .reverse()
    .map(({ details }: { details: { action: string } }) => details.action);
const wakesOf = async (org: TestOrganization) =>
  (
    await api.database.superuser.query(
      `select subject_id from outbox where org_id = $1 and kind = 'claim.wake' order by subject_id`,
      [org.orgId],
    )
  ).rows.map(({ subject_id }) => publicId('clm', subject_id));
const logOf = async (org: TestOrganization) =>
  (
    await api.database.superuser.query(
      `select action, details from audit_log where org_id = $1 and action = 'claim.snoozed' order by seq`,
      [org.orgId],
    )
  ).rows.map(({ details }) => JSON.parse(details));

describe('a notice that is due', () => {
  it('is in the feed once, and the next one is fixed', async () => {
    const { org, id } = await orgWithClaim({ status: 'submitted_to_provider' });
    await note(org, id);
    expect(await noticesOf(org)).toEqual([]);
    await age(id, 40);
    const due = (await claimOf(org, id)).next_action_at;
    for (let times = 0; times < 4; times += 1) await note(org, id);
    const { body } = await api.get('/api/v1/alerts?kind=notice', org.adminKey);
    expect(body.alerts.map(({ details }: { details: object }) => details)).toMatchObject([
      { action: 'suggest_escalation', status: 'submitted_to_provider' },
      { action: 'remind', due_at: due, total_recoverable_cents: 12_345 },
    ]);
    expect(body.alerts[0]).toMatchObject({
      ...{ kind: 'notice', notice: 'claim_due', severity: 'medium', status: 'open', provider: 'openai' },
      subject: { type: 'claim', id },
    });
    expect(await claimOf(org, id)).toMatchObject({
      ...{ status: 'submitted_to_provider', version: 2, next_action: null, next_action_at: null },
    });
  });

  it('is sent once, however many request it at the same time', async () => {
    const { org, id } = await orgWithClaim({ status: 'escalated' });
    await age(id, 12);
    await Promise.all(Array.from({ length: 8 }, () => note(org, id)));
    expect(await noticesOf(org)).toEqual(['remind']);
  });

  it('is sent once even when the row is set back by hand', async () => {
    const { org, id } = await orgWithClaim({ status: 'under_review' });
    for (let times = 0; times < 2; times += 1) {
      await api.database.superuser.query(
        `update claims set steps_told = '{}', next_action = 'remind', next_action_at = now() - interval '1 hour' where id = $1`,
        [uuidOf(id)],
      );
      await note(org, id);
    }
    expect(await noticesOf(org)).toEqual(['remind']);
  });
});

describe('a draft', () => {
  it('that others are merged into keeps its time, is no longer snoozed, and sends no reminder again', async () => {
    const claims = claimsOf(() => api);
    const { org, disputes } = await claims.orgWithDisputes({}, { kind: 'tool_fee_mismatch', model: 'o3' });
    const [one, other] = await Promise.all(
      disputes.map(async (id) => (await claims.create(org, [id])).body.id),
    );
    await age(one, 25);
    await note(org, one);
    expect(await noticesOf(org)).toEqual(['remind']);
    await snooze(org, one, isoFromMicros(nowMicros() + MICROS_PER_DAY));
    const { status, body } = await claims.merge(org, one, [other]);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: one, snoozed_until: null });
    expect(body.next_action).not.toBe('remind');
    await note(org, one);
    expect(await noticesOf(org)).toEqual(['remind']);
  });
});

describe('POST /api/v1/claims/{id}/snooze', () => {
  it('stops reminders until then, and then sends one', async () => {
    const { org, id } = await orgWithClaim({ status: 'submitted_to_provider' });
    const until = isoFromMicros(nowMicros() + 30n * MICROS_PER_DAY);
    const { status, body } = await snooze(org, id, until);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...{ id, version: 2, status: 'submitted_to_provider' },
      ...{ snoozed_until: until, next_action_at: until, next_action: 'suggest_escalation' },
    });
    expect(await claimOf(org, id)).toEqual(body);
    expect(await wakesOf(org)).toEqual([id]);
    expect(await logOf(org)).toEqual([{ old_until: null, new_until: until }]);
    await age(id, 29);
    await note(org, id);
    expect(await noticesOf(org)).toEqual([]);
    await age(id, 2);
    await note(org, id);
    await note(org, id);
    expect(await noticesOf(org)).toEqual(['suggest_escalation']);
    expect(await claimOf(org, id)).toMatchObject({ snoozed_until: null, next_action: null });
  });

  it('again puts it off further; the same changes nothing; null takes it back', async () => {
    const { org, id } = await orgWithClaim();
    const before = await claimOf(org, id);
    const [one, other] = [20n, 25n].map((days) => isoFromMicros(nowMicros() + days * MICROS_PER_DAY));
    for (const until of [one, other, other, null]) expect((await snooze(org, id, until)).status).toBe(200);
    expect(await logOf(org)).toEqual([
      { old_until: null, new_until: one },
      { old_until: one, new_until: other },
      { old_until: other, new_until: null },
    ]);
    expect(await claimOf(org, id)).toEqual({ ...before, updated_at: expect.any(String) });
    expect((await snooze(org, id, null)).body.snoozed_until).toBeNull();
    expect(await wakesOf(org)).toEqual([id, id, id]);
  });

  it('until a day ends as the day begins where the organization is', async () => {
    const { org, id } = await orgWithClaim();
    await call(org, 'PATCH', SETTINGS, { time_zone: 'Asia/Tokyo' });
    const day = shiftDay(dayOf(nowMicros()), 60);
    expect((await snooze(org, id, day)).body.snoozed_until).toBe(`${shiftDay(day, -1)}T15:00:00Z`);
  });

  it('is ended by a move', async () => {
    const org = await api.addOrganization();
    const until = isoFromMicros(nowMicros() + 100n * MICROS_PER_DAY);
    const draft = await storeClaim(org.orgDb);
    const id = publicId('clm', draft.id);
    await snooze(org, id, until);
    await org.orgDb.transaction((inside) =>
      recordClaimMove(inside, aCommand(draft, 'submitted_to_provider')),
    );
    expect(await claimOf(org, id)).toMatchObject({ snoozed_until: null, next_action: 'remind' });
  });

  it('of a claim that is over is refused, whatever it asks for', async () => {
    const { org, id } = await orgWithClaim({ status: 'denied' });
    for (const until of [null, '2000-01-01', isoFromMicros(nowMicros() + MICROS_PER_DAY)]) {
      const { status, body } = await snooze(org, id, until);
      expect([status, body.code]).toEqual([409, 'claim_over']);
    }
    expect(await logOf(org)).toEqual([]);
  });

  it('refuses what is past, too far, or no time', async () => {
    const { org, id } = await orgWithClaim();
    const wrong = [
      '2000-01-01',
      isoFromMicros(nowMicros() - 1_000_000n),
      isoFromMicros(nowMicros() + 367n * MICROS_PER_DAY),
    ];
    for (const until of [...wrong, 'tomorrow', '2026-02-30', '', 5, undefined, ['2026-12-01']]) {
      const { status, body } = await snooze(org, id, until);
      expect([status, body.code], String(until)).toEqual([400, 'invalid_body']);
      expect(JSON.stringify(body.errors ?? body)).toContain('until');
    }
    expect((await claimOf(org, id)).snoozed_until).toBeNull();
    expect((await snooze(org, publicId('clm', org.orgId), '2000-01-01')).status).toBe(404);
  });
});

describe('a change of the calendar', () => {
  it('applies to open claims at once, and their workflows are signalled', async () => {
    const org = await api.addOrganization();
    const ids: string[] = [];
    for (const status of ['draft', 'under_review', 'partial'] as const)
      ids.push(publicId('clm', (await storeClaim(org.orgDb, { status })).id));
    const at = async () => Promise.all(ids.map(async (id) => (await claimOf(org, id)).next_action_at));
    const before = await at();
    const today = dayOf(nowMicros());
    const holidays = Array.from({ length: 60 }, (_, days) => shiftDay(today, days + 1));
    await call(org, 'PATCH', SETTINGS, { holidays });
    const put = await at();
    for (const one of [0, 1])
      expect(Date.parse(put[one])).toBeGreaterThan(Date.parse(before[one]) + 30 * 86_400_000);
    expect(put[2]).toBeNull();
    expect(await wakesOf(org)).toEqual(ids.slice(0, 2).sort());
    await call(org, 'PATCH', SETTINGS, { holidays, drop_payloads: true });
    expect(await wakesOf(org)).toHaveLength(2);
    await call(org, 'PATCH', SETTINGS, { holidays: null });
    expect(await at()).toEqual(before);
  });

  it('sends no reminder twice', async () => {
    const { org, id } = await orgWithClaim({ status: 'provider_acknowledged' });
    await age(id, 17);
    await note(org, id);
    const today = dayOf(nowMicros());
    await call(org, 'PATCH', SETTINGS, {
      holidays: Array.from({ length: 60 }, (_, days) => shiftDay(today, days - 30)),
    });
    expect((await claimOf(org, id)).next_action).toBe('suggest_escalation');
    await age(id, 200);
    for (let times = 0; times < 3; times += 1) await note(org, id);
    expect(await noticesOf(org)).toEqual(['remind', 'suggest_escalation']);
  });

  it('leaves what is snoozed until it is', async () => {
    const { org, id } = await orgWithClaim({ status: 'under_review' });
    const until = isoFromMicros(nowMicros() + 300n * MICROS_PER_DAY);
    await snooze(org, id, until);
    await call(org, 'PATCH', SETTINGS, { time_zone: 'America/New_York' });
    expect(await claimOf(org, id)).toMatchObject({ snoozed_until: until, next_action_at: until });
  });
});
