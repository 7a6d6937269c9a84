import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../platform/config.js';
import { openDataDir, readPorts } from '../../../platform/embedded/dataDir.js';
import { type EmbeddedPostgres, startPostgres } from '../../../platform/embedded/postgres.js';
import { isAlive, waitUntilGone } from '../../../platform/embedded/processTable.js';
import { startTypeScript } from '../../support/childProgram.js';
import { removeCluster } from '../../support/postgres.js';
import { makeTestFolder } from '../../support/testFolder.js';

const { cacheDir } = loadConfig();
const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).toReversed()) await step();
});

/** A data directory that is deleted after the test, with its cluster. */
function dataDirectory(): string {
  const dataDir = makeTestFolder('pg');
  cleanUp.push(() => removeCluster(dataDir, clusterOf(dataDir)));
  return dataDir;
}

function clusterOf(dataDir: string): string {
  const location = join(dataDir, 'pg-location');
  return existsSync(location) ? readFileSync(location, 'utf8').trim() : join(dataDir, 'pg');
}

async function start(dataDir: string): Promise<EmbeddedPostgres> {
  const server = await startPostgres({ dataDir, cacheDir });
  cleanUp.push(() => server.stop());
  return server;
}

async function query<T>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows as T[];
  } finally {
    await client.end();
  }
}

/** Starts it in a separate process, which the test then kills. */
async function startElsewhere(dataDir: string, environment: Record<string, string> = {}) {
  const holder = startTypeScript('test/support/holdPostgres.ts', [dataDir, cacheDir], environment);
  cleanUp.push(() => void holder.child.kill('SIGKILL'));
  const [line] = await holder.sees(/\{.*\}/);
  return { holder, ...(JSON.parse(line) as { pid: number; url: string }) };
}

describe('an embedded Postgres', () => {
  it('is durable: fsync, synchronous commits and checksums are on', async () => {
    const server = await start(dataDirectory());
    const rows = await query<{ name: string; setting: string }>(
      server.url,
      `select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums')`,
    );
    expect(rows.map(({ setting }) => setting)).toEqual(['on', 'on', 'on', 'on']);
  });

  it('listens on loopback only, asks for a password, and keeps it where only its owner reads it', async () => {
    const dataDir = dataDirectory();
    const server = await start(dataDir);
    const rows = await query<{ name: string; setting: string }>(
      server.url,
      `select name, setting from pg_settings where name in ('listen_addresses', 'unix_socket_directories', 'password_encryption') order by name`,
    );
    expect(rows.map(({ setting }) => setting)).toEqual(['127.0.0.1', 'scram-sha-256', '']);
    await expect(query(server.url.replace(/:[^:@]+@/, ':wrong@'), 'select 1')).rejects.toThrow(
      /password authentication failed/,
    );
    expect(statSync(join(dataDir, 'postgres-password')).mode & 0o777).toBe(0o600);
  });

  it('comes back with its data, its password and its port', async () => {
    const dataDir = dataDirectory();
    const first = await start(dataDir);
    await query(first.url, 'create table kept as select 42 as answer');
    await first.stop();
    const second = await start(dataDir);
    expect(second.url).toBe(first.url);
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  it('takes another port when its own was taken meanwhile', async () => {
    const dataDir = dataDirectory();
    const first = await start(dataDir);
    await first.stop();
    const squatter = createServer().listen(first.port, '127.0.0.1');
    cleanUp.push(() => new Promise<void>((resolve) => squatter.close(() => resolve())));
    const second = await start(dataDir);
    expect(second.port).not.toBe(first.port);
    expect(readPorts(dataDir).postgres).toBe(second.port);
  });

  it('keeps every committed row when the postmaster is killed with -9', async () => {
    const dataDir = dataDirectory();
    const first = await start(dataDir);
    await query(first.url, 'create table kept as select generate_series(1, 1000) as n');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const second = await start(dataDir);
    expect(await query(second.url, 'select count(*)::int as n from kept')).toEqual([{ n: 1000 }]);
  });

  it('ends within seconds when the process that started it is killed with -9', async () => {
    const { holder, pid } = await startElsewhere(dataDirectory());
    holder.child.kill('SIGKILL');
    expect(await waitUntilGone(pid, 120_000)).toBe(true);
  });

  it('that was orphaned is ended and its data taken over by the next start', async () => {
    const dataDir = dataDirectory();
    // Without setpriv on PATH nothing ties the server to its starter, as on macOS.
    const { holder, pid, url } = await startElsewhere(dataDir, { PATH: '/nonexistent' });
    await query(url, 'create table kept as select 1 as n');
    holder.child.kill('SIGKILL');
    await holder.ended();
    expect(isAlive(pid)).toBe(true);
    openDataDir(dataDir).release();
    const next = await start(dataDir);
    expect(isAlive(pid)).toBe(false);
    expect(await query(next.url, 'select n from kept')).toEqual([{ n: 1 }]);
  });

  it('starts over a pid file whose number now belongs to another program, and leaves that program alone', async () => {
    const dataDir = dataDirectory();
    const first = await start(dataDir);
    await first.stop();
    const pidFile = join(first.directory, 'postmaster.pid');
    writeFileSync(pidFile, `${process.pid}\n${first.directory}\n1\n${first.port}\n\n127.0.0.1\n`, {
      mode: 0o600,
    });
    await start(dataDir);
    expect(isAlive(process.pid)).toBe(true);
  });

  it('that another version wrote is refused with a sentence', async () => {
    const dataDir = dataDirectory();
    const first = await start(dataDir);
    await first.stop();
    writeFileSync(join(first.directory, 'PG_VERSION'), '12\n');
    await expect(startPostgres({ dataDir, cacheDir })).rejects.toThrow(
      /written by Postgres 12 and this version brings Postgres 18/,
    );
  });

  it('makes its cluster again when the making was interrupted', async () => {
    const dataDir = dataDirectory();
    const first = await start(dataDir);
    await first.stop();
    rmSync(join(first.directory, 'PG_VERSION'));
    rmSync(first.directory, { recursive: true });
    writeFileSync(`${first.directory}.new`, 'half a cluster');
    await start(dataDir);
  });
});

/** A data directory below a folder that only its owner may enter. */
function closedDataDirectory(): string {
  const closed = makeTestFolder('closed');
  chmodSync(closed, 0o700);
  const dataDir = join(closed, 'data');
  mkdirSync(dataDir);
  cleanUp.push(() => {
    removeCluster(dataDir, clusterOf(dataDir));
    rmSync(closed, { recursive: true, force: true });
  });
  return dataDir;
}

describe('below a folder that is closed to others', () => {
  const isRoot = process.getuid?.() === 0;

  it('Postgres runs as the same user inside, or for root as the user nobody with its files in /var/lib/trueup', async () => {
    const dataDir = closedDataDirectory();
    const server = await start(dataDir);
    expect(server.directory).toMatch(
      isRoot ? /^\/var\/lib\/trueup\/[0-9a-f]{16}\/pg$/ : new RegExp(`^${dataDir}/pg$`),
    );
    expect(await query(server.url, 'select 1 as n')).toEqual([{ n: 1 }]);
    expect(statSync(server.directory).uid).toBe(isRoot ? 65_534 : process.getuid?.());
  });

  it('a data directory that was removed hands no rows to the next one of that name', async () => {
    const dataDir = closedDataDirectory();
    const first = await start(dataDir);
    await query(first.url, 'create table old as select 1 as n');
    await first.stop();
    rmSync(dataDir, { recursive: true });
    mkdirSync(dataDir);
    const second = await start(dataDir);
    await expect(query(second.url, 'select n from old')).rejects.toThrow(/does not exist/);
    const aside = readdirSync(join(second.directory, '..')).filter((name) => name.startsWith('pg.removed-'));
    expect(aside).toHaveLength(isRoot ? 1 : 0);
  });
});
