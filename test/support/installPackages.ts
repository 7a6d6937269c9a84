import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Installs packages into a new folder of the system's temporary directory.
 * @param dependencies versions by name
 */
export function installPackages(dependencies: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'trueup-packages-'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
  const words = [
    'install',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--ignore-scripts',
    '--prefer-offline',
  ];
  const done = spawnSync('npm', words, { cwd: folder, encoding: 'utf8', timeout: 280_000 });
  if (done.status !== 0)
    throw new Error(
      `npm install failed. This test needs a package registry: set npm's \`registry\`, or fill npm's cache with ${Object.entries(
        dependencies,
      )
        .map(([name, version]) => `${name}@${version}`)
        .join(' ')}.\n${done.stderr}`,
    );
  return folder;
}
