import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { processEnvironment } from '../config.js';
import { PROJECT_ROOT } from '../projectRoot.js';
import { ServerProcess } from './serverProcess.js';
import { TEMPORAL_CLI_VERSION } from './temporalRelease.js';

/** What tools/temporal/go.mod asks for; a Go from 1.21 on fetches it, unless told to stay with its own. */
const GO_NEEDED = [1, 25] as const;
const GO_FETCHING = [1, 21] as const;

/** Below the service itself, which is open while the compiler takes every core. */
const BUILD_PRIORITY = 10;

const PACKAGE = 'github.com/temporalio/cli/cmd/temporal';

/** The Go toolchain on PATH that can build the server; undefined when there is none. */
export function findGo(): { version: string; fetchesToolchain: boolean } | undefined {
  const run = spawnSync('go', ['env', 'GOVERSION'], {
    encoding: 'utf8',
    env: { ...processEnvironment(), GOTOOLCHAIN: 'local' },
  });
  const match = /^go(\d+)\.(\d+)/.exec(run.stdout ?? '');
  if (!match) return undefined;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  const isAtLeast = ([wantedMajor, wantedMinor]: readonly [number, number]) =>
    major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  if (!isAtLeast(GO_FETCHING)) return undefined;
  return { version: `${major}.${minor}`, fetchesToolchain: !isAtLeast(GO_NEEDED) };
}

/**
 * Builds the pinned server from source through the Go module proxy, every module checked against
 * tools/temporal/go.sum. Its caches (6 GB) are its own, beside the target, and removed afterwards; those of a build
 * that was interrupted are used again. The caller holds the machine's lock for this.
 * @throws Error with the compiler's last words.
 */
export async function buildTemporal(target: string, signal?: AbortSignal): Promise<void> {
  const go = findGo();
  if (!go) throw new Error('there is no Go 1.21 or newer on PATH');
  const work = `${dirname(target)}.build`;
  const draft = join(work, 'temporal');
  mkdirSync(work, { recursive: true });
  const compiler = new ServerProcess({
    program: 'go',
    args: [
      ...['-C', join(PROJECT_ROOT, 'tools/temporal'), 'build', '-trimpath', '-buildvcs=false'],
      ...['-ldflags', `-s -w -X github.com/temporalio/cli/temporalcli.Version=${TEMPORAL_CLI_VERSION}`],
      ...['-o', draft, PACKAGE],
    ],
    deathSignal: 'TERM',
    logFile: join(work, 'build.log'),
    environment: processEnvironment({
      CGO_ENABLED: '0',
      GOWORK: 'off',
      GOFLAGS: '-modcacherw',
      GOMODCACHE: join(work, 'mod'),
      GOCACHE: join(work, 'cache'),
      GOTOOLCHAIN: go.fetchesToolchain ? 'auto' : 'local',
    }),
  });
  lowerPriority(compiler.pid);
  const interrupt = () => void compiler.stopGroup();
  signal?.addEventListener('abort', interrupt, { once: true });
  const end = await compiler.exited;
  signal?.removeEventListener('abort', interrupt);
  if (signal?.aborted) throw new Error('interrupted');
  if (end === 'exit code 0') {
    mkdirSync(dirname(target), { recursive: true });
    renameSync(draft, target);
  }
  const output = compiler.output().trim().split('\n').slice(-3).join(' / ');
  await rm(work, { recursive: true, force: true });
  if (end !== 'exit code 0') throw new Error(`go build failed (${end}): ${output}`);
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, BUILD_PRIORITY);
  } catch {
    // It has ended already, or the system does not allow it: the build is only less polite then.
  }
}
