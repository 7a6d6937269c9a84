import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../../domain/ids.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { aFindingDay, type FindingToStore, storeFindings } from '../../support/findings.js';
import { anEndpoint } from '../../support/webhooks.js';
import { CLAIMS, claimsOf } from '../support/claims.js';
import { day, financialOf, USD } from '../support/financial.js';
import { send } from '../support/requests.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const claims = claimsOf(() => api);

/** A finding of an undercharge of `usd` dollars. */
const tooLittle = (usd: bigint, on: string, given: FindingToStore = {}): FindingToStore => ({
  ...{ direction: 'undercharge', kind: 'list_rate_mismatch', model: 'gpt-4o-mini', claimable: false },
  days: [aFindingDay(on, -usd * USD)],
  ...given,
});

const undercharge = async (org: TestOrganization, ...given: FindingToStore[]) =>
  storeFindings(org.orgDb, given);

const codeOf = ({ status, body }: { status: number; body: { code?: string } }) => [status, body.code];

describe('POST /api/v1/claims', () => {
  it('drafts a claim over disputes of several kinds and months, and lists what it consists of', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [aFindingDay('2026-03-10', 1_009_999_999_999n)], grade: 'MEDIUM' },
      { days: [day(20n, '2026-04-02')], kind: 'tool_fee_mismatch', model: 'o3' },
    );
    await anEndpoint(org, 'https://receiver.example/', ['claim.created']);
    const { status, body } = await claims.create(org, disputes, { notes: 'both by telephone' });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      id: expect.stringMatching(/^clm_[0-9a-f]{32}$/),
      ...{ version: 1, status: 'draft', provider: 'openai', provider_account_id: 'acc-1' },
      ...{ period_start: '2026-03-10', period_end: '2026-04-02', confidence_tier: 'MEDIUM' },
      ...{ total_recoverable_cents: 2_100, notes: 'both by telephone', submitted_at: null },
      dispute_ids: expect.arrayContaining(disputes),
      events: [{ version: 1, from_status: null, to_status: 'draft', actor: body.created_by }],
      outcomes: [],
    });
    expect(await claims.get(org, body.id)).toEqual(body);
    for (const id of disputes)
      expect(await claims.dispute(org, id)).toMatchObject({ claim_id: body.id, status: 'open' });
    expect(await claims.actionsOf(org)).toEqual(['claim.created']);
    const messages = await org.orgDb.rows<{ body: string }>(
      'select body from webhook_messages where org_id = $1',
      [org.orgId],
    );
    expect(messages.map((message) => JSON.parse(message.body))).toEqual([
      {
        type: 'claim.created',
        timestamp: body.created_at,
        data: {
          ...{ claim_id: body.id, provider: 'openai', confidence_tier: 'MEDIUM' },
          ...{ total_recoverable_cents: 2_100, period_start: '2026-03-10', period_end: '2026-04-02' },
          created_at: body.created_at,
        },
      },
    ]);
  });

  it('nets what was charged too little in the account and the months, once, and lists it', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [day(100n)] },
      { days: [day(50n, '2026-03-11')], kind: 'tool_fee_mismatch' },
    );
    const elsewhere = { accountId: 'acc-2' };
    const [netted = ''] = await undercharge(
      org,
      tooLittle(30n, '2026-03-31'),
      tooLittle(999n, '2026-04-01', { model: 'april' }),
      tooLittle(999n, '2026-03-02', { ...elsewhere, model: 'other account' }),
      tooLittle(999n, '2026-03-03', { model: 'unsure', grade: 'UNVERIFIED' }),
      tooLittle(999n, '2026-03-04', { model: 'open days', provisional: true }),
      tooLittle(999n, '2026-03-05', { model: 'dismissed', status: 'dismissed' }),
      tooLittle(999n, '2026-03-06', { model: 'ours', blame: 'own' }),
      tooLittle(999n, '2026-03-07', { model: 'unexplained', kind: 'unexplained', variant: '' }),
    );
    const [first, second] = disputes;
    const one = (await claims.create(org, [first ?? ''])).body;
    expect(one.total_recoverable_cents).toBe(7_000);
    const listed = await org.orgDb.rows<{ finding_id: string; day: string; live: boolean }>(
      'select finding_id, day, live from claim_undercharges where org_id = $1',
      [org.orgId],
    );
    expect(listed).toEqual([{ finding_id: netted, day: '2026-03-31', live: true }]);
    expect((await claims.create(org, [second ?? ''])).body.total_recoverable_cents).toBe(5_000);
  });

  it('drafts nothing where as much was charged too little, and states so', async () => {
    const { org, disputes } = await claims.orgWithDisputes({ days: [day(10n)] });
    await undercharge(org, tooLittle(10n, '2026-03-01'));
    const refused = await claims.create(org, disputes);
    expect(codeOf(refused)).toEqual([409, 'nets_to_nothing']);
    expect(refused.body.detail).toContain('$10 was charged too much and $10 too little');
    expect(await claims.list(org)).toEqual([]);
    expect(await claims.dispute(org, disputes[0] ?? '')).toMatchObject({ claim_id: null });
    expect(await claims.actionsOf(org)).toEqual([]);
  });

  it('refuses disputes of several accounts, in a claim, resolved or unknown, and changes nothing', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      {},
      { accountId: 'acc-2' },
      { model: 'claimed' },
      { model: 'resolved' },
    );
    const [one = '', other = '', claimed = '', resolved = ''] = disputes;
    const claim = (await claims.create(org, [claimed])).body;
    await api.post(`/api/v1/financial/disputes/${resolved}`, { resolution: 'other' }, org.adminKey);
    const mixed = await claims.create(org, [one, other]);
    expect(codeOf(mixed)).toEqual([400, 'mixed_accounts']);
    expect(mixed.body.detail).toContain('openai acc-1, openai acc-2');
    const twice = await claims.create(org, [one, claimed]);
    expect(codeOf(twice)).toEqual([409, 'already_claimed']);
    expect(twice.body.detail).toContain(claim.id);
    expect(codeOf(await claims.create(org, [one, resolved]))).toEqual([409, 'already_resolved']);
    const foreign = await claims.orgWithDisputes({});
    for (const id of [foreign.disputes[0] ?? '', publicId('dsp', randomUUID()), 'dsp_1', 'fnd_1'])
      expect(codeOf(await claims.create(org, [one, id]))).toEqual([404, 'not_found']);
    for (const ids of [[], [one, one], 'dsp', [7], Array.from({ length: 501 }, (_, at) => `dsp_${at}`)])
      expect(codeOf(await api.post(CLAIMS, { dispute_ids: ids }, org.adminKey))).toEqual([
        400,
        'invalid_body',
      ]);
    expect(await claims.dispute(org, one)).toMatchObject({ claim_id: null });
    expect(await claims.list(org)).toHaveLength(1);
  });

  it('asks for the role admin', async () => {
    const { org, disputes } = await claims.orgWithDisputes({});
    const member = await api.addKey(org.orgId, 'member');
    const { status, body } = await api.post(CLAIMS, { dispute_ids: disputes }, member);
    expect([status, body.message]).toEqual([403, 'admin role required']);
  });

  it('with the same Idempotency-Key answers the same claim', async () => {
    const { org, disputes } = await claims.orgWithDisputes({});
    const ask = () =>
      send(api, {
        ...{ path: CLAIMS, key: org.adminKey, body: JSON.stringify({ dispute_ids: disputes }) },
        headers: { 'content-type': 'application/json', 'idempotency-key': 'once' },
      });
    const [first, second] = [await ask(), await ask()];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.bytes).toEqual(first.bytes);
    expect(await claims.list(org)).toHaveLength(1);
  });

  it('of many at once over the same disputes makes one claim, and of overlapping ones no dispute is in two', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [day(40n)], model: 'a' },
      { days: [day(40n)], model: 'b' },
      { days: [day(40n)], model: 'c' },
    );
    await undercharge(org, tooLittle(5n, '2026-03-20'));
    const [a = '', b = '', c = ''] = disputes;
    const sets = [[a, b], [b, c], [c, a], [a], [b], [c], [a, b, c], [c, b, a]];
    const answers = await Promise.all(sets.map((ids) => claims.create(org, ids)));
    const made = answers.filter(({ status }) => status === 201);
    expect(made.length).toBeGreaterThan(0);
    for (const answer of answers)
      if (answer.status !== 201) expect(codeOf(answer)).toEqual([409, 'already_claimed']);
    const claimed = made.flatMap(({ body }) => body.dispute_ids);
    expect(new Set(claimed).size).toBe(claimed.length);
    const total = made.reduce((sum, { body }) => sum + body.total_recoverable_cents, 0);
    expect(total).toBe(claimed.length * 4_000 - 500);
    expect(await claims.actionsOf(org)).toHaveLength(made.length);
  });
});

describe('POST /api/v1/claims/{id}/merge', () => {
  /** Two drafts, the second of which is netted. */
  async function twoDrafts() {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [day(100n)], model: 'a' },
      { days: [day(50n, '2026-04-11')], model: 'b', grade: 'LOW' },
    );
    const one = (await claims.create(org, [disputes[0] ?? ''], { notes: 'stays' })).body;
    await undercharge(org, tooLittle(20n, '2026-04-01'));
    const other = (await claims.create(org, [disputes[1] ?? ''])).body;
    expect([one.total_recoverable_cents, other.total_recoverable_cents]).toEqual([10_000, 3_000]);
    return { org, disputes, one, other };
  }

  it('makes one draft of several, under the id in the path, netted and frozen again', async () => {
    const { org, disputes, one, other } = await twoDrafts();
    // Found after the first draft was made.
    await undercharge(org, tooLittle(7n, '2026-03-01', { model: 'later' }));
    const { status, body } = await claims.merge(org, one.id, [other.id]);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...{ id: one.id, version: 2, status: 'draft', notes: 'stays', created_at: one.created_at },
      ...{ period_start: '2026-03-10', period_end: '2026-04-11', confidence_tier: 'LOW' },
      total_recoverable_cents: 12_300,
      dispute_ids: expect.arrayContaining(disputes),
      events: [
        { version: 1, from_status: null, to_status: 'draft' },
        { version: 2, from_status: null, to_status: 'draft' },
      ],
    });
    expect(body.evidence_sha256).not.toBe(one.evidence_sha256);
    expect(await claims.get(org, one.id)).toEqual(body);
    expect((await api.get(`${CLAIMS}/${other.id}`, org.adminKey)).status).toBe(404);
    for (const id of disputes) expect((await claims.dispute(org, id)).claim_id).toBe(one.id);
    expect(await claims.actionsOf(org)).toEqual(['claim.merged', 'claim.created', 'claim.created']);
    const rest = await org.orgDb.rows(
      'select claim_id from claim_undercharges where org_id = $1 and claim_id::text <> $2',
      [org.orgId, idText(one.id)],
    );
    expect(rest).toEqual([]);
  });

  it('refuses what is no draft, of another account or unknown, and changes nothing', async () => {
    const { org, one, other } = await twoDrafts();
    await org.orgDb.run(
      `update claims set status = 'submitted_to_provider', submitted_at = now() where org_id = $1 and id = $2::uuid`,
      [org.orgId, idText(other.id)],
    );
    expect(codeOf(await claims.merge(org, one.id, [other.id]))).toEqual([409, 'claim_not_draft']);
    expect(codeOf(await claims.merge(org, other.id, [one.id]))).toEqual([409, 'claim_not_draft']);
    const foreign = await twoDrafts();
    for (const id of [foreign.one.id, publicId('clm', randomUUID()), 'clm_1']) {
      expect(codeOf(await claims.merge(org, one.id, [id]))).toEqual([404, 'not_found']);
      expect(codeOf(await claims.merge(org, id, [one.id]))).toEqual([404, 'not_found']);
    }
    for (const ids of [[], [one.id], [other.id, other.id]])
      expect(codeOf(await claims.merge(org, one.id, ids))).toEqual([400, 'invalid_body']);
    expect(await claims.get(org, one.id)).toEqual(one);
  });

  it('refuses drafts of several accounts', async () => {
    const { org, disputes } = await claims.orgWithDisputes({}, { accountId: 'acc-2' });
    const made = [];
    for (const id of disputes) made.push((await claims.create(org, [id])).body.id);
    expect(codeOf(await claims.merge(org, made[0], [made[1]]))).toEqual([400, 'mixed_accounts']);
  });

  it('of two who merge the same drafts into each other leaves one draft with all disputes', async () => {
    const { org, disputes, one, other } = await twoDrafts();
    const answers = await Promise.all([
      claims.merge(org, one.id, [other.id]),
      claims.merge(org, other.id, [one.id]),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404]);
    const left = await claims.list(org);
    expect(left).toHaveLength(1);
    const whole = await claims.get(org, left[0].id);
    expect([...whole.dispute_ids].sort()).toEqual([...disputes].sort());
    expect(whole.total_recoverable_cents).toBe(13_000);
  });
});

describe('DELETE /api/v1/claims/{id}', () => {
  it('discards a draft: its disputes stay open, in no claim, and what it netted is free', async () => {
    const { org, disputes } = await claims.orgWithDisputes({ days: [day(100n)] });
    await undercharge(org, tooLittle(20n, '2026-03-01'));
    const one = (await claims.create(org, disputes)).body;
    expect((await claims.discard(org, one.id)).status).toBe(204);
    expect((await api.get(`${CLAIMS}/${one.id}`, org.adminKey)).status).toBe(404);
    expect(await claims.dispute(org, disputes[0] ?? '')).toMatchObject({ claim_id: null, status: 'open' });
    expect(codeOf(await claims.discard(org, one.id))).toEqual([404, 'not_found']);
    expect(await claims.actionsOf(org)).toEqual(['claim.discarded', 'claim.created']);
    const again = (await claims.create(org, disputes)).body;
    expect(again.total_recoverable_cents).toBe(8_000);
  });

  it('refuses a claim that was sent, and one of another organization', async () => {
    const { org, disputes } = await claims.orgWithDisputes({});
    const { id } = (await claims.create(org, disputes)).body;
    const other = await api.addOrganization();
    const foreign = await send(api, { method: 'DELETE', path: `${CLAIMS}/${id}`, key: other.adminKey });
    expect(codeOf(foreign)).toEqual([404, 'not_found']);
    await org.orgDb.run(
      `update claims set status = 'submitted_to_provider', submitted_at = now() where org_id = $1`,
      [org.orgId],
    );
    expect(codeOf(await claims.discard(org, id))).toEqual([409, 'claim_not_draft']);
    expect((await claims.get(org, id)).status).toBe('submitted_to_provider');
  });
});

describe('confirming', () => {
  it('drafts nothing by itself', async () => {
    const { org, id } = await financialOf(() => api).orgWith({});
    await financialOf(() => api).confirm(org, id);
    expect(await claims.list(org)).toEqual([]);
  });
});

/** The uuid in a claim's public id. */
const idText = (id: string) => id.replace(/^clm_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
