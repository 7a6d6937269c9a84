import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { parseKey } from '../../domain/access/keyRules.js';
import { loadConfig } from '../../platform/config.js';
import { startPostgres } from '../../platform/embedded/postgres.js';
import { isAlive, waitUntilGone } from '../../platform/embedded/processTable.js';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { embeddedDatabaseUrl } from '../../platform/runtimeFile.js';
import { type ChildProgram, startProgram, startTrueup } from '../support/childProgram.js';
import { TEST_SECRET_KEY } from '../support/connectors.js';
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
import { makeTestFolder } from '../support/testFolder.js';

const SERVED_AS = ['trueup-api as app_login', 'trueup-worker as app_login'];
const ADMIN_KEY = /tu_live_[0-9A-Za-z]{10}_[0-9A-Za-z]{49}/;

const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).toReversed()) await step();
});

/** `npm start`, waited for. */
async function start(place: Place): Promise<ChildProgram> {
  const program = startTrueup(['start'], place.environment);
  await program.sees(/— ready in/, START_LIMIT_MS);
  return program;
}

/** A start for one test, which ends with the test in any case. */
async function startAlone(place: Place): Promise<ChildProgram> {
  const program = startTrueup(['start'], place.environment);
  cleanUp.push(async () => {
    if (isAlive(program.pid)) program.child.kill('SIGTERM');
    await program.ended();
  });
  await program.sees(/— ready in/, START_LIMIT_MS);
  return program;
}

/** Requests an orderly end and checks that nothing of it remains. */
async function stop(program: ChildProgram, place: Place): Promise<{ exit: number | string; ms: number }> {
  const pids = pidsOf(place);
  const began = performance.now();
  program.child.kill('SIGTERM');
  const exit = await program.ended();
  const ms = performance.now() - began;
  expect([program.pid, ...pids].filter(isAlive)).toEqual([]);
  return { exit, ms };
}

function base(place: Place): string {
  return `http://127.0.0.1:${place.environment.PORT}`;
}

async function ask(
  place: Place,
  path: string,
  key?: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(
    base(place) + path,
    key ? { headers: { authorization: `Bearer ${key}` } } : {},
  );
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** The logins of each process of the service, but for the worker's own errands as the owner. */
async function loginsOf(place: Place): Promise<string[]> {
  const { address = '' } = parts(place).postgres;
  const owner = new pg.Client({ connectionString: embeddedDatabaseUrl(place.dataDir, address) });
  await owner.connect();
  try {
    const { rows } = await owner.query<{ who: string }>(
      `select distinct application_name || ' as ' || usename as who from pg_stat_activity
       where application_name in ('trueup-api', 'trueup-worker') order by 1`,
    );
    return rows.map(({ who }) => who);
  } finally {
    await owner.end();
  }
}

async function runToEnd(args: readonly string[], environment: Record<string, string>) {
  const program = startTrueup(args, environment);
  return { exit: await program.ended(), output: program.output(), stdout: program.stdout() };
}

/** The output for a person: the lines that are not JSON. */
function spoken(output: string): string[] {
  return output
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('{'));
}

describe('npm start', () => {
  let place: Place;
  let service: ChildProgram;
  let adminKey: string;

  beforeAll(async () => {
    place = await makePlace();
    service = await start(place);
    adminKey = readFileSync(join(place.dataDir, 'admin-key'), 'utf8').trim();
  }, START_LIMIT_MS);

  afterAll(async () => {
    if (isAlive(service.pid)) await stop(service, place);
    removePlace(place);
  });

  it('prints the admin key that it saved for its owner alone, and the key opens the API', async () => {
    expect(parseKey(adminKey)).toBeDefined();
    expect(service.output()).toContain(adminKey);
    expect(statSync(join(place.dataDir, 'admin-key')).mode & 0o777).toBe(0o600);
    expect((await ask(place, '/api/v1/events?limit=1', adminKey)).status).toBe(200);
    expect((await ask(place, '/api/v1/events?limit=1')).status).toBe(401);
  });

  it('makes a secret key for its owner alone, and shows it nowhere', async () => {
    const file = join(place.dataDir, 'secret-key');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const [key = ''] = readFileSync(file, 'utf8').split('\n');
    expect(Buffer.from(key, 'base64')).toHaveLength(32);
    expect(service.output()).not.toContain(key);
    const rotated = await runToEnd(['secrets', 'rotate'], place.environment);
    expect([rotated.exit, rotated.stdout]).toEqual([
      0,
      expect.stringMatching(/^0 secrets were sealed again/),
    ]);
    const [next = ''] = readFileSync(file, 'utf8').split('\n');
    expect(next).not.toBe(key);
    expect(rotated.output).not.toContain(next);
  });

  it('has the API and the worker log in without rights, with a password for its owner alone', async () => {
    expect(statSync(join(place.dataDir, 'postgres-login-password')).mode & 0o777).toBe(0o600);
    await expect.poll(() => loginsOf(place)).toEqual(SERVED_AS);
  });

  it('is healthy and ready when it prints that', async () => {
    expect(await ask(place, '/healthz')).toEqual({ status: 200, body: { status: 'ok' } });
    const { status, body } = await ask(place, '/readyz');
    expect(status).toBe(200);
    expect(body).toMatchObject({ postgres: 'up' });
    await eventually(async () => (await ask(place, '/readyz')).body.temporal === 'up');
  });

  it('shows the state of each part: ./trueup status --json', async () => {
    await untilWhole(place);
    const { exit, stdout } = await runToEnd(['status', '--json'], place.environment);
    const status = JSON.parse(stdout) as Record<string, { status: string }>;
    expect(exit).toBe(0);
    expect(status).toMatchObject({
      running: true,
      addresses: {
        api: expect.stringContaining(String(place.environment.PORT)),
        postgres: expect.any(String),
      },
      versions: {
        trueup: expect.any(String),
        postgres: expect.stringMatching(/^18/),
        temporal: expect.any(String),
      },
      postgres: { status: 'up' },
      temporal: { status: 'up' },
      api: { status: 'up' },
      worker: { status: 'up' },
    });
  });

  it('finds nothing wrong with itself: ./trueup doctor', async () => {
    await untilWhole(place);
    const { exit, output } = await runToEnd(['doctor'], place.environment);
    expect(output).not.toContain('✗');
    expect(output.trim().split('\n').length).toBeGreaterThanOrEqual(7);
    expect(exit).toBe(0);
  });

  it('takes keys made beside it: ./trueup keys create', async () => {
    const made = await runToEnd(['keys', 'create', '--role', 'ingest', '--name', 'x'], place.environment);
    const key = made.stdout.trim();
    expect(parseKey(key)).toBeDefined();
    expect((await ask(place, '/api/v1/events?limit=1', key)).status).toBe(403);
    const response = await fetch(`${base(place)}/api/v1/ingest/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [] }),
    });
    expect(response.status).toBe(202);
  });

  it.each(['another port', 'the same port'])(
    'refuses a second start on its data directory with one sentence, at %s',
    async (at) => {
      const port = at === 'another port' ? String(await findFreePort()) : (place.environment.PORT ?? '');
      const { exit, output } = await runToEnd(['start'], { ...place.environment, PORT: port });
      expect(exit).toBe(1);
      const sentence = new RegExp(`^DATA_DIR ${place.dataDir} is in use by process ${service.pid}: `);
      expect(spoken(output)).toEqual([expect.stringMatching(sentence)]);
    },
  );

  it.each(['api', 'worker', 'postgres', 'temporal'] as const)(
    'starts its %s again when that is killed with -9, and is whole again',
    async (name) => {
      const { pid } = parts(place)[name];
      process.kill(pid ?? -1, 'SIGKILL');
      await eventually(async () => parts(place)[name].status === 'up' && parts(place)[name].pid !== pid);
      await eventually(async () => (await ask(place, '/api/v1/events?limit=1', adminKey)).status === 200);
    },
  );

  it('ends in order on SIGTERM and leaves no process; the next start finds everything', async () => {
    await untilWhole(place);
    const { exit, ms } = await stop(service, place);
    expect(exit).toBe(0);
    const began = performance.now();
    service = await start(place);
    console.info(
      `stopped in ${Math.round(ms)} ms, second start in ${Math.round(performance.now() - began)} ms`,
    );
    expect(service.output()).not.toMatch(ADMIN_KEY);
    expect((await ask(place, '/api/v1/events?limit=1', adminKey)).status).toBe(200);
  });

  it('makes the login of an older data directory by itself, and replaces a lost password', async () => {
    await stop(service, place);
    const { url, stop: stopServer } = await startPostgres({
      dataDir: place.dataDir,
      cacheDir: loadConfig().cacheDir,
    });
    const owner = new pg.Client({ connectionString: url });
    await owner.connect();
    await owner.query('drop role app_login');
    await owner.end();
    await stopServer();
    rmSync(join(place.dataDir, 'postgres-login-password'));
    service = await start(place);
    expect((await ask(place, '/api/v1/events?limit=1', adminKey)).status).toBe(200);
    await untilWhole(place);
    await expect.poll(() => loginsOf(place)).toEqual(SERVED_AS);
    const { exit, output } = await runToEnd(['doctor'], place.environment);
    expect([exit, output]).toEqual([0, expect.stringMatching(/✓ login +app_login owns nothing/)]);
  });

  it('leaves no process within seconds when it is killed with -9 itself, and starts over what is left', async () => {
    const pids = pidsOf(place);
    process.kill(service.pid, 'SIGKILL');
    await service.ended();
    for (const pid of pids) expect(await waitUntilGone(pid, 120_000)).toBe(true);
    service = await start(place);
    expect((await ask(place, '/api/v1/events?limit=1', adminKey)).status).toBe(200);
  });
});

describe('a start that cannot be', () => {
  async function expectSentence(environment: Record<string, string>, sentence: RegExp): Promise<void> {
    const place = await makePlace(environment);
    cleanUp.push(() => removePlace(place));
    const { exit, output } = await runToEnd(['start'], place.environment);
    expect(spoken(output)).toEqual([expect.stringMatching(sentence)]);
    expect(exit).toBe(1);
  }

  it('for a port that is taken prints one sentence', async () => {
    const squatter = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => squatter.once('listening', resolve));
    cleanUp.push(() => new Promise<void>((resolve) => squatter.close(() => resolve())));
    const { port } = squatter.address() as { port: number };
    await expectSentence({ PORT: String(port) }, new RegExp(`^PORT ${port} is taken by another program: `));
  });

  it('for a host that is not ours prints one sentence', async () => {
    await expectSentence(
      { HOST: '192.0.2.1' },
      /^HOST 192\.0\.2\.1 is not an address of this machine \(EADDRNOTAVAIL\): /,
    );
  });

  it('for a data directory that cannot be written prints one sentence', async () => {
    await expectSentence({ DATA_DIR: '/proc/trueup' }, /^DATA_DIR \/proc\/trueup cannot be written /);
  });

  it('for a wrong setting prints one sentence', async () => {
    await expectSentence({ PORT: 'eighty' }, /^PORT is "eighty": give a whole number/);
  });

  it('for an admin key with a typing error prints one sentence', async () => {
    await expectSentence(
      { INIT_ADMIN_KEY: `tu_live_${'a'.repeat(10)}_${'b'.repeat(49)}` },
      /INIT_ADMIN_KEY has a wrong check sum/,
    );
  });

  it('for a database that does not answer prints one sentence', async () => {
    const environment = {
      DATABASE_URL: 'postgres://u:p@127.0.0.1:1/x',
      TRUEUP_SECRET_KEY: TEST_SECRET_KEY,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
    };
    await expectSentence(environment, /^No Postgres answers at 127\.0\.0\.1:1\/x \(ECONNREFUSED\): start it/);
  });

  it('for a database of one’s own without a secret key prints one sentence, with how to make one', async () => {
    const environment = { DATABASE_URL: 'postgres://u:p@127.0.0.1:1/x', TEMPORAL_ADDRESS: '127.0.0.1:1' };
    await expectSentence(environment, /^TRUEUP_SECRET_KEY is missing: .*`openssl rand -base64 32`/);
    for (const name of ['api', 'worker']) {
      const program = startProgram([join(PROJECT_ROOT, 'bin/bootstrap.mjs'), name], environment);
      const [exit, output] = [await program.ended(), program.output()];
      expect([exit, spoken(output)]).toEqual([1, [expect.stringMatching(/^TRUEUP_SECRET_KEY is missing: /)]]);
    }
  });
});

describe('other ways to start', () => {
  it('with both addresses set it uses those servers and starts none', async () => {
    const name = `start_${randomBytes(4).toString('hex')}`;
    const admin = new pg.Client({ connectionString: inject('postgresUrl') });
    await admin.connect();
    await admin.query(`create database ${name}`);
    cleanUp.push(async () => {
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    });
    const place = await makePlace({
      DATABASE_URL: inject('postgresUrl').replace(/\/[^/]*$/, `/${name}`),
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      INIT_ORG_NAME: 'Ours, Inc.',
      TRUEUP_SECRET_KEY: TEST_SECRET_KEY,
    });
    cleanUp.push(() => removePlace(place));
    const service = await startAlone(place);
    expect(parts(place).postgres).toMatchObject({ embedded: false, status: 'up' });
    expect(parts(place).temporal).toMatchObject({ embedded: false, status: 'up' });
    expect(existsSync(join(place.dataDir, 'pg'))).toBe(false);
    expect(existsSync(join(place.dataDir, 'temporal'))).toBe(false);
    const named = new pg.Client({ connectionString: place.environment.DATABASE_URL });
    await named.connect();
    expect((await named.query('select name from organizations')).rows).toEqual([{ name: 'Ours, Inc.' }]);
    await named.end();
    await stop(service, place);
  });

  it('uses a key that was set in advance', async () => {
    const { stdout } = await runToEnd(['keys', 'create', '--offline'], {});
    const key = stdout.trim();
    const place = await makePlace({ INIT_ADMIN_KEY: key });
    cleanUp.push(() => removePlace(place));
    const service = await startAlone(place);
    expect((await ask(place, '/api/v1/events?limit=1', key)).status).toBe(200);
    await stop(service, place);
  });

  it('without setpriv leaves no process either when it is killed with -9', async () => {
    const place = await makePlace({ PATH: '/nonexistent' });
    cleanUp.push(() => removePlace(place));
    const service = await startAlone(place);
    await untilWhole(place);
    const pids = pidsOf(place);
    expect(pids).toHaveLength(5);
    process.kill(service.pid, 'SIGKILL');
    for (const pid of pids) expect(await waitUntilGone(pid, 120_000), `process ${pid}`).toBe(true);
  });

  it('where no workflow engine is available the rest runs, and the output names what to do', async () => {
    const offline = makeTestFolder('offline');
    cleanUp.push(() => rmSync(offline, { recursive: true, force: true }));
    writeFileSync(
      join(offline, 'closed.mjs'),
      `globalThis.fetch = async () => { throw new Error('closed network'); };`,
    );
    // No temporal and no go on PATH, an empty cache, no network.
    const place = await makePlace({
      TEMPORAL_CLI_PATH: '',
      PATH: '/nonexistent',
      XDG_CACHE_HOME: join(offline, 'cache'),
      NODE_OPTIONS: `--import=${join(offline, 'closed.mjs')}`,
    });
    cleanUp.push(() => removePlace(place));
    const service = await startAlone(place);
    await service.sees(
      /No Temporal server can be had \(download: closed network; build: there is no Go 1\.21 or newer on PATH\)/,
    );
    expect((await ask(place, '/readyz')).body).toMatchObject({ postgres: 'up', temporal: 'degraded' });
    await eventually(async () => parts(place).worker.status === 'degraded');
    const { NODE_OPTIONS: _, ...environment } = place.environment;
    const status = JSON.parse((await runToEnd(['status', '--json'], environment)).stdout);
    expect(status).toMatchObject({
      api: { status: 'up' },
      temporal: { status: 'down', detail: expect.stringContaining('put the temporal program') },
      worker: { status: 'degraded', detail: 'waits for the workflow engine' },
    });
    const { exit } = await stop(service, place);
    expect(exit).toBe(0);
  });
});
