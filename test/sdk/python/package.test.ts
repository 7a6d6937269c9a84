import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';
import { readEvents } from '../../clients/support/observedEvents.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { ensureSdkBuilt } from '../../support/builtSdk.js';
import { findPython, PYTHON_SOURCES, startPython } from '../../support/python.js';
import { runProgram } from '../../support/pythonVenv.js';

const CHECK = join(PROJECT_ROOT, 'test/sdk/python/programs/check_wheel.py');

let api: TestApi;
let folder: string;
let wheel: string;

beforeAll(async () => {
  ensureSdkBuilt();
  api = await startTestApi();
  folder = mkdtempSync(join(tmpdir(), 'trueup-wheel-'));
});
afterAll(async () => {
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the Python package as an installation serves it', () => {
  it('is listed with its sha256 and the command that installs it', async () => {
    const listed = await api.get('/sdk/', 'no-key');
    const [entry] = listed.body.packages.filter((one: { file: string }) => one.file.endsWith('.whl'));
    const url = `http://trueup.test/sdk/${entry.file}`;
    const bytes = Buffer.from(await (await fetch(`${api.baseUrl}/sdk/${entry.file}`)).arrayBuffer());
    expect(entry).toMatchObject({ size_bytes: bytes.length, url, install: `pip install ${url}` });
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(entry.sha256);
    wheel = join(folder, entry.file);
    writeFileSync(wheel, bytes);
  });

  it('is a sound archive whose record lists every file with its sha256', () => {
    const { status, text, stdout } = runProgram(findPython(), [CHECK, wheel]);
    expect(status, text).toBe(0);
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({ broken: null, wrong: [], unrecorded: [], repeated: 0 });
    expect(found).toMatchObject({ name: 'trueup-sdk', requires_python: '>=3.9', requires: null });
    expect(found.tag).toBe('py3-none-any');
    expect(wheel).toContain(`trueup_sdk-${found.version}-`);
    expect(found.readme).toBe(readFileSync(join(PROJECT_ROOT, 'sdk/python/README.md'), 'utf8'));
    const sources = readdirSync(PYTHON_SOURCES, { recursive: true, encoding: 'utf8' });
    expect(found.names).toEqual(
      expect.arrayContaining(sources.filter((name) => /\.py$|py\.typed$/.test(name))),
    );
    expect(found.names.filter((name: string) => name.includes('__pycache__'))).toEqual([]);
  });

  it('has one version in its metadata, its sources and the package for JavaScript', () => {
    const read = (path: string) => readFileSync(join(PROJECT_ROOT, path), 'utf8');
    const { version } = JSON.parse(read('sdk/js/package.json'));
    expect(/^version = "(.*)"$/m.exec(read('sdk/python/pyproject.toml'))?.[1]).toBe(version);
    expect(/VERSION: Final = "(.*)"/.exec(read('sdk/python/src/trueup_sdk/version.py'))?.[1]).toBe(version);
  });

  it('reports a call to the service from the archive itself', async () => {
    const program = startPython(findPython(), 'test/sdk/python/programs/one_call.py', {
      PYTHONPATH: wheel,
      TRUEUP_URL: api.baseUrl,
      TRUEUP_KEY: api.ingestKey,
    });
    expect(await program.ended(), program.output()).toBe(0);
    expect(program.stdout()).toContain(wheel);
    const events = await readEvents(api.baseUrl, api.adminKey, Date.now());
    expect(events).toMatchObject([
      { model: 'gpt-4o-mini', usd: '0.0000024', request_id: 'chatcmpl-wheel', team_id: 'growth' },
    ]);
  });
});
