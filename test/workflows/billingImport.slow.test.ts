import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { pollToEnd, uploadBill } from '../support/bills.js';
import { startTestEngine, type TestEngine, until, writeWorkflowBundle } from '../support/engine.js';
import { pauseWorkers } from '../support/pauseWorkers.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { makeTestFolder } from '../support/testFolder.js';
import { killHard, spawnWorker } from '../support/workerSpawn.js';

const ROWS = 120_000;
const DAYS = 30;
const folder = makeTestFolder('billing-import');
let api: TestApi;
let engine: TestEngine;
let bundlePath: string;

beforeAll(async () => {
  api = await startTestApi();
  engine = await startTestEngine(api.database.database);
  bundlePath = await writeWorkflowBundle(folder);
});

afterAll(async () => {
  await engine?.close();
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

const aBigBill = () => {
  const lines = ['date,model,token_class,quantity,amount_usd,project'];
  for (let row = 0; row < ROWS; row += 1) {
    lines.push(
      `2026-09-${String((row % DAYS) + 1).padStart(2, '0')},gpt-6-sol,input,${row},0.000${(row % 9) + 1},project-${row}`,
    );
  }
  return `${lines.join('\n')}\n`;
};

const stored = async () => {
  const { rows } = await api.database.superuser.query(
    `select count(*)::int as rows, count(distinct project)::int as projects, coalesce(sum(amount_usd), 0)::text as usd from billing_rows where org_id = $1`,
    [api.orgId],
  );
  return rows[0];
};
const counted = async () => {
  const { rows } = await api.database.superuser.query(
    `select count(*)::int as days, coalesce(sum(row_count), 0)::int as rows, coalesce(sum(amount_usd), 0)::text as usd from billing_days where org_id = $1`,
    [api.orgId],
  );
  return rows[0];
};

describe('a bill whose reader is killed', () => {
  it('is read by another worker: every row once, and none counts before all are there', {
    timeout: 300_000,
  }, async () => {
    const { body } = await uploadBill(api, aBigBill(), { provider: 'openai' }, { filename: 'big.csv' });
    for (let round = 1; round <= 2; round += 1) {
      const goOn = await pauseWorkers(api.database.superuser, {
        write: 'insert',
        table: 'billing_rows',
        condition: `(select count(*) from billing_rows) > ${round * 20_000}`,
      });
      const victim = await spawnWorker({
        databaseUrl: api.database.url,
        address: inject('temporalAddress'),
        namespace: TEST_NAMESPACE,
        taskQueue: engine.taskQueue,
        bundlePath,
      });
      await until('rows of a reading', stored, ({ rows }) => rows > round * 3_000 && rows < ROWS);
      await killHard(victim);
      await goOn();
    }
    expect(await counted()).toMatchObject({ days: 0 });
    const worker = await engine.startWorker();
    const done = await pollToEnd(api, body.status_url, 180_000);
    const sum = Array.from({ length: ROWS }, (_, row) => (row % 9) + 1).reduce(
      (total, part) => total + part,
      0,
    );
    const usd = `${Math.floor(sum / 10_000)}.${String(sum % 10_000).padStart(4, '0')}00000000`;
    expect(done).toMatchObject({ status: 'succeeded', rows: ROWS });
    expect(await stored()).toEqual({ rows: ROWS, projects: ROWS, usd });
    expect(await counted()).toEqual({ days: DAYS, rows: ROWS, usd });
    await worker.stop();
  });
});
