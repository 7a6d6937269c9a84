import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { commandLine, isAlive, parentOf, waitUntilGone } from '../../platform/embedded/processTable.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import {
  eventually,
  makePlace,
  type Place,
  parts,
  pidsOf,
  removePlace,
  START_LIMIT_MS,
  untilWhole,
} from '../support/startedService.js';

const GONE_LIMIT_MS = 120_000;
/** Several times as long as the service takes to see that its npm is gone. */
const GOES_ON_MS = 5_000;

/** `npm start` itself, from a shell or a terminal, and what becomes of the service when that goes. */
describe('npm start', () => {
  let place: Place;
  let launcher: ChildProcess;
  let log: string;

  beforeAll(async () => {
    place = await makePlace({ LOG_LEVEL: 'info' });
  });

  // Processes that a test left are stopped by their supervisor.
  afterEach(async () => {
    const [supervisor] = pidsOf(place);
    if (supervisor !== undefined) {
      process.kill(supervisor, 'SIGTERM');
      await waitUntilGone(supervisor, GONE_LIMIT_MS);
    }
    if (launcher.exitCode === null && launcher.signalCode === null) launcher.kill('SIGKILL');
  });
  afterAll(() => removePlace(place));

  /** Runs a command in a separate session; npm's banner and the service's log go to a file. */
  async function launch(command: string, ...args: string[]): Promise<void> {
    log = join(place.dataDir, `start-${Date.now()}.log`);
    const { PATH = '', HOME = '' } = process.env;
    const output = openSync(log, 'a');
    launcher = spawn(command, args, {
      cwd: PROJECT_ROOT,
      env: { PATH, HOME, ...place.environment, LOG: log },
      stdio: ['ignore', output, output],
      detached: true,
    });
    closeSync(output);
    await eventually(async () => readFileSync(log, 'utf8').includes('— ready in'), START_LIMIT_MS);
    await untilWhole(place);
  }

  /** The npm process that started the service, with or without a shell between. */
  function npmPid(): number {
    let [pid] = pidsOf(place);
    while (pid !== undefined && pid > 1) {
      pid = parentOf(pid);
      if (pid !== undefined && /^npm start/.test(commandLine(pid))) return pid;
    }
    throw new Error('no npm started the service');
  }

  /** No process of the service is left, and each had the time to end in order. */
  async function expectOrderlyEnd(end: () => void): Promise<void> {
    const pids = pidsOf(place);
    expect(pids).toHaveLength(5);
    end();
    for (const pid of pids) expect(await waitUntilGone(pid, GONE_LIMIT_MS), `process ${pid}`).toBe(true);
    expect(namesOfStopped()).toEqual(['api', 'start', 'worker']);
  }

  function namesOfStopped(): string[] {
    const lines = readFileSync(log, 'utf8').split('\n');
    const stopped = lines.flatMap((line) => {
      const entry = line.startsWith('{') ? (JSON.parse(line) as { name: string; msg: string }) : undefined;
      return entry?.msg === 'stopped' ? [entry.name] : [];
    });
    return stopped.sort();
  }

  async function expectStillUp(pids: readonly number[]): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, GOES_ON_MS));
    expect(pids.filter((pid) => !isAlive(pid))).toEqual([]);
    const answer = await fetch(`http://127.0.0.1:${place.environment.PORT}/readyz`);
    expect(answer.status).toBe(200);
  }

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'stops the whole service in order when npm gets %s',
    async (signal) => {
      await launch('npm', 'start');
      await expectOrderlyEnd(() => process.kill(npmPid(), signal));
    },
  );

  it('stops in order on one Ctrl-C, which reaches the service from the terminal and from npm', async () => {
    await launch('npm', 'start');
    await expectOrderlyEnd(() => process.kill(-npmPid(), 'SIGINT'));
  });

  it('in the background outlives its shell, and stops in order when npm is killed with -9', async () => {
    await launch('sh', '-c', 'npm start & echo started');
    expect(launcher.exitCode).toBe(0);
    await expectStillUp([npmPid(), ...pidsOf(place)]);
    await expectOrderlyEnd(() => process.kill(npmPid(), 'SIGKILL'));
  });

  it('stops in order when its terminal is closed, to which nothing can be written any more', async () => {
    await launch('script', '-qfc', 'npm start', join(place.dataDir, 'typescript'));
    const pids = pidsOf(place);
    launcher.kill('SIGKILL');
    for (const pid of pids) expect(await waitUntilGone(pid, GONE_LIMIT_MS), `process ${pid}`).toBe(true);
    // The supervisor removes this file at its end, after every part has closed.
    expect(existsSync(join(place.dataDir, 'runtime.json'))).toBe(false);
  });

  it('with nohup keeps running when its terminal is closed', async () => {
    await launch('script', '-qc', 'nohup npm start < /dev/null >> "$LOG" 2>&1', '/dev/null');
    const npm = npmPid();
    launcher.kill('SIGKILL');
    await once(launcher, 'exit');
    expect(await waitUntilGone(npm, GONE_LIMIT_MS)).toBe(true);
    await expectStillUp(pidsOf(place));
    expect(parts(place).api.status).toBe('up');
  });
});
