import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { type RuntimeState, readRunningState } from '../../platform/runtimeFile.js';
import { removeCluster } from './postgres.js';
import { makeTestFolder } from './testFolder.js';

export const START_LIMIT_MS = 300_000;

/** A data directory, and the settings of a start on it. */
export interface Place {
  dataDir: string;
  environment: Record<string, string>;
}

export async function makePlace(more: Record<string, string> = {}): Promise<Place> {
  const dataDir = makeTestFolder('start');
  const port = await findFreePort();
  const common = {
    DATA_DIR: dataDir,
    PORT: String(port),
    // Independent of the machine's cores.
    API_PROCESSES: '1',
    TEMPORAL_CLI_PATH: inject('temporalProgram'),
  };
  return { dataDir, environment: { ...common, ...more } };
}

export function removePlace({ dataDir }: Place): void {
  const location = join(dataDir, 'pg-location');
  removeCluster(dataDir, existsSync(location) ? readFileSync(location, 'utf8').trim() : join(dataDir, 'pg'));
}

/** The parts of the service that runs on this data directory. */
export function parts(place: Place): RuntimeState['parts'] {
  const state = readRunningState(place.dataDir);
  if (!state) throw new Error('nothing runs on this data directory');
  return state.parts;
}

/** The processes of the service: its supervisor, and each part that the supervisor started. */
export function pidsOf(place: Place): number[] {
  const state = readRunningState(place.dataDir);
  return state ? [state.pid, ...Object.values(state.parts).flatMap(({ pid }) => pid ?? [])] : [];
}

/** Repeats a question until its answer is true. */
export async function eventually(work: () => Promise<boolean>, limitMs = 180_000): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await work().catch(() => false))) {
    if (performance.now() > deadline) throw new Error('not in time');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits for the slowest part; a service reports its readiness before that. */
export const untilWhole = (place: Place) =>
  eventually(async () => Object.values(parts(place)).every(({ status }) => status === 'up'));
