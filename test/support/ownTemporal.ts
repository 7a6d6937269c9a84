import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { type EmbeddedTemporal, startTemporal } from '../../platform/embedded/temporal.js';
import { TEST_NAMESPACE } from './temporal.js';

/**
 * A separate Temporal server, for tests that kill it. Restarted on the same folder it has the same address and data.
 */
export async function startOwnTemporal(dataDir: string): Promise<EmbeddedTemporal> {
  const program = { program: inject('temporalProgram'), serverVersion: 'test', origin: 'cache' as const };
  return startTemporal({ program, dataDir, namespace: TEST_NAMESPACE });
}

/** Ends the server as a crash does, and waits until it is gone. */
export async function killTemporal(server: EmbeddedTemporal): Promise<void> {
  process.kill(server.pid, 'SIGKILL');
  await server.exited;
}

/**
 * Takes from a server that is gone all that it knew.
 * @returns the files that held it
 */
export function forgetAll(dataDir: string): string[] {
  const files = readdirSync(dataDir, { recursive: true })
    .map(String)
    .filter((name) => /^temporal.*\.db/.test(name))
    .map((name) => join(dataDir, name));
  if (files.length === 0) throw new Error(`a server has kept nothing in ${dataDir}`);
  for (const file of files) rmSync(file);
  return files;
}
