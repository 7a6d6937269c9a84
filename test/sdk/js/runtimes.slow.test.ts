import { execFile, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';
import { readEvents } from '../../clients/support/observedEvents.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { createBodyServer } from '../../support/bodyServer.js';
import { installPackages } from '../../support/installPackages.js';

/** The built package in each runtime that its README names. The runtimes come from the registry, 1 GB. */

const { platform, arch } = process;
const isArm = arch === 'arm64';
const PACKAGE_OF = {
  bun: `@oven/bun-${platform}-${isArm ? 'aarch64' : 'x64'}`,
  deno: `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`,
  workerd: `@cloudflare/workerd-${platform}-${isArm ? 'arm64' : '64'}`,
};
const NODES = { 18: '18.20.8', 20: '20.20.2', 22: '22.23.3', 24: '24.21.0' };
const BUN = '1.4.5';
const DENO = '2.9.6';
const WORKERD = '1.20261117.1';
const OPENAI = '6.49.0';
/** The answer's and the stream's tokens, by the price of gpt-4o-mini. */
const USAGE = { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 };
const USD = '0.0000024';

let api: TestApi;
let provider: { origin: string; close(): void };
let folder: string;

beforeAll(async () => {
  api = await startTestApi();
  provider = await startProvider();
  const packed = mkdtempSync(join(tmpdir(), 'trueup-packed-'));
  const done = spawnSync(process.execPath, [join(PROJECT_ROOT, 'sdk/build.mjs'), packed], {
    encoding: 'utf8',
  });
  expect(done.status, done.stderr).toBe(0);
  const [tarball = ''] = readdirSync(packed).filter((name) => name.endsWith('.tgz'));
  folder = installPackages({
    openai: OPENAI,
    'trueup-sdk': `file:${join(packed, tarball)}`,
    ...Object.fromEntries(
      Object.entries(NODES).map(([major, version]) => [
        `node-${major}`,
        `npm:node-${platform}-${arch}@${version}`,
      ]),
    ),
    [PACKAGE_OF.bun]: BUN,
    [PACKAGE_OF.deno]: DENO,
    [PACKAGE_OF.workerd]: WORKERD,
  });
  rmSync(packed, { recursive: true });
  for (const name of ['oneCall.mjs', 'worker.mjs'])
    copyFileSync(join(PROJECT_ROOT, 'test/sdk/js/programs', name), join(folder, name));
});
afterAll(async () => {
  await api?.close();
  provider?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Chat completions with an id for each call. */
async function startProvider() {
  let calls = 0;
  const server = createBodyServer((_request, response, body) => {
    const { model, stream } = JSON.parse(body.toString('utf8'));
    calls += 1;
    const id = `chatcmpl-${calls}`;
    const line = (more: object) =>
      `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model, ...more })}\n\n`;
    response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
    if (stream) {
      response.write(line({ choices: [{ index: 0, delta: { content: 'Str' } }] }));
      response.write(line({ choices: [{ index: 0, delta: { content: 'eam' }, finish_reason: 'stop' }] }));
      response.end(`${line({ choices: [], usage: USAGE })}data: [DONE]\n\n`);
    } else {
      const message = { role: 'assistant', content: 'Hi' };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      response.end(
        JSON.stringify({ id, object: 'chat.completion', created: 1, model, choices, usage: USAGE }),
      );
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function binary(...path: string[]): string {
  const file = join(folder, 'node_modules', ...path);
  if (!existsSync(file))
    throw new Error(
      `${file} is missing: the registry has no such build for ${platform} on ${arch}; run this test on Linux x64`,
    );
  return file;
}

/** Sessions and costs of the events, in order. */
async function eventsOf(adminKey: string): Promise<string[]> {
  const events = await readEvents(api.baseUrl, adminKey, Date.now());
  return events
    .map((event) => event as typeof event & { session_id: string | null; team_id: string })
    .map(({ model, usd, session_id, team_id }) => `${session_id || 'none'} ${team_id} ${model} ${usd}`)
    .sort();
}

const run = promisify(execFile);

const RUNTIMES: readonly [name: string, path: string[], args: string[]][] = [
  ...Object.keys(NODES).map((major): [string, string[], string[]] => [
    `Node ${major}`,
    [`node-${major}`, 'bin', 'node'],
    [],
  ]),
  ['Bun', [PACKAGE_OF.bun, 'bin', 'bun'], []],
  ['Deno', [PACKAGE_OF.deno, 'deno'], ['run', '--allow-all', '--no-prompt']],
];

describe('the built JavaScript package', () => {
  it.each(RUNTIMES)(
    'reports an answer and a stream from %s, from memory and from a spool',
    async (_, path, args) => {
      const { PATH = '' } = process.env;
      for (const isSpooled of [false, true]) {
        const organization = await api.addOrganization();
        const spool = mkdtempSync(join(folder, 'spool-'));
        const env = {
          PATH,
          HOME: folder,
          PROVIDER: `${provider.origin}/v1`,
          TRUEUP_URL: api.baseUrl,
          TRUEUP_KEY: organization.ingestKey,
          ...(isSpooled ? { SPOOL: spool } : {}),
        };
        const { stdout } = await run(binary(...path), [...args, 'oneCall.mjs'], {
          cwd: folder,
          env,
          timeout: 60_000,
        });
        expect(stdout).toBe(`true Hi Stream ${isSpooled} true\n`);
        expect(await eventsOf(organization.adminKey)).toEqual([
          `none growth gpt-4o-mini ${USD}`,
          `s-1 growth gpt-4o-mini ${USD}`,
        ]);
      }
    },
  );

  it('reports each call of a Cloudflare Worker, of requests one by one and at once', async () => {
    const organization = await api.addOrganization();
    const conditions = ['workerd', 'worker', 'browser'];
    await build({
      root: folder,
      configFile: false,
      logLevel: 'error',
      publicDir: false,
      resolve: { conditions },
      ssr: { noExternal: true, target: 'webworker', resolve: { conditions } },
      build: {
        ssr: join(folder, 'worker.mjs'),
        outDir: folder,
        emptyOutDir: false,
        rolldownOptions: {
          external: [/^node:/],
          output: { entryFileNames: 'bundle.mjs', codeSplitting: false },
        },
      },
    });
    const text = (name: string, value: string) => `(name = "${name}", text = "${value}")`;
    writeFileSync(
      join(folder, 'config.capnp'),
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "internet", network = (allow = ["private"]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]);
const main :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "bundle.mjs")],
  compatibilityDate = "2025-11-01", compatibilityFlags = ["nodejs_compat"],
  bindings = [${text('PROVIDER', `${provider.origin}/v1`)}, ${text('TRUEUP_URL', api.baseUrl)},
    ${text('TRUEUP_KEY', organization.ingestKey)}]);
`,
    );
    const worker = spawn(
      binary(PACKAGE_OF.workerd, 'bin', 'workerd'),
      ['serve', 'config.capnp', '--control-fd=3'],
      {
        cwd: folder,
        stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
      },
    );
    try {
      const port = await new Promise<number>((resolve, reject) => {
        worker.once('exit', (code) => reject(new Error(`workerd ended with ${code}`)));
        worker.stdio[3]?.on('data', (line: Buffer) => {
          const told = /"event":"listen".*"port":(\d+)/.exec(line.toString('utf8'));
          if (told) resolve(Number(told[1]));
        });
      });
      const ask = async (session: string) => {
        const response = await fetch(`http://127.0.0.1:${port}/${session}`);
        expect(await response.text()).toBe('Hi Stream');
      };
      await ask('first');
      await ask('second');
      const atOnce = ['third', 'fourth', 'fifth', 'sixth'];
      await Promise.all(atOnce.map(ask));
      const sessions = ['first', 'second', ...atOnce].map(
        (session) => `${session} growth gpt-4o-mini ${USD}`,
      );
      const streams = sessions.map(() => `none growth gpt-4o-mini ${USD}`);
      await expect.poll(() => eventsOf(organization.adminKey)).toEqual([...sessions, ...streams].sort());
    } finally {
      worker.kill('SIGKILL');
    }
  });
});
