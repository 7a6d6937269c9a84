import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordDemoEnd, recordDemoStage } from '../../../db/installation/demoRuns.js';
import { findUuid } from '../../../domain/ids.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { makeDemo } from '../support/operations/demo.js';

const DEMO = '/api/v1/demo';
const started: { orgId: string; id: string }[] = [];
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi({
    demo: { load: (run) => void started.push(run), remove: async () => undefined },
  });
});
afterAll(() => api?.close());

const read = async (statusUrl: string) => (await api.get(statusUrl)).body;

describe('a load of the demo', () => {
  it('is started once, shows how far it is, and ends with a link into the demo that signs in once', async () => {
    const { status, body: run } = await api.post(DEMO, {});
    expect([status, run.status, run.result]).toEqual([202, 'queued', null]);
    const id = findUuid('run', run.run_id) ?? '';
    await expect.poll(() => started).toEqual([{ orgId: api.orgId, id }]);
    expect((await api.post(DEMO, {})).body.run_id).toBe(run.run_id);
    expect(started).toHaveLength(1);
    expect((await api.get(DEMO)).body).toEqual({ organization: null, run });
    await recordDemoStage(api.orgDb, id, '44,654 calls');
    expect(await read(run.status_url)).toMatchObject({ status: 'running', stage: '44,654 calls' });
    await makeDemo({ api });
    await recordDemoEnd(api.orgDb, id, null);
    const { result } = await read(run.status_url);
    expect((await api.get(DEMO)).body).toMatchObject({
      organization: result.organization,
      run: { status: 'succeeded', result: null },
    });
    expect(result.organization.name).toBe('Demo Labs');
    const token = /^http:\/\/trueup\.test\/#\/welcome\/(\w{43})$/.exec(result.sign_in_link)?.[1];
    const signIn = await fetch(`${api.baseUrl}/api/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    const cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    const session = await fetch(`${api.baseUrl}/api/v1/session`, { headers: { cookie } });
    expect(await session.json()).toMatchObject({ role: 'admin', organization: result.organization });
  });

  it('that failed shows why, and so does one whose program has died', async () => {
    const failed = (await api.post(DEMO, {})).body;
    await recordDemoEnd(
      api.orgDb,
      findUuid('run', failed.run_id) ?? '',
      'The workflow engine does not serve.',
    );
    expect(await read(failed.status_url)).toMatchObject({
      status: 'failed',
      error: { message: 'The workflow engine does not serve.' },
    });
    const lost = (await api.post(DEMO, {})).body;
    await api.database.superuser.query(
      `update demo_runs set alive_at = now() - interval '61 seconds' where finished_at is null`,
    );
    expect(await read(lost.status_url)).toMatchObject({ status: 'failed' });
    expect((await api.post(DEMO, {})).body.run_id).not.toBe(lost.run_id);
  });
});
