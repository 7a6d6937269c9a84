import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { WorkerProcessSettings } from './workerProcess.js';

/** Starts a worker as a separate process and waits until it polls. The caller kills it by its handle. */
export async function spawnWorker(settings: WorkerProcessSettings): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--import', 'tsx', join(import.meta.dirname, 'workerProcess.ts')], {
    env: { ...process.env, TEST_WORKER: JSON.stringify(settings) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the worker ended with ${code} before it was ready`)));
    child.stdout?.on('data', (data: Buffer) => data.toString().includes('ready') && resolve());
  });
  child.removeAllListeners('exit');
  return child;
}

/** kill -9, and its end. */
export async function killHard(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}
