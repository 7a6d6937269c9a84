import { ApplicationFailure } from '@temporalio/common';
import { expect, it } from 'vitest';
import { findUuid } from '../../domain/ids.js';
import { runWorkflowId } from '../../domain/runs/runKinds.js';
import { reportScheduleId } from '../../workflows/contract.js';
import { sendJson } from '../api/support/requests.js';
import { pollToEnd } from '../support/bills.js';
import { until } from '../support/engine.js';
import { REPORTS_PATH } from '../support/reports.js';
import { startRecording } from './recording.js';
import { saveHistory } from './saveHistory.js';

/** The histories of reports that test/workflows/replay.test.ts replays: `npm run workflows:record`. */
it('records one history of each way that a report can go', { timeout: 300_000 }, async () => {
  const { api, engine, client, close } = await startRecording();
  const ask = async () => {
    const response = await fetch(`${api.baseUrl}${REPORTS_PATH}/management`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${api.adminKey}`,
        'content-type': 'application/json',
        prefer: 'respond-async',
      },
      body: JSON.stringify({ from: '2026-03-01', to: '2026-03-31' }),
    });
    const body = (await response.json()) as { run_id: string; status_url: string };
    engine.dispatcher.kick();
    const { status } = await pollToEnd(api, body.status_url);
    const id = findUuid('run', body.run_id) ?? '';
    return { status, workflowId: runWorkflowId('report', { orgId: api.orgId, id }) };
  };

  const plain = await engine.startWorker();
  const made = await ask();
  expect(made.status).toBe('succeeded');
  await saveHistory(client, made.workflowId, 'management-report-succeeded');
  await sendJson(api, { method: 'PUT', path: `${REPORTS_PATH}/schedules/weekly`, json: {} });
  engine.dispatcher.kick();
  const schedule = client.schedule.getHandle(reportScheduleId({ orgId: api.orgId, cadence: 'weekly' }));
  await until(
    'the schedule',
    () => schedule.describe().catch(() => undefined),
    (found) => found !== undefined,
  );
  await schedule.trigger();
  const { info } = await until(
    'the scheduled workflow',
    () => schedule.describe(),
    (found) => found.info.recentActions.length > 0,
  );
  await saveHistory(client, info.recentActions[0]?.action.workflow.workflowId ?? '', 'scheduled-report');
  await plain.stop();

  const failing = await engine.startWorker(() => ({
    generateReport: async () => {
      throw ApplicationFailure.nonRetryable('the document cannot be set', 'document_failed');
    },
  }));
  const failed = await ask();
  expect(failed.status).toBe('failed');
  await saveHistory(client, failed.workflowId, 'management-report-failed');
  await failing.stop();
  await close();
});
