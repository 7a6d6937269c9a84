import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';
import { readEvents } from '../../clients/support/observedEvents.js';
import { type ScriptedApi, startScriptedApi } from '../../fakes/scriptedApi.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { ensureSdkBuilt } from '../../support/builtSdk.js';
import { installPackages } from '../../support/installPackages.js';
import { README_ANSWER, readmeExample } from './cases/readmeExample.js';

const OPENAI = '6.49.0';
const run = promisify(execFile);

let api: TestApi;
let provider: ScriptedApi;
/** A package registry that knows no package and no user. */
let registry: Server;
let registryUrl: string;
let folder: string;
let tarball: string;

beforeAll(async () => {
  ensureSdkBuilt();
  api = await startTestApi();
  provider = await startScriptedApi([README_ANSWER]);
  registry = createServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
  });
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
  registryUrl = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`;
  folder = mkdtempSync(join(tmpdir(), 'trueup-package-'));
  await run(process.execPath, [join(PROJECT_ROOT, 'sdk/build.mjs'), folder]);
  const [name = ''] = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  tarball = join(folder, name);
});
afterAll(async () => {
  await api?.close();
  await provider?.close();
  registry?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Runs the README's example in a project, as an ES module and as CommonJS, and expects both calls as events. */
async function expectExample(project: string): Promise<void> {
  const organization = await api.addOrganization();
  const { module, commonJs } = readmeExample();
  writeFileSync(join(project, 'example.mjs'), module);
  writeFileSync(join(project, 'example.cjs'), commonJs);
  for (const file of ['example.mjs', 'example.cjs']) {
    const { stdout } = await run(process.execPath, [join(project, file)], {
      timeout: 60_000,
      env: {
        PATH: process.env.PATH,
        OPENAI_API_KEY: 'sk-test',
        OPENAI_BASE_URL: `${provider.origin}/v1`,
        TRUEUP_URL: api.baseUrl,
        TRUEUP_KEY: organization.ingestKey,
      },
    });
    expect(stdout).toBe('Hi\n');
  }
  const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
  // Both have one response id: they are one call of the provider.
  expect(events).toMatchObject([{ model: 'gpt-4o-mini', usd: '0.0000024', team_id: 'growth' }]);
}

describe('the JavaScript package', () => {
  it('could be published: npm accepts the tarball without a login', async () => {
    const words = ['publish', '--dry-run', '--json', tarball, '--registry', registryUrl];
    const { stdout } = await run('npm', words, { cwd: folder, timeout: 120_000 });
    const { 'trueup-sdk': published } = JSON.parse(stdout);
    const files: { path: string }[] = published.files;
    const others = files
      .map(({ path }) => path)
      .filter((path) => !/^dist\/(?:esm|cjs)\/.+\.(?:js|d\.ts)$/.test(path));
    expect(others.sort()).toEqual(['LICENSE', 'README.md', 'dist/cjs/package.json', 'package.json']);
  });

  it("installs from its tarball into an empty project, which runs the README's example", async () => {
    const project = installPackages({ openai: OPENAI, 'trueup-sdk': `file:${tarball}` });
    try {
      await expectExample(project);
    } finally {
      rmSync(project, { recursive: true });
    }
  });

  it("installs from a running installation, by its address, into a project which runs the README's example", async () => {
    const [entry] = (await api.get('/sdk/', 'no-key')).body.packages.filter((one: { file: string }) =>
      one.file.endsWith('.tgz'),
    );
    const project = installPackages({ openai: OPENAI });
    const words = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
    try {
      await run('npm', [...words, `${api.baseUrl}/sdk/${entry.file}`], { cwd: project, timeout: 120_000 });
      await expectExample(project);
    } finally {
      rmSync(project, { recursive: true });
    }
  });
});
