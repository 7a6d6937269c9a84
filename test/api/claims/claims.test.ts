import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAIM_STATUSES, type ClaimStatus, canMove, nextStatuses } from '../../../domain/claims/lifecycle.js';
import { publicId } from '../../../domain/ids.js';
import { type ClaimsPlace, startClaimsPlace } from '../../support/claimsPlace.js';
import { until } from '../../support/engine.js';
import { unknownId } from '../support/operations/operation.js';

let place: ClaimsPlace;
beforeAll(async () => {
  place = await startClaimsPlace({ asksAgain: true });
  await place.engine.startWorker();
}, 300_000);
afterAll(() => place?.close());

/** A body that is right for a status. */
const bodyFor = (status: ClaimStatus) => ({
  status,
  ...(status === 'denied' ? { denial_reason: 'as billed', violation_type: 'contract_terms' } : {}),
  ...(status === 'credit_issued' || status === 'partial' ? { credit_issued_cents: 1_000 } : {}),
});

describe('a claim', () => {
  it('is shown with its history, its evidence and its legal moves', async () => {
    const id = await place.aClaim({
      notes: 'seen in March',
      evidence: { pricing_snapshot: { version: 'v' } },
    });
    const { status, body } = await place.api.get(`/api/v1/claims/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id,
      org_id: publicId('org', place.api.orgId),
      version: 1,
      period_start: '2026-03-10',
      period_end: '2026-03-10',
      provider: 'openai',
      provider_account_id: 'acc-1',
      total_recoverable_cents: 12_345,
      confidence_tier: 'HIGH',
      status: 'draft',
      next_statuses: ['submitted_to_provider'],
      submitted_at: null,
      resolved_at: null,
      external_ticket_id: null,
      credit_issued_cents: null,
      notes: 'seen in March',
      evidence_pdf_blob_url: `/api/v1/claims/${id}/evidence.pdf`,
      evidence_csv_blob_url: `/api/v1/claims/${id}/evidence.csv`,
      evidence_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      evidence_stale_at: null,
      next_action: expect.any(String),
      next_action_at: expect.any(String),
      snoozed_until: null,
      created_at: expect.any(String),
      created_by: 'key_test',
      updated_at: expect.any(String),
      warnings: [],
      dispute_ids: [expect.stringMatching(/^dsp_/)],
      events: [
        expect.objectContaining({ version: 1, from_status: null, to_status: 'draft', actor: 'key_test' }),
      ],
      outcomes: [],
      evidence: { pricing_snapshot: { version: 'v' } },
    });
  });

  it('is listed newest first, by status and provider, page by page', async () => {
    const org = await place.api.addOrganization();
    const ids: string[] = [];
    for (const status of ['draft', 'under_review', 'draft'] as const)
      ids.unshift(await place.aClaim({ status }, org));
    const list = async (query = '') => (await place.api.get(`/api/v1/claims?${query}`, org.adminKey)).body;
    const idsOf = (body: { claims: { id: string }[] }) => body.claims.map(({ id }) => id);
    expect(idsOf(await list())).toEqual(ids);
    expect(idsOf(await list('status=under_review'))).toEqual([ids[1]]);
    expect(idsOf(await list('provider=anthropic'))).toEqual([]);
    const first = await list('limit=2');
    expect([idsOf(first), first.has_more]).toEqual([ids.slice(0, 2), true]);
    expect(idsOf(await list(`limit=2&cursor=${first.next_cursor}`))).toEqual(ids.slice(2));
    expect((await place.api.get('/api/v1/claims?status=lost', org.adminKey)).status).toBe(400);
  });

  it('of another organization is answered like a missing one', async () => {
    const other = await place.api.addOrganization();
    const id = await place.aClaim({}, other);
    expect((await place.api.get(`/api/v1/claims/${id}`)).status).toBe(404);
    expect((await place.submit(id)).body).toMatchObject({ status: 404, code: 'not_found' });
    expect((await place.patch(id, bodyFor('under_review'))).status).toBe(404);
  });
});

describe('a move', () => {
  it('submits a draft, and records it in the disputes, the log and the history', async () => {
    const id = await place.aClaim();
    const { status, body } = await place.submit(id);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body).toMatchObject({ id, status: 'submitted_to_provider', version: 2, resolved_at: null });
    expect(body).toEqual(await place.get(id));
    expect(body.events.at(-1)).toMatchObject({
      from_status: 'draft',
      to_status: 'submitted_to_provider',
      at: body.submitted_at,
      actor: expect.stringMatching(/^key_/),
    });
    const dispute = await place.api.get(`/api/v1/financial/disputes/${body.dispute_ids[0]}`);
    expect(dispute.body).toMatchObject({ status: 'claimed', claim_id: id });
    const { body: log } = await place.api.get(`/api/v1/audit-log?subject_id=${id}`);
    expect(log.records.map(({ action }: { action: string }) => action)).toEqual(['claim.submitted']);
  });

  it('leads from a draft to a credit; its fields are recorded, notes stay, times never change', async () => {
    const id = await place.aClaim({ notes: 'ours' });
    const filed = (await place.patch(id, { status: 'submitted_to_provider', external_ticket_id: 'T-1' }))
      .body;
    expect(filed).toMatchObject({ status: 'submitted_to_provider', external_ticket_id: 'T-1' });
    expect(filed.submitted_at).not.toBeNull();
    await place.patch(id, { status: 'provider_acknowledged' });
    await place.patch(id, { status: 'escalated', denial_reason: 'first line says no' });
    await place.patch(id, { status: 'credit_approved', external_ticket_id: 'T-2' });
    const { body } = await place.patch(id, { status: 'partial', credit_issued_cents: 12_344 });
    expect(body).toMatchObject({
      status: 'partial',
      credit_issued_cents: 12_344,
      external_ticket_id: 'T-2',
      notes: 'ours',
      submitted_at: filed.submitted_at,
      next_statuses: [],
      next_action: null,
      outcomes: [{ claim_id: id, status: 'partial', credit_issued_cents: 12_344, denial_reason: null }],
    });
    expect(body.resolved_at).toBe(body.events.at(-1).at);
    expect(body.events.map((event: { to_status: string }) => event.to_status)).toEqual([
      'draft',
      'submitted_to_provider',
      'provider_acknowledged',
      'escalated',
      'credit_approved',
      'partial',
    ]);
    expect(body.events[3].denial_reason).toBe('first line says no');
    const { status } = await until(
      'the end of its workflow',
      () => place.handleOf(id).describe(),
      (described) => described.status.name !== 'RUNNING',
    );
    expect(status.name).toBe('COMPLETED');
  });

  it('records a denial with its reason and what it was', async () => {
    const id = await place.aClaim({ status: 'under_review' });
    const { body } = await place.patch(id, bodyFor('denied'));
    expect(body.outcomes).toEqual([
      {
        claim_id: id,
        status: 'denied',
        denial_reason: 'as billed',
        violation_type: 'contract_terms',
        credit_issued_cents: null,
        actor: expect.stringMatching(/^key_/),
        at: body.resolved_at,
      },
    ]);
    const dispute = await place.api.get(`/api/v1/financial/disputes/${body.dispute_ids[0]}`);
    expect(dispute.body).toMatchObject({ status: 'resolved', resolution: 'provider_correct' });
  });

  it('takes a credit of any size, and asks whether a short one was meant as partial', async () => {
    for (const [cents, warns] of [
      [12_098, ['credit_below_total']],
      [12_099, []],
      [999_999_999, []],
    ] as const) {
      const id = await place.aClaim({ status: 'credit_approved' });
      const { status, body } = await place.patch(id, { status: 'credit_issued', credit_issued_cents: cents });
      expect([status, body.credit_issued_cents]).toEqual([200, cents]);
      expect(body.warnings.map(({ code }: { code: string }) => code)).toEqual(warns);
    }
  });
});

describe('the answers', () => {
  it('check in one order: the caller, the body, whether the claim exists, whether the move is legal', async () => {
    const id = await place.aClaim({ status: 'denied' });
    const nobody = unknownId('clm')();
    const member = await place.api.addKey(place.api.orgId, 'member');
    const ask = async (...[claim, body, key]: [string, unknown, string | null | undefined]) => {
      const answer = await place.patch(claim, body, key === undefined ? {} : { key });
      return [answer.status, answer.body.message];
    };
    const wrong = { status: 'lost' };
    expect((await ask(nobody, wrong, null))[0]).toBe(401);
    expect(await ask(nobody, wrong, member)).toEqual([403, 'admin role required']);
    expect((await ask(nobody, wrong, undefined))[0]).toBe(400);
    expect((await ask(id, wrong, undefined))[0]).toBe(400);
    expect((await ask(nobody, bodyFor('under_review'), undefined))[0]).toBe(404);
    expect((await ask(id, bodyFor('under_review'), undefined))[0]).toBe(409);
    // A partial credit of the whole: only where it may become partial.
    const whole = { status: 'partial', credit_issued_cents: 12_345 };
    expect((await ask(nobody, whole, undefined))[0]).toBe(404);
    expect((await ask(id, whole, undefined))[0]).toBe(409);
    const open = await place.aClaim({ status: 'under_review' });
    expect((await ask(open, whole, undefined))[0]).toBe(400);
    expect(await place.historyOf(open)).toEqual(['draft', 'submitted_to_provider', 'under_review']);
    const submit = await place.submit(id, { key: member });
    expect([submit.status, submit.body.message]).toEqual([403, 'admin role required']);
    expect((await place.submit(nobody)).status).toBe(404);
    expect((await place.submit('nonsense')).status).toBe(404);
  });

  it.each([
    ['no status', {}],
    ['an unknown status', { status: 'closed' }],
    ['a status that is no text', { status: 7 }],
    ['a field that nobody knows', { status: 'under_review', urgency: 'high' }],
    ['a denial without a reason', { status: 'denied', violation_type: 'other' }],
    ['a denial with an empty reason', { status: 'denied', denial_reason: ' ', violation_type: 'other' }],
    ['a denial without saying what it was', { status: 'denied', denial_reason: 'no' }],
    [
      'a denial for what nobody knows',
      { status: 'denied', denial_reason: 'no', violation_type: 'unexplained' },
    ],
    [
      'a denial with a credit',
      { status: 'denied', denial_reason: 'no', violation_type: 'other', credit_issued_cents: 5 },
    ],
    ['a credit without an amount', { status: 'credit_issued' }],
    ['a partial credit without an amount', { status: 'partial', credit_issued_cents: null }],
    ['a credit of nothing', { status: 'credit_issued', credit_issued_cents: 0 }],
    ['a credit below nothing', { status: 'partial', credit_issued_cents: -1 }],
    ['a part of a cent', { status: 'credit_issued', credit_issued_cents: 10.5 }],
    ['cents as a text', { status: 'credit_issued', credit_issued_cents: '100' }],
    ['a ticket that is empty', { status: 'under_review', external_ticket_id: '' }],
    ['a ticket that is too long', { status: 'under_review', external_ticket_id: 'x'.repeat(257) }],
  ])('%s is 400, whatever the claim is', async (_name, body) => {
    const id = await place.aClaim({ status: 'credit_issued' });
    const answer = await place.patch(id, body);
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_body']);
  });

  it('match the table of moves for every pair of statuses', { timeout: 300_000 }, async () => {
    for (const from of CLAIM_STATUSES) {
      const shared = await place.aClaim({ status: from });
      for (const to of CLAIM_STATUSES) {
        const id = canMove(from, to) ? await place.aClaim({ status: from }) : shared;
        const { status, body } = await place.patch(id, bodyFor(to));
        expect([status, body.code], `${from} to ${to}`).toEqual(
          canMove(from, to) ? [200, undefined] : [409, 'illegal_transition'],
        );
        if (canMove(from, to)) expect(body.next_statuses).toEqual(nextStatuses(to));
      }
      const submitted = await place.submit(shared);
      expect(submitted.status, `submit of ${from}`).toBe(from === 'draft' ? 200 : 409);
    }
  });
});

describe('many at once', () => {
  it('50 moves that exclude each other: one is made, the others get 409, one row of history', async () => {
    const id = await place.aClaim({ status: 'submitted_to_provider' });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        place.patch(id, bodyFor((['credit_issued', 'partial', 'denied'] as const)[at % 3] ?? 'denied')),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 49 }, () => 409)]);
    expect((await place.historyOf(id)).length).toBe(3);
    expect((await place.get(id)).outcomes.length).toBe(1);
  });

  it('50 submits: one is made', async () => {
    const id = await place.aClaim();
    const answers = await Promise.all(Array.from({ length: 50 }, () => place.submit(id)));
    expect(answers.filter(({ status }) => status === 200).length).toBe(1);
    expect(answers.filter(({ status }) => status === 409).length).toBe(49);
    expect(await place.historyOf(id)).toEqual(['draft', 'submitted_to_provider']);
  });

  it('moves of several claims do not wait for each other', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => place.aClaim()));
    const answers = await Promise.all(ids.map((id) => place.submit(id)));
    expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200));
  });
});

describe('a repeat with the same Idempotency-Key', () => {
  it('is answered as the first, also when the claim has gone on, and whether or not the answer was kept', async () => {
    const id = await place.aClaim();
    const once = randomUUID();
    const first = await place.submit(id, { once });
    await place.patch(id, { status: 'under_review', external_ticket_id: 'T-7' });
    const kept = await place.submit(id, { once });
    expect([kept.status, kept.body, kept.headers['idempotency-replayed']]).toEqual([200, first.body, 'true']);
    // Simulates a crash between the move and the storing of its answer.
    await place.api.database.superuser.query('delete from idempotency_keys where org_id = $1', [
      place.api.orgId,
    ]);
    const again = await place.submit(id, { once });
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await place.historyOf(id)).toEqual(['draft', 'submitted_to_provider', 'under_review']);
  });

  it('gets the refusal that the first got', async () => {
    const id = await place.aClaim({ status: 'under_review' });
    const once = randomUUID();
    const first = await place.patch(id, { status: 'under_review' }, { once });
    expect(first.status).toBe(409);
    await place.patch(id, { status: 'escalated' });
    expect((await place.patch(id, { status: 'under_review' }, { once })).status).toBe(409);
  });

  it('but with another body is refused', async () => {
    const id = await place.aClaim({ status: 'submitted_to_provider' });
    const once = randomUUID();
    expect((await place.patch(id, { status: 'under_review' }, { once })).status).toBe(200);
    expect((await place.patch(id, { status: 'escalated' }, { once })).body.code).toBe(
      'idempotency_key_reused',
    );
  });
});
