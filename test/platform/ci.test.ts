import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

const folder = mkdtempSync(join(tmpdir(), 'trueup-ci-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function summary(report: object | undefined, exitCode: number) {
  const file = join(folder, 'report.json');
  rmSync(file, { force: true });
  if (report) writeFileSync(file, JSON.stringify(report));
  const run = spawnSync(process.execPath, [join(PROJECT_ROOT, '.ci/summary.mjs'), file, String(exitCode)], {
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
  ])('says it in its last line when %s', (_case, report, exitCode, last, exit) => {
    expect(summary(report, exitCode)).toEqual({ last, exit });
  });
});
