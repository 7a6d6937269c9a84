import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findUuid, publicId } from '../../../domain/ids.js';
import { recordClaimMove } from '../../../usecases/claims/moveClaim.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { aCommand, storeClaim } from '../../support/claims.js';
import { storeCredit } from '../../support/credits.js';
import { CLAIMS } from '../support/claims.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

async function aClaimWith(...cents: number[]) {
  const claim = await storeClaim(api.orgDb, { status: 'under_review', disputes: [{ cents: 12_345 }] });
  const credits: string[] = [];
  for (const one of cents)
    credits.push(publicId('crd', await storeCredit(api.orgDb, claim.id, { cents: one })));
  return { claim, id: publicId('clm', claim.id), credits };
}

const get = async (id: string) => (await api.get(`${CLAIMS}/${id}`)).body;
const statuses = async (id: string) =>
  (await get(id)).proposed_credits.map(({ status, amount_cents }: never) => [amount_cents, status]);
const credit = ({ claim }: Awaited<ReturnType<typeof aClaimWith>>, cents: number) =>
  api.orgDb.transaction((inside) =>
    recordClaimMove(
      inside,
      aCommand({ id: claim.id, version: claim.version }, cents < 12_345 ? 'partial' : 'credit_issued', {
        fields: {
          ...{ denialReason: null, violationType: null, externalTicketId: null },
          creditIssuedCents: cents,
        },
      }),
    ),
  );

describe('credits that are proposed', () => {
  it('contain the move that accepts them, one by one and together', async () => {
    const { id } = await aClaimWith(10_000, 2_345);
    const { proposed_credits, proposed_move } = await get(id);
    expect(proposed_credits.map(({ move }: never) => move)).toEqual([
      { status: 'partial', credit_issued_cents: 10_000 },
      { status: 'partial', credit_issued_cents: 2_345 },
    ]);
    expect(proposed_move).toEqual({ status: 'credit_issued', credit_issued_cents: 12_345 });
  });

  it('are accepted by the move that credits as much: all of them, or the one', async () => {
    const both = await aClaimWith(10_000, 2_345);
    await credit(both, 12_345);
    expect(await statuses(both.id)).toEqual([
      [10_000, 'accepted'],
      [2_345, 'accepted'],
    ]);
    const one = await aClaimWith(10_000, 2_345);
    await credit(one, 2_345);
    expect(await statuses(one.id)).toEqual([
      [10_000, 'rejected'],
      [2_345, 'accepted'],
    ]);
    const other = await aClaimWith(10_000);
    await credit(other, 7_000);
    expect(await statuses(other.id)).toEqual([[10_000, 'rejected']]);
  });

  it('are rejected once; what is accepted stays so, and what is not the claim’s is not found', async () => {
    const claim = await aClaimWith(10_000, 2_345);
    const reject = (id: string, one = '') => api.post(`${CLAIMS}/${id}/credits/${one}/reject`, {});
    const [first, second] = claim.credits;
    const rejected = await reject(claim.id, first);
    expect([rejected.status, rejected.body.proposed_move]).toEqual([
      200,
      { status: 'partial', credit_issued_cents: 2_345 },
    ]);
    expect((await reject(claim.id, first)).body).toEqual(rejected.body);
    expect((await reject((await aClaimWith()).id, second)).status).toBe(404);
    expect((await reject(claim.id, 'crd_none')).status).toBe(404);
    await credit(claim, 2_345);
    expect((await reject(claim.id, second)).body).toMatchObject({ status: 409, code: 'already_resolved' });
  });
});

describe('a ticket draft', () => {
  const draft = (id: string) => api.post(`${CLAIMS}/${id}/ticket-draft`, {});

  it('is of an escalated claim, and of no other', async () => {
    for (const status of ['draft', 'submitted_to_provider', 'denied', 'credit_issued'] as const) {
      const id = publicId('clm', (await storeClaim(api.orgDb, { status })).id);
      expect((await draft(id)).body).toMatchObject({ status: 409, code: 'illegal_transition' });
    }
    expect((await draft('clm_none')).status).toBe(404);
  });

  it('contains what is known when it is requested, the same by GET, and stores nothing', async () => {
    const claim = await storeClaim(api.orgDb, { status: 'escalated', disputes: [{ cents: 123_456 }] });
    const id = publicId('clm', claim.id);
    const { status, body } = await draft(id);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      claim_id: id,
      subject: 'Escalation: overcharge of $1,234.56 on the OpenAI bill of account acc-1, 2026-03-10',
      suggested_resolution: 'Issue a credit of $1,234.56 for 2026-03-10.',
      evidence_refs: ['pdf', 'csv', 'json', 'tar.gz'].map(
        (name) => `http://trueup.test${CLAIMS}/${id}/evidence.${name}`,
      ),
    });
    const { generated_at, ...same } = (await api.get(`${CLAIMS}/${id}/ticket-draft`)).body;
    expect({ ...same, generated_at: body.generated_at }).toEqual(body);
    expect(generated_at > body.generated_at).toBe(true);
    await storeCredit(api.orgDb, findUuid('clm', id) ?? '', { cents: 5_000, description: 'Goodwill' });
    expect((await draft(id)).body.body).toContain('A credit of $50.00 (2026-06-01, "Goodwill")');
    expect((await get(id)).version).toBe(claim.version);
  });
});
