import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import {
  acquireTemporalProgram,
  cachedTemporal,
  downloadTemporal,
  findTemporalProgram,
  isRecentEnough,
  parseTemporalVersion,
  TEMPORAL_ARCHIVES,
  TEMPORAL_CLI_VERSION,
  TEMPORAL_SERVER_VERSION,
} from '../../../platform/embedded/temporalProgram.js';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';

let folder: string;
const cleanUp: (() => void)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trueup-temporal-program-'));
});
afterEach(() => {
  for (const step of cleanUp.splice(0)) step();
  rmSync(folder, { recursive: true, force: true });
});

/** A program that answers --version with a text. */
function fakeProgram(path: string, version: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\necho '${version}'\n`);
  chmodSync(path, 0o755);
  return path;
}

const PINNED_TEXT = `temporal version ${TEMPORAL_CLI_VERSION} (Server ${TEMPORAL_SERVER_VERSION}, UI 2.42.1)`;

describe('the pinned release', () => {
  it('is the one that tools/temporal builds', () => {
    const goMod = readFileSync(join(PROJECT_ROOT, 'tools/temporal/go.mod'), 'utf8');
    expect(goMod).toContain(`github.com/temporalio/cli v${TEMPORAL_CLI_VERSION} `);
    expect(goMod).toContain(`go.temporal.io/server v${TEMPORAL_SERVER_VERSION} `);
  });

  it('is pinned by a sha256 of its own for every platform', () => {
    const sums = Object.values(TEMPORAL_ARCHIVES).map(({ sha256 }) => sha256);
    expect(Object.keys(TEMPORAL_ARCHIVES).toSorted()).toEqual([
      'darwin-arm64',
      'darwin-x64',
      'linux-arm64',
      'linux-x64',
    ]);
    for (const sum of sums) expect(sum).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(sums).size).toBe(sums.length);
  });

  it.each([
    ['temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)', { cli: '1.5.1', server: '1.29.1' }, true],
    ['temporal version 0.0.0-DEV (Server 1.31.2, UI 2.44.0)', { cli: '0.0.0-DEV', server: '1.31.2' }, true],
    ['temporal version 1.3.0 (Server 1.27.1, UI 2.36.0)', { cli: '1.3.0', server: '1.27.1' }, false],
  ])('%s is read, and new enough or not', (text, version, recent) => {
    expect(parseTemporalVersion(text)).toEqual(version);
    expect(isRecentEnough(version)).toBe(recent);
  });
});

describe('a program is taken', () => {
  const cacheDir = () => join(folder, 'cache');

  it('from TEMPORAL_CLI_PATH first', async () => {
    fakeProgram(cachedTemporal(cacheDir()), PINNED_TEXT);
    const named = fakeProgram(join(folder, 'named'), 'temporal version 1.6.0 (Server 1.30.1, UI 2.43.0)');
    expect(await findTemporalProgram({ temporalCliPath: named, cacheDir: cacheDir() })).toEqual({
      program: named,
      serverVersion: '1.30.1',
      origin: 'TEMPORAL_CLI_PATH',
    });
  });

  it('from PATH when it is new enough, else from the machine’s cache', async () => {
    const cached = fakeProgram(cachedTemporal(cacheDir()), PINNED_TEXT);
    const config = { temporalCliPath: undefined, cacheDir: cacheDir() };
    const bin = join(folder, 'bin');
    const onPath = fakeProgram(join(bin, 'temporal'), 'temporal version 1.8.2 (Server 1.31.2, UI 2.44.0)');
    const searchPath = `/nowhere:${bin}`;
    expect(await findTemporalProgram(config, searchPath)).toEqual({
      program: onPath,
      serverVersion: '1.31.2',
      origin: 'PATH',
    });
    fakeProgram(onPath, 'temporal version 1.1.0 (Server 1.25.0, UI 2.30.0)');
    expect(await findTemporalProgram(config, searchPath)).toEqual({
      program: cached,
      serverVersion: TEMPORAL_SERVER_VERSION,
      origin: 'cache',
    });
    rmSync(cached);
    expect(await findTemporalProgram(config, searchPath)).toBeUndefined();
  });

  it('never from a TEMPORAL_CLI_PATH that is something else, or too old', async () => {
    const old = fakeProgram(join(folder, 'old'), 'temporal version 1.1.0 (Server 1.25.0, UI 2.30.0)');
    const config = { cacheDir: cacheDir() };
    await expect(findTemporalProgram({ ...config, temporalCliPath: '/bin/true' })).rejects.toThrow(
      'TEMPORAL_CLI_PATH is "/bin/true", which is not a temporal program that runs: give the path of temporal 1.5 or newer.',
    );
    await expect(findTemporalProgram({ ...config, temporalCliPath: old })).rejects.toThrow(
      /is temporal 1.1.0 with server 1.25.0/,
    );
  });

  it('that another start has made meanwhile, without making it again', async () => {
    fakeProgram(cachedTemporal(cacheDir()), PINNED_TEXT);
    const steps: string[] = [];
    const program = await acquireTemporalProgram({ cacheDir: cacheDir() }, (step) => steps.push(step));
    expect(program.origin).toBe('cache');
    expect(steps).toEqual([]);
  });

  it('of the suite serves the version that it states', () => {
    const text = execFileSync(inject('temporalProgram'), ['--version'], { encoding: 'utf8' });
    expect(parseTemporalVersion(text)).toBeDefined();
  });
});

describe('a download', () => {
  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanUp.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/temporal.tar.gz`;
  }

  function archive(): Buffer {
    fakeProgram(join(folder, 'packed/temporal'), PINNED_TEXT);
    return execFileSync('tar', ['-czf', '-', '-C', join(folder, 'packed'), 'temporal']);
  }

  const target = () => join(folder, 'cache/temporal-x/temporal');

  it('is unpacked when its sha256 is the pinned one', async () => {
    const bytes = archive();
    const url = await serve((_request, response) => response.end(bytes));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    await downloadTemporal({ target: target(), source: { url, sha256 } });
    expect(parseTemporalVersion(execFileSync(target(), ['--version'], { encoding: 'utf8' }))?.server).toBe(
      TEMPORAL_SERVER_VERSION,
    );
    expect(readdirSync(dirname(target()))).toEqual(['temporal']);
  });

  it('with another sha256 is discarded and shows both sums', async () => {
    const bytes = archive();
    const url = await serve((_request, response) => response.end(bytes));
    const sha256 = '0'.repeat(64);
    await expect(downloadTemporal({ target: target(), source: { url, sha256 } })).rejects.toThrow(
      new RegExp(`has the sha256 ${createHash('sha256').update(bytes).digest('hex')}, not the pinned 0{64}`),
    );
    expect(existsSync(target())).toBe(false);
  });

  it.each(['never answers', 'stops in the middle'])('from a server that %s is given up', async (fault) => {
    const url = await serve((_request, response) => {
      if (fault === 'stops in the middle') response.writeHead(200, { 'content-length': '1000' }).write('x');
    });
    const source = { url, sha256: '0'.repeat(64) };
    await expect(downloadTemporal({ target: target(), source, silenceLimitMs: 200 })).rejects.toThrow(
      /no answer for 0.2 s/,
    );
    expect(existsSync(target())).toBe(false);
  });

  it('that the server refuses shows the status', async () => {
    const url = await serve((_request, response) => response.writeHead(404).end());
    const source = { url, sha256: '0'.repeat(64) };
    await expect(downloadTemporal({ target: target(), source })).rejects.toThrow(/answered 404/);
  });
});
