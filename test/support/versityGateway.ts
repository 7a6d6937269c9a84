import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig, processEnvironment, type S3Settings } from '../../platform/config.js';
import { findFreePort } from '../../platform/embedded/serverProcess.js';
import { findGo } from '../../platform/embedded/temporalProgram.js';
import { makeTestFolder } from './testFolder.js';

/** Versity S3 Gateway, Apache 2.0: serves a folder by the S3 protocol and verifies every signature. */
const PACKAGE = 'github.com/versity/versitygw/cmd/versitygw';
const VERSION = 'v1.8.0';
/** A build takes two minutes of both cores, once for each machine. */
const BUILD_LIMIT_MS = 900_000;
const START_POLLS_MAX = 200;
const POLL_MS = 50;

export const HOW_TO_GET_VERSITY = 'It needs Go 1.21 or newer, to build an S3 server: install it from go.dev';

const program = () => join(loadConfig().cacheDir, `versitygw-${VERSION}`, 'versitygw');

export function isVersityGatewayThere(): boolean {
  return existsSync(program()) || findGo() !== undefined;
}

/** Builds the server through the Go module proxy, checked against Go's checksum database, unless the machine has it. */
function buildVersityGateway(): void {
  const target = program();
  if (existsSync(target)) return;
  const work = makeTestFolder('versitygw');
  const flags = ['-trimpath', '-ldflags=-s -w'];
  const { status, stderr } = spawnSync('nice', ['go', 'install', ...flags, `${PACKAGE}@${VERSION}`], {
    encoding: 'utf8',
    timeout: BUILD_LIMIT_MS,
    env: processEnvironment({
      CGO_ENABLED: '0',
      GOFLAGS: '-modcacherw',
      GOBIN: work,
      GOMODCACHE: join(work, 'mod'),
      GOCACHE: join(work, 'cache'),
    }),
  });
  if (status === 0) {
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(work, 'versitygw'), `${target}.${process.pid}`);
    renameSync(`${target}.${process.pid}`, target);
  }
  rmSync(work, { recursive: true, force: true });
  if (status !== 0) throw new Error(`go install ${PACKAGE} failed: ${stderr}`);
}

/** Starts the server with an empty bucket. */
export async function startVersityGateway(): Promise<{ settings: S3Settings; close(): Promise<void> }> {
  buildVersityGateway();
  const settings = {
    store: 's3',
    bucket: 'trueup-files',
    region: 'eu-central-1',
    accessKeyId: 'TrueupTestKey',
    secretAccessKey: 'S3cret/of+the+test',
  } as const;
  const root = makeTestFolder('s3');
  mkdirSync(join(root, settings.bucket));
  const address = `127.0.0.1:${await findFreePort()}`;
  const options = ['--region', settings.region, '--port', address, '--quiet', '--health', '/health'];
  const server = spawn(program(), [...options, 'posix', root], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ROOT_ACCESS_KEY: settings.accessKeyId, ROOT_SECRET_KEY: settings.secretAccessKey },
  });
  const close = async () => {
    if (server.exitCode === null) {
      server.kill();
      await once(server, 'exit');
    }
    rmSync(root, { recursive: true, force: true });
  };
  for (let polls = 0; polls < START_POLLS_MAX; polls += 1) {
    const answer = await fetch(`http://${address}/health`).catch(() => undefined);
    if (answer?.ok) return { settings: { ...settings, endpoint: `http://${address}` }, close };
    await sleep(POLL_MS);
  }
  await close();
  throw new Error('the S3 server does not answer');
}
