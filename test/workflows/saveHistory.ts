import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { until } from '../support/engine.js';

const FOLDER = join(import.meta.dirname, 'histories');

/** Removes the name of the recording machine, which is no part of a replay. */
const anonymous = (key: string, value: unknown) => {
  if (key === 'identity') return 'recorder';
  if (key === 'stackTrace') return '';
  return typeof value === 'string' ? value.replaceAll(hostname(), 'recorder') : value;
};

/** Waits for the end of a workflow, or of one run of it, and writes its history down; one that is there is never replaced. */
export async function saveHistory(
  client: Client,
  workflowId: string,
  name: string,
  runId?: string,
): Promise<void> {
  const handle = client.workflow.getHandle(workflowId, runId);
  await until(
    `the end of ${workflowId}`,
    () => handle.describe(),
    ({ status }) => status.name !== 'RUNNING',
  );
  const history = await handle.fetchHistory();
  try {
    writeFileSync(
      join(FOLDER, `${name}.json`),
      `${JSON.stringify(JSON.parse(historyToJSON(history), anonymous), null, 1)}\n`,
      { flag: 'wx' },
    );
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error;
  }
}
