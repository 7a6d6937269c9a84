import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { isAlive, waitUntilGone } from '../../../platform/embedded/processTable.js';
import { type EmbeddedTemporal, findReason, startTemporal } from '../../../platform/embedded/temporal.js';
import { isTemporalServing } from '../../../platform/embedded/temporalHealth.js';
import { readTemporalVersion } from '../../../platform/embedded/temporalProgram.js';
import { startTypeScript } from '../../support/childProgram.js';
import { makePausedTemporal } from '../../support/pausedTemporal.js';
import { makeTestFolder } from '../../support/testFolder.js';

let dataDir: string;
const cleanUp: (() => Promise<void> | void)[] = [];
beforeEach(() => {
  dataDir = makeTestFolder('temporal');
});
afterEach(async () => {
  for (const step of cleanUp.splice(0).toReversed()) await step();
  rmSync(dataDir, { recursive: true, force: true });
});

async function suiteProgram() {
  const program = inject('temporalProgram');
  const serverVersion = (await readTemporalVersion(program))?.server ?? '';
  return { program, serverVersion, origin: 'cache' as const };
}

async function start(): Promise<EmbeddedTemporal> {
  const server = await startTemporal({ program: await suiteProgram(), dataDir, namespace: 'trueup' });
  cleanUp.push(() => server.stop());
  return server;
}

async function withClient<T>(address: string, work: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await work(new Client({ connection, namespace: 'trueup' }));
  } finally {
    await connection.close();
  }
}

/** A workflow without a worker: it waits in the server's file. */
const startWaiting = (client: Client) =>
  client.workflow.start('nobody', { taskQueue: 'none', workflowId: 'waiting' });

describe('an embedded Temporal', () => {
  it('keeps its files to their owner, those of an earlier version too', async () => {
    const first = await start();
    const folder = join(dataDir, 'temporal');
    const modes = () => readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777);
    expect(modes().length).toBeGreaterThan(1);
    expect(modes().every((mode) => mode === 0o600)).toBe(true);
    await first.stop();
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644);
    chmodSync(folder, 0o755);
    await start();
    expect(modes().every((mode) => mode === 0o600)).toBe(true);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it('comes back on its port with its workflows, at once after it was stopped', async () => {
    const first = await start();
    await withClient(first.address, startWaiting);
    await first.stop();
    const second = await start();
    expect(second.address).toBe(first.address);
    const status = await withClient(second.address, (client) =>
      client.workflow.getHandle('waiting').describe(),
    );
    expect(status.status.name).toBe('RUNNING');
  });

  it('comes back with its workflows when it was killed with -9', async () => {
    const first = await start();
    await withClient(first.address, startWaiting);
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const second = await start();
    const status = await withClient(second.address, (client) =>
      client.workflow.getHandle('waiting').describe(),
    );
    expect(status.status.name).toBe('RUNNING');
  });

  it('ends within seconds when the process that started it is killed with -9', async () => {
    const holder = startTypeScript('test/support/holdTemporal.ts', [
      dataDir,
      JSON.stringify(await suiteProgram()),
    ]);
    cleanUp.push(() => void holder.child.kill('SIGKILL'));
    const [, pid] = await holder.sees(/pid (\d+)/);
    holder.child.kill('SIGKILL');
    expect(await waitUntilGone(Number(pid), 120_000)).toBe(true);
  });

  it('that was orphaned is ended by the next start', async () => {
    const program = JSON.stringify(await suiteProgram());
    // Without setpriv on PATH nothing ties the server to its starter, as on macOS.
    const holder = startTypeScript('test/support/holdTemporal.ts', [dataDir, program], {
      PATH: '/nonexistent',
    });
    const [, pid] = await holder.sees(/pid (\d+)/);
    holder.child.kill('SIGKILL');
    await holder.ended();
    expect(isAlive(Number(pid))).toBe(true);
    const next = await start();
    expect(isAlive(Number(pid))).toBe(false);
    expect(await isTemporalServing(next.address)).toBe(true);
  });

  it('whose port another program takes first starts on another one, with its workflows', async () => {
    const first = await start();
    await withClient(first.address, startWaiting);
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const real = await suiteProgram();
    const paused = makePausedTemporal(dataDir, real.program);
    const starting = startTemporal({
      program: { ...real, program: paused.program },
      dataDir,
      namespace: 'trueup',
    });
    const { port, holder } = await paused.takePort();
    cleanUp.push(() => void holder.close());
    const second = await starting;
    cleanUp.push(() => second.stop());
    expect(first.address).toBe(`127.0.0.1:${port}`);
    expect(second.address).not.toBe(first.address);
    const status = await withClient(second.address, (client) =>
      client.workflow.getHandle('waiting').describe(),
    );
    expect(status.status.name).toBe('RUNNING');
  });

  it('that loses its ports repeatedly is given up, with its own reason', async () => {
    const lost = 'level=ERROR msg="Failed to start gRPC listener" error="bind: address already in use"';
    const program = join(dataDir, 'lossy-temporal');
    const script = ['#!/bin/sh', `echo 'start' >> '${dataDir}/starts'`, "cat >&2 <<'END'"];
    const panic = [lost, 'panic: runtime error: nil pointer', '', 'main.go:18 +0x96'];
    writeFileSync(program, [...script, ...panic, 'END', 'exit 2', ''].join('\n'), { mode: 0o755 });
    await expect(
      startTemporal({
        program: { program, serverVersion: '1.29.1', origin: 'cache' },
        dataDir,
        namespace: 'trueup',
      }),
    ).rejects.toThrow(`Temporal did not start: ${lost} / panic: runtime error: nil pointer. Its log is`);
    expect(readFileSync(join(dataDir, 'starts'), 'utf8').trim().split('\n')).toHaveLength(5);
  });

  it('that cannot start prints why and where its log is', async () => {
    const program = { program: '/bin/false', serverVersion: '1.29.1', origin: 'cache' as const };
    await expect(startTemporal({ program, dataDir, namespace: 'trueup' })).rejects.toThrow(
      /^Temporal did not start: exit code 1. Its log is .*temporal.log.$/,
    );
  });
});

describe('the reason of a server that ended', () => {
  it('is the first line of a panic with what was logged before it, else its last line', () => {
    const stack = ['goroutine 1 [running]:', 'main.main()', '\tmain.go:18 +0x96'].join('\n');
    expect(findReason(`panic: no port\n\n${stack}\n`)).toBe('panic: no port');
    expect(findReason(`early\nlistener failed\npanic: nil\n${stack}\n`)).toBe('listener failed / panic: nil');
    expect(findReason('early\nlate\n\n')).toBe('late');
    expect(findReason('\n')).toBeUndefined();
  });
});

describe('the health question', () => {
  it('is answered yes by a server that serves, and no where nothing listens', async () => {
    expect(await isTemporalServing(inject('temporalAddress'))).toBe(true);
    expect(await isTemporalServing('127.0.0.1:1')).toBe(false);
  });

  it('is answered no by something that is not Temporal, and within its limit by something that is silent', async () => {
    const { createServer } = await import('node:net');
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    cleanUp.push(() => void silent.close());
    const { port } = silent.address() as { port: number };
    expect(await isTemporalServing(`127.0.0.1:${port}`, 300)).toBe(false);
  });
});
