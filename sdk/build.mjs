/** Builds the packages that an installation serves at /sdk/. `node sdk/build.mjs <folder>`, by default dist-sdk. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeWheel } from './wheel/writeWheel.mjs';

const SDK = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(SDK);
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const target = resolve(process.argv[2] ?? join(ROOT, 'dist-sdk'));

function run(command, args) {
  const done = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

/** The JavaScript package as npm publishes it: ES modules, CommonJS and types. */
function buildJavaScript(folder) {
  const compile = (name, args) =>
    run(process.execPath, [TSC, '-p', join(SDK, 'js'), '--outDir', join(folder, 'dist', name), ...args]);
  compile('esm', []);
  compile('cjs', ['--module', 'commonjs', '--moduleResolution', 'bundler']);
  // The same sources are ES modules in one folder and CommonJS in the other.
  writeFileSync(join(folder, 'dist/cjs/package.json'), '{"type":"commonjs"}\n');
  for (const name of ['package.json', 'README.md']) cpSync(join(SDK, 'js', name), join(folder, name));
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
}

mkdirSync(target, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'trueup-sdk-'));
try {
  buildJavaScript(folder);
  const npm = process.env.npm_execpath;
  const [command, words] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  run(command, [...words, 'pack', folder, '--pack-destination', target, '--silent', '--loglevel=error']);
} finally {
  rmSync(folder, { recursive: true });
}
writeWheel(join(SDK, 'python'), join(ROOT, 'LICENSE'), target);
