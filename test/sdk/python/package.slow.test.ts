import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { ensureSdkBuilt } from '../../support/builtSdk.js';
import { startProgram } from '../../support/childProgram.js';
import { allPythons, startPython } from '../../support/python.js';
import { runProgram } from '../../support/pythonVenv.js';

let api: TestApi;
let folder: string;

beforeAll(async () => {
  ensureSdkBuilt();
  api = await startTestApi();
  folder = mkdtempSync(join(tmpdir(), 'trueup-venv-'));
});
afterAll(async () => {
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Beside this process, which has to answer it. */
async function run(python: string, args: string[]): Promise<string> {
  const program = startProgram(args, {}, python);
  expect(await program.ended(), program.output()).toBe(0);
  return program.output();
}

describe('the Python package in an empty environment', () => {
  it.each(allPythons())(
    'installs from a running service with Python $version, and reports a call',
    async (one) => {
      const place = join(folder, one.version);
      expect(runProgram(one.path, ['-m', 'venv', place])).toMatchObject({ status: 0 });
      const python = join(place, 'bin/python');
      const listed = await api.get('/sdk/', 'no-key');
      const [entry] = listed.body.packages.filter(({ file }: { file: string }) => file.endsWith('.whl'));
      const url = `${api.baseUrl}/sdk/${entry.file}#sha256=${entry.sha256}`;
      await run(python, ['-m', 'pip', 'install', '--no-index', '--disable-pip-version-check', url]);
      expect(await run(python, ['-m', 'pip', 'check'])).toContain('No broken requirements');
      const { ingestKey } = await api.addOrganization(`Python ${one.version}`);
      const environment = { PYTHONPATH: '', TRUEUP_URL: api.baseUrl, TRUEUP_KEY: ingestKey };
      const program = startPython(python, 'test/sdk/python/programs/one_call.py', environment);
      expect(await program.ended(), program.output()).toBe(0);
      expect(program.stdout()).toContain(join(place, 'lib'));
    },
  );
});
