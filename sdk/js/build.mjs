/** Builds the package: ES modules, CommonJS and types. `node sdk/js/build.mjs [folder]`, by default dist. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(dirname(HERE));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const target = resolve(process.argv[2] ?? join(HERE, 'dist'));

function compile(folder, args) {
  const done = spawnSync(process.execPath, [TSC, '-p', HERE, '--outDir', join(target, folder), ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
compile('esm', []);
compile('cjs', ['--module', 'commonjs', '--moduleResolution', 'bundler']);
// The same sources are ES modules in one folder and CommonJS in the other.
writeFileSync(join(target, 'cjs/package.json'), '{"type":"commonjs"}\n');
cpSync(join(ROOT, 'LICENSE'), join(HERE, 'LICENSE'));
