import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { runProgram } from './pythonVenv.js';

const FOLDER = join(PROJECT_ROOT, 'dist-sdk');

/** When a file of sdk/ was last written, milliseconds since 1970. */
function sourcesWrittenAt(): number {
  const sources = join(PROJECT_ROOT, 'sdk');
  const names = readdirSync(sources, { recursive: true, encoding: 'utf8' });
  return Math.max(...names.map((name) => statSync(join(sources, name)).mtimeMs));
}

/** Builds the packages that the service serves where one is missing or older than its sources. */
export function ensureSdkBuilt(): void {
  const writtenAt = sourcesWrittenAt();
  const names = existsSync(FOLDER) ? readdirSync(FOLDER) : [];
  const fresh = names.filter((name) => statSync(join(FOLDER, name)).mtimeMs >= writtenAt);
  if (['.tgz', '.whl'].every((end) => fresh.some((name) => name.endsWith(end)))) return;
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
