import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

/** Calls a server that is not there. While a process keeps an asynchronous context, each of its promises has an id. */
const PROGRAM = `
import { executionAsyncId } from 'node:async_hooks';
import { TemporalOrchestrator } from './adapters/orchestrator.ts';

async function keepsContext() {
  await null;
  const id = executionAsyncId();
  await null;
  return executionAsyncId() !== id;
}

const engine = new TemporalOrchestrator({ address: '127.0.0.1:1', namespace: 'default', nowMs: () => performance.now() });
const seen = [await keepsContext()];
const asked = [engine.status(), engine.describe('nothing').catch((error) => error.code)];
seen.push(...(await Promise.all(asked)), await keepsContext());
await engine.close();
console.log(JSON.stringify(seen));
`;

it('a process keeps no asynchronous context once its calls to Temporal are over: it would slow every promise down', () => {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', PROGRAM],
    { cwd: PROJECT_ROOT, encoding: 'utf8' },
  );
  expect(stdout.trim(), stderr).toBe(
    JSON.stringify([false, 'degraded', 'workflow_engine_unavailable', false]),
  );
});
