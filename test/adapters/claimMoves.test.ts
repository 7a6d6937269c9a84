import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { TemporalOrchestrator } from '../../adapters/orchestrator.js';
import { aCommand } from '../support/claims.js';
import { TEST_NAMESPACE } from '../support/temporal.js';

it('an engine that was silent three times is left alone for five seconds, by moves of claims and by all else', async () => {
  let nowMs = 0;
  const orchestrator = new TemporalOrchestrator({
    address: '127.0.0.1:1',
    namespace: TEST_NAMESPACE,
    taskQueue: 'nobody',
    nowMs: () => nowMs,
  });
  const [orgId, claimId] = [randomUUID(), randomUUID()];
  const move = async () => {
    const command = aCommand({ id: claimId, version: 1 }, 'submitted_to_provider');
    return (await orchestrator.moveClaim({ orgId, claimId }, command)).kind;
  };
  const wake = () => orchestrator.wakeClaim({ orgId, claimId });
  const away = { code: 'workflow_engine_unavailable', retryAfterSeconds: 5 };
  expect([await move(), await move()]).toEqual(['unknown', 'unknown']);
  await expect(wake()).rejects.toMatchObject(away);
  expect(await move()).toBe('unsent');
  // Nothing was tried: there is nothing that it failed of.
  expect(await wake().catch((error: Error) => 'cause' in error)).toBe(false);
  nowMs += 5_000;
  expect(await move()).toBe('unknown');
  await orchestrator.close();
});
