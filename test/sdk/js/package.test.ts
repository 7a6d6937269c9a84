import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';
import { readEvents } from '../../clients/support/observedEvents.js';
import { type ScriptedApi, startScriptedApi } from '../../fakes/scriptedApi.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { ensureSdkBuilt } from '../../support/builtSdk.js';
import { startProgram } from '../../support/childProgram.js';
import { README_ANSWER, readmeExample } from './cases/readmeExample.js';

const TSC = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc');

let api: TestApi;
let provider: ScriptedApi;
let project: string;
let environment: Record<string, string>;

beforeAll(async () => {
  ensureSdkBuilt();
  api = await startTestApi();
  provider = await startScriptedApi([README_ANSWER]);
  environment = {
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: `${provider.origin}/v1`,
    TRUEUP_URL: api.baseUrl,
    TRUEUP_KEY: api.ingestKey,
  };
  project = mkdtempSync(join(tmpdir(), 'trueup-project-'));
  writeFileSync(join(project, 'package.json'), '{"private":true}');
});
afterAll(async () => {
  await api?.close();
  await provider?.close();
  rmSync(project, { recursive: true, force: true });
});

function run(command: string, args: string[], cwd: string): string {
  const done = spawnSync(command, args, { cwd, encoding: 'utf8' });
  expect(done.status, done.stdout + done.stderr).toBe(0);
  return done.stdout;
}

describe('the JavaScript package as an installation serves it', () => {
  it('is listed with its sha256, and installs from there into an empty project', async () => {
    const listed = await api.get('/sdk/', 'no-key');
    const [entry] = listed.body.packages.filter((one: { file: string }) => one.file.endsWith('.tgz'));
    const url = `${api.baseUrl}/sdk/${entry.file}`;
    const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(entry.sha256);
    expect(entry).toMatchObject({ size_bytes: bytes.length, url: `http://trueup.test/sdk/${entry.file}` });
    expect((await fetch(`${api.baseUrl}/sdk/other-1.0.0.tgz`)).status).toBe(404);
    const packed = join(project, entry.file);
    writeFileSync(packed, bytes);
    run('npm', ['install', '--no-audit', '--no-fund', '--offline', packed], project);
    const manifest = JSON.parse(readFileSync(join(project, 'node_modules/trueup-sdk/package.json'), 'utf8'));
    expect(manifest.dependencies ?? {}).toEqual({});
    mkdirSync(join(project, 'node_modules'), { recursive: true });
    symlinkSync(join(PROJECT_ROOT, 'node_modules/openai'), join(project, 'node_modules/openai'));
  });

  it("runs the README's example as an ES module and as CommonJS", async () => {
    const { module, commonJs } = readmeExample();
    writeFileSync(join(project, 'example.mjs'), module);
    writeFileSync(join(project, 'example.cjs'), commonJs);
    for (const file of ['example.mjs', 'example.cjs']) {
      const program = startProgram([join(project, file)], environment);
      expect(await program.ended(), program.output()).toBe(0);
      expect(program.stdout()).toBe('Hi\n');
    }
    const events = await readEvents(api.baseUrl, api.adminKey, Date.now());
    expect(events).toMatchObject([{ model: 'gpt-4o-mini', usd: '0.0000024', request_id: 'chatcmpl-readme' }]);
  });

  it('has types for ES modules and for CommonJS that keep those of the client', () => {
    const code = [
      "import { labeled, observe, TrueupBlockedError } from 'trueup-sdk';",
      'class Client { say(text: string): number { return text.length; } }',
      "const client: Client = observe(new Client(), { team: 'growth' });",
      "export const length: number = client.say('x');",
      "export const params: { model: string } = labeled({ session: 's' }, { model: 'm' });",
      'export const isBlocked = (error: unknown) => error instanceof TrueupBlockedError && error.preventedUsd;',
      '',
    ].join('\n');
    const options = {
      strict: true,
      module: 'nodenext',
      moduleResolution: 'nodenext',
      noEmit: true,
      types: [],
    };
    writeFileSync(
      join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: { ...options, target: 'es2022', lib: ['es2022', 'dom'] },
        files: ['a.mts', 'b.cts'],
      }),
    );
    for (const name of ['a.mts', 'b.cts']) writeFileSync(join(project, name), code);
    run(process.execPath, [TSC, '-p', project], project);
    // The types of the other two resolutions that projects use.
    for (const [module, moduleResolution] of [
      ['node16', 'node16'],
      ['esnext', 'bundler'],
    ]) {
      const words = ['-p', project, '--module', module ?? '', '--moduleResolution', moduleResolution ?? ''];
      run(process.execPath, [TSC, ...words], project);
    }
  });
});
