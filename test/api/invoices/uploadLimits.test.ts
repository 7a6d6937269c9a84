import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uploadInvoice } from '../../support/invoices.js';
import { type LimitedApi, policiesOf, startLimitedApi } from '../support/limits.js';

/** Refuses more than three that wait. */
let api: LimitedApi;
/** Another instance on the same database. */
let other: LimitedApi;
/** Refuses more than four in an hour. */
let hourly: LimitedApi;
beforeAll(async () => {
  api = await startLimitedApi({ openInvoicesMax: 3 });
  other = await startLimitedApi({ openInvoicesMax: 3 }, { database: api.database });
  hourly = await startLimitedApi(
    { invoices: { quota: 4, windowSeconds: 3_600, burst: 4 } },
    { database: api.database },
  );
});
afterAll(async () => {
  await hourly?.close();
  await other?.close();
  await api?.close();
});

const pdf = (text: string) => Buffer.from(`%PDF-1.7\n% ${text}\n`);
const endRuns = (orgId: string) =>
  api.database.superuser.query(
    `update invoice_runs set status = 'failed', started_at = coalesce(started_at, now()), finished_at = now(),
       error_code = 'invalid_pdf', error_message = 'x' where org_id = $1`,
    [orgId],
  );

async function countInvoices(key: string): Promise<number> {
  return (await api.get('/api/v1/reconciliation/invoices', key)).body.count;
}

describe('invoices of an organization', () => {
  it('that wait are at most as many as the limit, over all instances and for uploads at once', async () => {
    const { adminKey: key, orgId } = await api.addOrganization();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        uploadInvoice(at % 2 === 0 ? api : other, pdf(`waiting ${at}`), { key }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 202, 202, 429, 429, 429, 429, 429]);
    const { body, headers } = answers.find(({ status }) => status === 429) as (typeof answers)[number];
    expect(body).toMatchObject({ code: 'rate_limited', 'violated-policies': ['open-invoices'] });
    expect(body.detail).toMatch(/as many .* open as it may \(3\)/);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await countInvoices(key)).toBe(3);
    // The same file again begins nothing, so the limit does not refuse it.
    const taken = answers.findIndex(({ status }) => status === 202);
    const again = await uploadInvoice(api, pdf(`waiting ${taken}`), { key });
    expect([again.status, again.body.duplicate]).toEqual([200, true]);
    await endRuns(orgId);
    expect((await uploadInvoice(api, pdf('later'), { key })).status).toBe(202);
  });

  it('are counted by the hour, uploads and retries together; files that are there are not counted', async () => {
    const { adminKey: key, orgId } = await api.addOrganization();
    const upload = async (text: string) => {
      const answer = await uploadInvoice(hourly, pdf(text), { key });
      await endRuns(orgId);
      return answer;
    };
    const first = await upload('one');
    expect([first.status, (await upload('two')).status]).toEqual([202, 202]);
    expect((await upload('one')).status).toBe(200);
    const retry = () => hourly.post(`${first.body.status_url}/retry`, {}, key);
    expect((await retry()).status).toBe(202);
    await endRuns(orgId);
    expect((await upload('three')).status).toBe(202);
    const refused = await upload('four');
    expect([refused.status, refused.body['violated-policies']]).toEqual([429, ['invoices']]);
    expect(policiesOf(refused).get('invoices')).toMatchObject({
      quota: 4,
      windowSeconds: 3_600,
      remaining: 0,
    });
    expect((await retry()).status).toBe(429);
    expect(await countInvoices(key)).toBe(3);
    const foreign = await api.addOrganization();
    expect((await uploadInvoice(hourly, pdf('one'), { key: foreign.adminKey })).status).toBe(202);
    await hourly.forward(Number(refused.headers.get('retry-after')));
    expect((await upload('four')).status).toBe(202);
  });
});
