import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicId } from '../../../domain/ids.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { aFindingDay } from '../../support/findings.js';
import { claimsOf } from '../support/claims.js';
import { DISPUTES, day, financialOf } from '../support/financial.js';
import { send, sendJson } from '../support/requests.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const claims = claimsOf(() => api);

const resolve = (org: TestOrganization, id: string, json: object, method = 'POST') =>
  sendJson(api, { method, path: `${DISPUTES}/${id}`, key: org.adminKey, json });

const codeOf = ({ status, body }: { status: number; body: { code?: string } }) => [status, body.code];

const actionsOf = async (org: TestOrganization) => {
  const { body } = await api.get('/api/v1/audit-log?subject_type=dispute', org.adminKey);
  return body.records.map(({ action }: { action: string }) => action);
};

const daysLive = async (org: TestOrganization) =>
  (
    await org.orgDb.rows<{ live: boolean }>('select live from dispute_days where org_id = $1 order by day', [
      org.orgId,
    ])
  ).map(({ live }) => live);

describe('to resolve a dispute', () => {
  it('closes it with its days, and it counts in the summary no longer', async () => {
    const { org, disputes } = await claims.orgWithDisputes({
      days: [day(10n), day(20n, '2026-03-11')],
    });
    const recoverable = async () =>
      (await api.get('/api/v1/financial/summary', org.adminKey)).body.recoverable_confirmed_usd;
    expect(await recoverable()).toBe(30);
    const [id = ''] = disputes;
    const { status, body } = await resolve(org, id, { resolution: ' credit_received ', notes: 'by mail' });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...{ id, status: 'resolved', resolution: 'credit_received', notes: 'by mail' },
      ...{ resolved_at: expect.any(String), resolved_by: expect.stringMatching(/^key_/), claim_id: null },
    });
    const { days: _days, evidence: _evidence, ...stored } = await claims.dispute(org, id);
    expect(stored).toEqual(body);
    expect(await daysLive(org)).toEqual([false, false]);
    expect(await recoverable()).toBe(0);
    expect(await actionsOf(org)).toEqual(['dispute.resolved']);
  });

  it.each(['POST', 'PATCH', 'PUT'])('by %s is the same, and a repeat changes nothing', async (method) => {
    const { org, disputes } = await claims.orgWithDisputes({});
    const [id = ''] = disputes;
    const first = await resolve(org, id, { resolution: 'our own word' }, method);
    const second = await resolve(org, id, { resolution: 'our own word', notes: 'later' }, method);
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body).toEqual(first.body);
    const other = await resolve(org, id, { resolution: 'other' }, method);
    expect(codeOf(other)).toEqual([409, 'already_resolved']);
    expect(other.body.detail).toContain('our own word');
    expect(await claims.dispute(org, id)).toMatchObject({ resolution: 'our own word', notes: null });
    expect(await actionsOf(org)).toEqual(['dispute.resolved']);
  });

  it('of several people at once keeps the reason of one', async () => {
    const { org, disputes } = await claims.orgWithDisputes({});
    const words = ['other', 'duplicate', 'written_off', 'our_error', 'other', 'duplicate'];
    const answers = await Promise.all(
      words.map((resolution) => resolve(org, disputes[0] ?? '', { resolution })),
    );
    const kept = (await claims.dispute(org, disputes[0] ?? '')).resolution;
    expect(answers.map(({ status }) => status)).toEqual(words.map((word) => (word === kept ? 200 : 409)));
    expect(await actionsOf(org)).toEqual(['dispute.resolved']);
  });

  it('asks for a resolution, and nothing that is not known', async () => {
    const { org, disputes } = await claims.orgWithDisputes({});
    for (const json of [
      ...[{}, { resolution: '' }, { resolution: '  ' }, { resolution: 7 }, { resolution: 'x'.repeat(65) }],
      ...[
        { resolution: 'other', note: 'x' },
        { resolution: 'other', notes: 'x'.repeat(4_001) },
      ],
    ])
      expect(codeOf(await resolve(org, disputes[0] ?? '', json))).toEqual([400, 'invalid_body']);
    expect(await claims.dispute(org, disputes[0] ?? '')).toMatchObject({ status: 'open' });
  });

  it('is not for one that is in a claim: the draft is discarded first, and a filed claim resolves it', async () => {
    const { org, disputes } = await claims.orgWithDisputes({});
    const [id = ''] = disputes;
    const claim = (await claims.create(org, disputes)).body;
    const drafted = await resolve(org, id, { resolution: 'other' });
    expect(codeOf(drafted)).toEqual([409, 'already_claimed']);
    expect(drafted.body.detail).toContain(`DELETE /api/v1/claims/${claim.id}`);
    await org.orgDb.run(
      `update claims set status = 'submitted_to_provider', submitted_at = now() where org_id = $1`,
      [org.orgId],
    );
    await org.orgDb.run(`update disputes set status = 'claimed' where org_id = $1`, [org.orgId]);
    const filed = await resolve(org, id, { resolution: 'other' });
    expect(codeOf(filed)).toEqual([409, 'already_claimed']);
    expect(filed.body.detail).toContain(`PATCH /api/v1/claims/${claim.id}/status`);
    expect(await daysLive(org)).toEqual([true]);
    expect(await actionsOf(org)).toEqual([]);
  });

  it('and to claim it, at the same time, end as one of the two', async () => {
    const { org, disputes } = await claims.orgWithDisputes({});
    const [id = ''] = disputes;
    const [claimed, resolved] = await Promise.all([
      claims.create(org, disputes),
      resolve(org, id, { resolution: 'other' }),
    ]);
    const after = await claims.dispute(org, id);
    if (claimed.status === 201) {
      expect(codeOf(resolved)).toEqual([409, 'already_claimed']);
      expect(after).toMatchObject({ status: 'open', claim_id: claimed.body.id });
    } else {
      expect([...codeOf(claimed), resolved.status]).toEqual([409, 'already_resolved', 200]);
      expect(after).toMatchObject({ status: 'resolved', claim_id: null });
    }
  });

  it('of another organization is as of none', async () => {
    const { disputes } = await claims.orgWithDisputes({});
    const other = await api.addOrganization();
    for (const id of [disputes[0] ?? '', publicId('dsp', randomUUID()), 'dsp_1'])
      expect(codeOf(await resolve(other, id, { resolution: 'other' }))).toEqual([404, 'not_found']);
  });
});

describe('the export of disputes', () => {
  const EXPORT = `${DISPUTES}/export`;
  const rowsOf = (bytes: Buffer) => bytes.toString().split('\r\n');

  it('has a row for each in the order in which they were opened, with exact dollars and no formula', async () => {
    const { org, disputes } = await claims.orgWithDisputes(
      { days: [aFindingDay('2026-03-10', 1_234_567_890_123n)], model: 'a', cause: '=HYPERLINK("x")' },
      { days: [day(5n, '2026-03-11')], model: 'b, "c"', grade: 'LOW' },
    );
    await resolve(org, disputes[0] ?? '', { resolution: '+other', notes: '-1\nand more' });
    const claim = (await claims.create(org, [disputes[1] ?? ''])).body;
    const [one, other] = [
      await claims.dispute(org, disputes[0] ?? ''),
      await claims.dispute(org, disputes[1] ?? ''),
    ];
    const answer = await send(api, { path: EXPORT, key: org.adminKey });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^text\/csv; charset=utf-8/);
    expect(answer.headers['content-disposition']).toMatch(
      /^attachment; filename="disputes-\d{4}-\d{2}-\d{2}\.csv"$/,
    );
    expect(answer.bytes.toString()).toBe(
      [
        'dispute_id,claim_id,provider,model,period_start,period_end,kind,status,amount_usd,amount_cents,confidence_tier,reason,resolution,notes,opened_at,resolved_at',
        `${one.id},,openai,a,2026-03-10,2026-03-10,cache_read_rate_mismatch,resolved,1.234567890123,123,HIGH,"'=HYPERLINK(""x"") The bill is $1.23 too much on 2026-03-10.",'+other,"'-1\nand more",${one.opened_at},${one.resolved_at}`,
        `${other.id},${claim.id},openai,"b, ""c""",2026-03-11,2026-03-11,cache_read_rate_mismatch,open,5,500,LOW,${other.reason},,,${other.opened_at},`,
        '',
      ].join('\r\n'),
    );
    expect(
      rowsOf((await send(api, { path: `${EXPORT}?status=resolved`, key: org.adminKey })).bytes),
    ).toHaveLength(3);
    expect(
      rowsOf((await send(api, { path: `${EXPORT}?status=claimed`, key: org.adminKey })).bytes),
    ).toHaveLength(2);
    const wrong = await send(api, { path: `${EXPORT}?status=done`, key: org.adminKey });
    expect(codeOf(wrong)).toEqual([400, 'invalid_parameter']);
  });

  it('of more than a page has each once', async () => {
    const { org, id } = await financialOf(() => api).orgWith({});
    const [first] = [(await financialOf(() => api).confirm(org, id)).body];
    await org.orgDb.run(
      `insert into disputes (org_id, id, finding_id, provider, provider_account_id, model, kind, period_start, period_end, amount_cents,
         provider_cost_usd, our_cost_usd, confidence_tier, reason, evidence, opened_at, opened_by)
       select org_id, gen_random_uuid(), finding_id, provider, provider_account_id, model, kind, period_start, period_end, amount_cents,
         provider_cost_usd, our_cost_usd, confidence_tier, reason, evidence, opened_at + (n / 7) * interval '1 second', opened_by
       from disputes, generate_series(1, 1100) n where org_id = $1`,
      [org.orgId],
    );
    const { bytes } = await send(api, { path: EXPORT, key: org.adminKey });
    const [, ...rows] = rowsOf(bytes).filter((row) => row !== '');
    const ids = rows.map((row) => row.split(',')[0]);
    expect([ids.length, new Set(ids).size]).toEqual([1_101, 1_101]);
    expect(ids).toContain(first.id);
    const opened = rows.map((row) => row.split(',').at(-2) ?? '');
    expect(opened).toEqual([...opened].sort());
  });

  it('of an organization without disputes is its header', async () => {
    const org = await api.addOrganization();
    const { bytes } = await send(api, { path: EXPORT, key: org.adminKey });
    expect(rowsOf(bytes)).toHaveLength(2);
  });
});
