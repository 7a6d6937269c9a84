import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { runProgram } from './pythonVenv.js';

const FOLDER = join(PROJECT_ROOT, 'dist-sdk');

/** Builds the packages that the service serves where one is missing. `npm test` has built them before. */
export function ensureSdkBuilt(): void {
  const names = existsSync(FOLDER) ? readdirSync(FOLDER) : [];
  if (['.tgz', '.whl'].every((end) => names.some((name) => name.endsWith(end)))) return;
  mkdirSync(FOLDER, { recursive: true });
  // Another process may build them too: each file appears whole.
  const draft = mkdtempSync(join(PROJECT_ROOT, 'dist-sdk.new-'));
  try {
    const { status, text } = runProgram(process.execPath, [join(PROJECT_ROOT, 'sdk/build.mjs'), draft]);
    if (status !== 0) throw new Error(`sdk/build.mjs: ${text}`);
    for (const name of readdirSync(draft)) renameSync(join(draft, name), join(FOLDER, name));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
