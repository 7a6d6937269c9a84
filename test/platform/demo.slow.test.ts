import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { isAlive } from '../../platform/embedded/processTable.js';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { embeddedDatabaseUrl, readRunningState } from '../../platform/runtimeFile.js';
import { type ChildProgram, startTrueup } from '../support/childProgram.js';
import { removeCluster } from '../support/postgres.js';
import { makeTestFolder } from '../support/testFolder.js';

/** The promise is 60 s on two idle cores; here other tests run at the same time. */
const FINDINGS_LIMIT_MS = 600_000;

let dataDir: string;
let environment: Record<string, string>;
let service: ChildProgram;

beforeAll(async () => {
  dataDir = makeTestFolder('demo');
  const port = String(await findFreePort());
  environment = { DATA_DIR: dataDir, PORT: port, TEMPORAL_CLI_PATH: inject('temporalProgram') };
  service = startTrueup(['demo'], environment);
});

afterAll(async () => {
  if (isAlive(service.pid)) service.child.kill('SIGTERM');
  await service.ended();
  const location = join(dataDir, 'pg-location');
  removeCluster(dataDir, existsSync(location) ? readFileSync(location, 'utf8').trim() : join(dataDir, 'pg'));
}, 300_000);

async function run(...args: string[]): Promise<{ exit: number | string; stdout: string }> {
  const program = startTrueup(args, environment);
  return { exit: await program.ended(), stdout: program.stdout() };
}

/** The lines of the findings, without log lines. Each run has a sign-in link of its own. */
const findingsOf = (stdout: string) =>
  stdout
    .split('\n')
    .filter((line) => line.startsWith('    '))
    .map((line) => line.replace(/#\/welcome\/\S+/, '#/welcome/…'));

async function organizations(): Promise<{ name: string; demo: boolean }[]> {
  const address = readRunningState(dataDir)?.parts.postgres.address ?? '';
  const client = new pg.Client({ connectionString: embeddedDatabaseUrl(dataDir, address) });
  await client.connect();
  await client.query('set role app_system');
  const { rows } = await client.query(
    'select name, demo_end_day is not null as demo from organizations order by created_at',
  );
  await client.end();
  return rows;
}

describe('npm run demo', () => {
  let first: string[];

  it(
    'starts the service where none runs, loads the demo and prints what is found',
    async () => {
      const began = performance.now();
      await service.sees(/\.\/trueup demo reset/, FINDINGS_LIMIT_MS);
      console.info(
        `from npm run demo to the findings: ${((performance.now() - began) / 1_000).toFixed(1)} s`,
      );
      const output = service.stdout();
      expect(output).toMatch(/Flagged: 46 of \d+ model-days/);
      expect(output).toMatch(/Explained: \d{3}\.\d\d \$ can be claimed/);
      expect(output).toMatch(/HIGH +contract_rate_not_applied/);
      expect(output).toMatch(/Rates that do not fit, from the bill alone: \+332\.52 \$/);
      expect(output).toMatch(/key_Stray7f3a91, which no entry and no call knows/);
      expect(output).toMatch(/Alerts: \d+ calls that break a policy/);
      expect(output).toMatch(/banned_patterns +2 +high /);
      expect(output).toMatch(/No agent spends more than 25 \$ on one session +438 +stopped +539\.08/);
      expect(output).toMatch(/Statement of \d{4}-\d{2}/);
      first = findingsOf(output);
      expect(statSync(join(dataDir, 'demo-key')).mode & 0o777).toBe(0o600);
      expect(await organizations()).toEqual([
        { name: 'My organization', demo: false },
        { name: 'Demo Labs', demo: true },
      ]);
    },
    FINDINGS_LIMIT_MS,
  );

  it(
    'finds the same again beside the service that runs, and adds nothing',
    async () => {
      const { exit, stdout } = await run('demo');
      expect(exit).toBe(0);
      expect(findingsOf(stdout)).toEqual(first);
      expect(await organizations()).toHaveLength(2);
    },
    FINDINGS_LIMIT_MS,
  );

  it('leaves commands without --org to the organization beside it', async () => {
    const { exit, stdout } = await run('keys', 'create', '--role', 'auditor', '--name', 'x');
    expect(exit).toBe(0);
    const answer = await fetch(`http://127.0.0.1:${environment.PORT}/api/v1/billing-imports`, {
      headers: { authorization: `Bearer ${stdout.trim()}` },
    });
    expect(await answer.json()).toMatchObject({ imports: [] });
  });

  it(
    'is taken out by ./trueup demo reset, with its key, and nothing else',
    async () => {
      const { exit, stdout } = await run('demo', 'reset');
      expect(exit).toBe(0);
      expect(stdout).toMatch(/^Demo Labs is gone, with [\d,]+ rows and its key\./m);
      expect(existsSync(join(dataDir, 'demo-key'))).toBe(false);
      expect(existsSync(join(dataDir, 'demo.json'))).toBe(false);
      expect(await organizations()).toEqual([{ name: 'My organization', demo: false }]);
      expect((await run('demo', 'reset')).stdout).toMatch(/^There is no demo here\.$/m);
    },
    FINDINGS_LIMIT_MS,
  );
});

describe('DEMO=1 npm start', () => {
  it(
    'loads the demo before its first screen, which names it; the next start only names it',
    async () => {
      service.child.kill('SIGTERM');
      expect(await service.ended()).toBe(0);
      for (const isFirst of [true, false]) {
        service = startTrueup(['start'], { ...environment, DEMO: '1' });
        await service.sees(/— ready in/, FINDINGS_LIMIT_MS);
        const ready = JSON.parse(
          service
            .stdout()
            .split('\n')
            .find((line) => line.includes('— ready in')) ?? '{}',
        );
        expect(ready.demo).toMatch(/^89 days to \d{4}-\d{2}-\d{2} · 4[45],\d{3} events · 46 flagged gaps/);
        expect(service.stdout().includes('90 days compared')).toBe(isFirst);
        service.child.kill('SIGTERM');
        expect(await service.ended()).toBe(0);
      }
    },
    FINDINGS_LIMIT_MS,
  );
});
