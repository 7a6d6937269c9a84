import { heartbeat } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../support/engine.js';
import { type FetchingPlace, startFetchingPlace } from '../support/fetchingPlace.js';
import { aGate, pollToFinal } from '../support/runAnswers.js';

let place: FetchingPlace;
afterEach(() => place?.close());

describe('a sync', () => {
  it('that changed days ends with the gap run over them, once an older one is over, and its answer stays', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const { api, engine } = place;
    const gate = aGate();
    const older = (await api.post('/api/v1/reconciliation/gap-explorer/run?period=30d&provider=openai', {}))
      .body;
    await engine.startWorker(({ planGapRun }) => ({
      planGapRun: async (ref) => {
        const beat = setInterval(() => heartbeat(), 1_000);
        await gate.pass().finally(() => clearInterval(beat));
        return planGapRun(ref);
      },
    }));
    await gate.reached;
    const { sync } = await place.connect('openai');
    const waiting = await until(
      'the sync that waits',
      () => api.get(sync.status_url),
      ({ body }) => body.progress.stage === 'waiting_for_gap_run',
    );
    expect(waiting.body).toMatchObject({ status: 'running', result: null, finished_at: null });
    expect(waiting.body.progress.percent).toBe(99);
    gate.open();
    expect((await pollToFinal(api, older.status_url)).body.status).toBe('succeeded');
    const final = await pollToFinal(api, sync.status_url);
    expect(final.body).toMatchObject({
      status: 'succeeded',
      result: { gap_run_id: expect.stringMatching(/^run_/) },
    });
    expect(final.body.result.gap_run_id).not.toBe(older.run_id);
    await final.expectUnchanged(async () => {
      await place.workflowEnded(sync);
      const run = `/api/v1/reconciliation/gap-explorer/runs/${final.body.result.gap_run_id}`;
      expect((await pollToFinal(api, run)).body.status).toBe('succeeded');
      await engine.sweeper.sweep();
    });
  });

  it('that changed nothing ends without a gap run', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker();
    const connection = await place.connect('openai');
    await place.ended(connection.sync);
    const again = (await place.api.post(`/api/v1/billing-connections/${connection.id}/sync`, {})).body;
    const final = await pollToFinal(place.api, again.status_url);
    expect(final.body.status).toBe('succeeded');
    expect(final.body.result).toMatchObject({ changed_days: 0, gap_run_id: null });
    await final.expectUnchanged(() => place.workflowEnded(again));
  });

  it('has its bills also when no gap run can be started', { timeout: 300_000 }, async () => {
    place = await startFetchingPlace();
    await place.engine.startWorker(() => ({
      startGapRunOfSync: async () => {
        throw ApplicationFailure.nonRetryable('not now', 'not_found');
      },
    }));
    const { sync } = await place.connect('openai');
    const final = await pollToFinal(place.api, sync.status_url);
    expect(final.body).toMatchObject({ status: 'succeeded', result: { gap_run_id: null } });
    expect(final.body.result.changed_days).toBeGreaterThan(0);
    await final.expectUnchanged(() => place.workflowEnded(sync));
  });

  it('whose connection ends under way ends cancelled, and late work changes nothing of it', {
    timeout: 300_000,
  }, async () => {
    place = await startFetchingPlace();
    const gate = aGate();
    await place.engine.startWorker(({ planBillingSync }) => ({
      planBillingSync: async (ref) => {
        await gate.pass();
        return planBillingSync(ref);
      },
    }));
    const connection = await place.connect('openai');
    await gate.reached;
    const { rows: before } = await place.api.database.superuser.query('select id from sync_runs');
    expect(before).toHaveLength(1);
    expect((await place.endConnection(connection.id)).status).toBeLessThan(300);
    const read = async () => {
      const { rows } = await place.api.database.superuser.query('select to_jsonb(r) as run from sync_runs r');
      return rows[0]?.run;
    };
    const ended = await read();
    expect(ended).toMatchObject({ status: 'cancelled', stage: 'cancelled' });
    gate.open();
    await place.workflowEnded(connection.sync);
    expect(await read()).toEqual(ended);
  });
});
