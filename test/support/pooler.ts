import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { makeTestFolder } from './testFolder.js';

/** Debian's own place of it is not on every PATH. */
const MORE_FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin'];
/** It refuses to run as root. */
const NOBODY = 65_534;
const READY_WITHIN_MS = 120_000;

export const HOW_TO_INSTALL =
  'PgBouncer is not installed: install it (apt-get install pgbouncer, brew install pgbouncer), then run this again';

/** A PgBouncer in transaction mode in front of a Postgres. */
export interface TestPooler {
  /** Postgres's connection string through the pooler; for each of its databases. */
  urlOf(url: string): string;
  version: string;
  stop(): Promise<void>;
}

/** The path of the program; undefined where it is not installed. */
export function findPgBouncer(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...MORE_FOLDERS];
  return folders.map((folder) => join(folder, 'pgbouncer')).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Starts one in front of the server that `postgresUrl` names, with few sessions, so that clients share them. */
export async function startPooler(postgresUrl: string, sessions = 4): Promise<TestPooler> {
  const program = findPgBouncer();
  if (program === undefined) throw new Error(HOW_TO_INSTALL);
  const folder = makeTestFolder('pooler');
  const port = await findFreePort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(file, settingsOf(new URL(postgresUrl), port, sessions));
  chmodSync(file, 0o644);
  const isRoot = process.getuid?.() === 0;
  const child = spawn(program, [file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
  await waitForPort(child, port, () => output);
  return {
    urlOf: (url) => {
      const through = new URL(url);
      through.host = `127.0.0.1:${port}`;
      return through.toString();
    },
    version: /PgBouncer (\S+)/i.exec(output)?.[1] ?? 'unknown',
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      // The first signal waits for clients where it is new enough, the second does not.
      const again = setTimeout(() => child.kill('SIGKILL'), 2_000);
      await ended;
      clearTimeout(again);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The settings that docs/operations.md requires, and none that compensate for the service. */
function settingsOf(postgres: URL, port: number, sessions: number): string {
  const target = [
    `host=${postgres.hostname}`,
    `port=${postgres.port}`,
    `user=${decodeURIComponent(postgres.username)}`,
    ...(postgres.password === '' ? [] : [`password='${decodeURIComponent(postgres.password)}'`]),
  ];
  return `[databases]
* = ${target.join(' ')}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = ${sessions}
server_idle_timeout = 5
`;
}

async function waitForPort(child: ChildProcess, port: number, output: () => string): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) break;
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('close', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  child.kill('SIGKILL');
  throw new Error(`PgBouncer did not start: ${output()}`);
}
