import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunEnd } from '../../db/runs/runTable.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { endRun } from '../../usecases/runs/endRun.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { runGaps } from '../support/bills.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import { anEndpoint } from '../support/webhooks.js';

const RUN = '/api/v1/reconciliation/gap-explorer/run?period=7d&provider=openai';
let api: TestApi;
let engine: TestEngine;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
});
afterAll(async () => {
  await engine?.close();
  await api?.close();
});

/** An organization that wants to know of the end of gap runs, with one that waits. */
async function aWaitingRun() {
  const org = await api.addOrganization();
  await anEndpoint(org, 'https://hooks.example.com/');
  const { body } = await api.post(RUN, {}, org.adminKey);
  return { org, publicRunId: body.run_id as string, runId: findUuid('run', body.run_id) as string, body };
}

const told = async (orgId: string) => {
  const { rows } = await api.database.superuser.query(
    `select m.id, m.type, m.body, (select count(*)::int from webhook_deliveries d where d.message_id = m.id) as deliveries
     from webhook_messages m where m.org_id = $1`,
    [orgId],
  );
  return rows.map(({ body, ...rest }) => ({ ...rest, body: JSON.parse(body) }));
};

describe('the message for the end of a gap run', () => {
  it.each<[RunEnd['status'], { total: number; flagged: number } | undefined]>([
    ['succeeded', { total: 12, flagged: 3 }],
    ['partial', { total: 7, flagged: 0 }],
    ['failed', undefined],
    ['cancelled', undefined],
  ])(
    'is sent once when the run is %s: ids and totals, nothing from a bill or a call',
    async (status, result) => {
      const { org, runId, publicRunId } = await aWaitingRun();
      expect(await told(org.orgId)).toEqual([]);
      const end = { status, ...(result ? { result: { ...result, rate_mismatches: ['secret'] } } : {}) };
      expect(await endRun(org.orgDb, 'gap_run', runId, end)).toBe(true);
      expect(await endRun(org.orgDb, 'gap_run', runId, { status: 'failed' })).toBe(false);
      const [message, ...more] = await told(org.orgId);
      expect(more).toEqual([]);
      expect(message).toMatchObject({ id: runId, type: 'gap_run.completed', deliveries: 1 });
      expect(message?.body).toEqual({
        type: 'gap_run.completed',
        timestamp: expect.stringMatching(/Z$/),
        data: {
          run_id: publicRunId,
          status,
          period: '7d',
          provider: 'openai',
          total: result?.total ?? null,
          flagged: result?.flagged ?? null,
          finished_at: message?.body.timestamp,
        },
      });
    },
  );

  it('is not sent when the transaction is rolled back', async () => {
    const { org, runId } = await aWaitingRun();
    const undone = org.orgDb.transaction(async (inside) => {
      await endRun(inside, 'gap_run', runId, { status: 'failed' });
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect(await told(org.orgId)).toEqual([]);
  });

  it('is sent for a run that is cancelled before it began, and for one that ran', async () => {
    const { org, publicRunId, body } = await aWaitingRun();
    expect((await api.post(`${body.status_url}/cancel`, {}, org.adminKey)).body.status).toBe('cancelled');
    const worker = await engine.startWorker();
    const done = await runGaps(api, '?period=30d', undefined, org.adminKey);
    await worker.stop();
    const messages = await until(
      'both messages',
      () => told(org.orgId),
      (found) => found.length === 2,
    );
    const seen = messages.map(({ body: { data } }) => [data.run_id, data.status, data.total]);
    expect(new Set(seen.map(String))).toEqual(
      new Set(
        [
          [publicRunId, 'cancelled', null],
          [done.run_id, 'succeeded', 0],
        ].map(String),
      ),
    );
    expect(done.run_id).toBe(publicId('run', findUuid('run', done.run_id) ?? ''));
  });
});
