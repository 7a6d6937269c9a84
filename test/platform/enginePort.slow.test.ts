import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { readRunningState } from '../../platform/runtimeFile.js';
import { startTrueup } from '../support/childProgram.js';
import { makePausedTemporal } from '../support/pausedTemporal.js';
import { removeCluster } from '../support/postgres.js';
import { makeTestFolder } from '../support/testFolder.js';

const START_LIMIT_MS = 50_000;

it('a service whose workflow engine comes up on another port than was foretold has a worker that finds it', async () => {
  const dataDir = makeTestFolder('engine-port');
  const paused = makePausedTemporal(dataDir, inject('temporalProgram'));
  const service = startTrueup(['start'], {
    DATA_DIR: dataDir,
    PORT: String(await findFreePort()),
    TEMPORAL_CLI_PATH: paused.program,
  });
  try {
    const ended = service.ended().then(() => Promise.reject(new Error(service.output())));
    const { port, holder } = await Promise.race([paused.takePort(), ended]);
    ended.catch(() => undefined);
    try {
      await service.sees(/— ready in/, START_LIMIT_MS);
      const parts = () => readRunningState(dataDir)?.parts;
      await expect.poll(() => parts()?.worker.status).toBe('up');
      expect(parts()?.temporal).toMatchObject({ status: 'up' });
      expect(parts()?.temporal.address).not.toBe(`127.0.0.1:${port}`);
    } finally {
      holder.close();
    }
  } finally {
    service.child.kill('SIGTERM');
    await service.ended();
    const location = join(dataDir, 'pg-location');
    const cluster = existsSync(location) ? readFileSync(location, 'utf8').trim() : join(dataDir, 'pg');
    removeCluster(dataDir, cluster);
  }
});
