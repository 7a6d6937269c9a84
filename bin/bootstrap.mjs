/**
 * What ./trueup and the npm scripts go through: plain JavaScript without a dependency, so that it runs on a clone that
 * has nothing yet. Installs and builds when needed, then becomes the program that was asked for (same process, so
 * signals and exit codes are its own).
 *
 *   node bin/bootstrap.mjs trueup [args]    the command line, dist/bin/trueup.js
 *   node bin/bootstrap.mjs api|worker       one process of the service
 *   node bin/bootstrap.mjs test [args]      the test suite
 *   node bin/bootstrap.mjs lab/<path>       dist/lab/<path>.js
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCES = [
  'bin',
  'api',
  'workflows',
  'activities',
  'dispatch',
  'domain',
  'db',
  'usecases',
  'lab',
  'adapters',
  'platform',
];
const BUILD_FILES = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json', 'data/prices.json'];
/**
 * Commands that inspect a running service: they build only if no build exists, so that they do not change its files.
 */
const ONLOOKERS = new Set(['status', 'doctor', 'mcp']);

/** Milliseconds between two checks whether the npm that started the program still runs. */
const NPM_WATCH_MS = 500;
/** npm's end is attributed to a closed terminal if the terminal's signal came at most this many milliseconds before. */
const HANG_UP_MS = 5_000;

/** Node 20.19 and 22.12 are the first versions that our dependencies support. */
function refuseOldNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if ((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22) return;
  fail(
    `Trueup needs Node.js 20.19, 22.12 or newer, and this is ${process.versions.node}: install a newer one from nodejs.org.`,
  );
}

function fail(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}

/** Runs a slow step and prints its duration. */
async function step(name, work) {
  const started = performance.now();
  const { isTTY } = process.stderr;
  if (isTTY) process.stderr.write(`  … ${name}`);
  try {
    await work();
  } catch (error) {
    if (!error.syscall) throw error;
    fail(
      `${ROOT} cannot be written (${error.code}): start as the user that it belongs to, or make room on its disk.`,
    );
  }
  const ms = Math.round(performance.now() - started);
  if (isTTY) process.stderr.write(`\r  ✓ ${name.padEnd(22)} ${(ms / 1000).toFixed(1)} s\n`);
  else process.stderr.write(`${JSON.stringify({ level: 'info', name: 'bootstrap', step: name, ms })}\n`);
}

/** Runs a program and forwards the signals that end us; its output is printed only when it fails. */
function run(command, args, whenItFails) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
    const stop = (signal) => {
      child.kill(signal);
      child.once('exit', () => process.exit(signal === 'SIGINT' ? 130 : 143));
    };
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop);
    child.once('error', (error) => fail(`${whenItFails} (${error.message})`));
    child.once('close', (code) => {
      for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, stop);
      if (code === 0) return resolve();
      process.stderr.write(output);
      fail(whenItFails);
    });
  });
}

/**
 * Whether node_modules matches the lockfile. npm stores a copy of the lockfile there as its last step, so an
 * interrupted installation is noticed too. Packages for other platforms are not expected.
 */
function isInstalled() {
  const installed = readPackages('node_modules/.package-lock.json');
  const wanted = readPackages('package-lock.json');
  if (!installed || !wanted) return false;
  return Object.entries(wanted).every(
    ([path, { version, optional, link, devOptional }]) =>
      path === '' || link || optional || devOptional || installed[path]?.version === version,
  );
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(join(ROOT, file), 'utf8')).packages;
  } catch {
    return undefined;
  }
}

function installPackages() {
  const npm = process.env.npm_execpath;
  const [command, args] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  return run(
    command,
    [...args, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
    'npm ci failed: see above for the reason; it needs a package registry within reach.',
  );
}

/** The dashboard's sources, and the file of packages that it is built with. */
const WEB = { folders: ['web'], files: ['package-lock.json'] };
/** The packages for applications. */
const SDK = { folders: ['sdk'], files: ['package-lock.json', 'LICENSE'] };
const SERVICE = { folders: SOURCES, files: BUILD_FILES };

/** One hash of everything that a build reads. */
function hashSources({ folders, files }) {
  const hash = createHash('sha256');
  const add = (path) => {
    hash.update(`${path}\0`);
    hash.update(readFileSync(join(ROOT, path)));
  };
  for (const file of files) if (existsSync(join(ROOT, file))) add(file);
  const walk = (folder) => {
    for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else add(path);
    }
  };
  for (const folder of folders) if (existsSync(join(ROOT, folder))) walk(folder);
  return hash.digest('hex');
}

function builtFrom(folder) {
  try {
    return readFileSync(join(ROOT, folder, '.built-from'), 'utf8');
  } catch {
    return undefined;
  }
}

/** Deletes drafts of killed builds. */
function removeAbandonedDrafts() {
  for (const entry of readdirSync(ROOT)) {
    const pid = Number(/^dist(?:-web|-sdk)?\.(?:new|old)-(\d+)$/.exec(entry)?.[1]);
    if (pid && !isAlive(pid)) rmSync(join(ROOT, entry), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Builds beside the folder and swaps: a failed or interrupted build leaves the old one intact. */
async function build(folder, hash, make) {
  removeAbandonedDrafts();
  const draft = `${folder}.new-${process.pid}`;
  mkdirSync(join(ROOT, draft));
  try {
    await make(draft);
    writeFileSync(join(ROOT, draft, '.built-from'), hash);
    replaceFolder(folder, draft);
  } finally {
    rmSync(join(ROOT, draft), { recursive: true, force: true });
  }
}

async function makeService(draft) {
  await run(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--outDir', draft],
    'The sources do not compile: see above.',
  );
  await run(
    process.execPath,
    [join(ROOT, draft, 'bin/build.js')],
    'The workflows cannot be bundled: see above.',
  );
}

function makeWeb(draft) {
  return run(
    process.execPath,
    [join(ROOT, 'node_modules/vite/bin/vite.js'), 'build', 'web', '--outDir', join(ROOT, draft)],
    'The dashboard cannot be built: see above.',
  );
}

function makeSdk(draft) {
  return run(
    process.execPath,
    [join(ROOT, 'sdk/build.mjs'), join(ROOT, draft)],
    'The packages of sdk/ cannot be built: see above.',
  );
}

/** Two builds may end at once: the second moves the first's result aside like any older one. */
function replaceFolder(folder, draft) {
  const old = `${folder}.old-${process.pid}`;
  for (let attempt = 0; ; attempt += 1) {
    try {
      if (existsSync(join(ROOT, folder))) renameSync(join(ROOT, folder), join(ROOT, old));
      renameSync(join(ROOT, draft), join(ROOT, folder));
      break;
    } catch (error) {
      if (attempt === 10) throw error;
    } finally {
      rmSync(join(ROOT, old), { recursive: true, force: true });
    }
  }
}

/** Continues as another program in this process. */
function become(file, args) {
  process.argv = [process.execPath, file, ...args];
  return import(pathToFileURL(file).href);
}

/**
 * npm forwards SIGINT and SIGTERM, but nothing when it is killed or its terminal closes. A program that npm started
 * directly then ends as on SIGTERM. One that a shell, a terminal multiplexer or an init system started is not watched,
 * and npm in the background survives its shell.
 * Under nohup a closed terminal ends npm, since Node undoes nohup's setting. That is no reason to end:
 * platform/processMain.ts ignores the signal there.
 */
function endWithNpm() {
  const npm = process.ppid;
  if (process.env.npm_lifecycle_event === undefined || !/(^|[/ ])npm(-cli\.js)?( |$)/.test(commandLine(npm)))
    return;
  let hangUpAt = Number.NEGATIVE_INFINITY;
  if (![0, 1, 2].some((fd) => isatty(fd))) process.on('SIGHUP', () => (hangUpAt = performance.now()));
  const watch = setInterval(() => {
    if (process.ppid === npm) return;
    clearInterval(watch);
    // A signal that arrived with npm's end may not have been handled yet.
    setTimeout(() => {
      if (performance.now() - hangUpAt > HANG_UP_MS) process.kill(process.pid, 'SIGTERM');
    }, NPM_WATCH_MS).unref();
  }, NPM_WATCH_MS);
  watch.unref();
}

/** The command line of a process, as platform/embedded/processTable.ts reads it. */
function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim() ?? '';
  }
}

endWithNpm();
refuseOldNode();
const [name = 'trueup', ...args] = process.argv.slice(2);
if (!isInstalled()) await step('packages', installPackages);
const target = join(ROOT, 'dist', name.startsWith('lab/') ? `${name}.js` : `bin/${name}.js`);
if (!(name === 'trueup' && ONLOOKERS.has(args[0])) || !existsSync(target)) {
  const hash = hashSources(SERVICE);
  if (builtFrom('dist') !== hash) await step('build', () => build('dist', hash, makeService));
  const webHash = hashSources(WEB);
  if (builtFrom('dist-web') !== webHash) await step('dashboard', () => build('dist-web', webHash, makeWeb));
  const sdkHash = hashSources(SDK);
  if (builtFrom('dist-sdk') !== sdkHash)
    await step('packages for clients', () => build('dist-sdk', sdkHash, makeSdk));
}
if (name === 'test') {
  // Programs that tests start may come from dist/, which was built from these sources.
  process.env.TESTS_OF_DIST = '1';
  await become(join(ROOT, 'node_modules/vitest/vitest.mjs'), ['run', ...args]);
} else if (existsSync(target)) await become(target, args);
else fail(`There is no program "${name}": ./trueup --help lists the commands, package.json the rest.`);
