import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

const VITEST = join(PROJECT_ROOT, 'node_modules/vitest/vitest.mjs');

const folder = mkdtempSync(join(tmpdir(), 'trueup-ci-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function summary(...runs: [report: object | undefined, exitCode: number][]) {
  const args = runs.flatMap(([report, exitCode], at) => {
    const file = join(folder, `report-${at}.json`);
    rmSync(file, { force: true });
    if (report) writeFileSync(file, JSON.stringify(report));
    return [file, String(exitCode)];
  });
  const run = spawnSync(process.execPath, [join(PROJECT_ROOT, '.ci/summary.mjs'), ...args], {
    encoding: 'utf8',
  });
  return { last: run.stdout.trimEnd().split('\n').at(-1), exit: run.status };
}

const passing = { numPassedTests: 3, numFailedTests: 0, numPendingTests: 0, testResults: [] };

describe('.ci/run', () => {
  it('can be run', () => {
    expect(statSync(join(PROJECT_ROOT, '.ci/run')).mode & 0o111).not.toBe(0);
  });

  it.each([
    ['all passed', passing, 0, '3 passed, 0 failed', 0],
    ['some failed', { ...passing, numFailedTests: 2 }, 1, '3 passed, 2 failed', 1],
    [
      'a file could not be loaded',
      { ...passing, testResults: [{ name: 'a', status: 'failed', assertionResults: [] }] },
      1,
      '3 passed, 1 failed',
      1,
    ],
    ['the run failed outside of any test', passing, 1, '3 passed, 1 failed', 1],
    ['tests were skipped', { ...passing, numPendingTests: 1 }, 0, '3 passed, 1 failed', 1],
    ['nothing ran', { ...passing, numPassedTests: 0 }, 0, '0 passed, 1 failed', 1],
    ['there is no report', undefined, 1, '0 passed, 1 failed', 1],
  ])('prints the counts in its last line when %s', (_case, report, exitCode, last, exit) => {
    expect(summary([report, exitCode])).toEqual({ last, exit });
  });

  it('adds the gate and the slow suite up, and fails when either fails', () => {
    expect(summary([passing, 0], [passing, 0])).toEqual({ last: '6 passed, 0 failed', exit: 0 });
    expect(summary([passing, 0], [undefined, 1])).toEqual({ last: '3 passed, 1 failed', exit: 1 });
    expect(summary([{ ...passing, numFailedTests: 1 }, 1], [passing, 0])).toEqual({
      last: '6 passed, 1 failed',
      exit: 1,
    });
  });

  it('names what failed with its reason, what passed at a second try, and nothing else', () => {
    writeFileSync(
      join(folder, 'sample.test.mjs'),
      `let tries = 0;
       it('holds', () => console.log('chatter'));
       it('holds at last', () => expect((tries += 1)).toBe(2));
       it('is wrong', () => expect(1 + 1, 'the sum').toBe(3));`,
    );
    const reporter = join(PROJECT_ROOT, '.ci/reporter.mjs');
    const { stdout, status } = spawnSync(
      process.execPath,
      [VITEST, 'run', '--globals', '--retry=1', `--reporter=${reporter}`],
      { encoding: 'utf8', cwd: folder },
    );
    expect(status).toBe(1);
    expect(stdout).toContain('passed at the second try: sample.test.mjs > holds at last');
    expect(stdout).toMatch(/FAILED sample\.test\.mjs > is wrong\n.*the sum: expected 2 to be 3/);
    expect(stdout).not.toMatch(/chatter|> holds$/m);
  });
});
