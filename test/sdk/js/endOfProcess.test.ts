import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTypeScript } from '../../support/childProgram.js';

const PROGRAM = 'test/sdk/js/programs/someCalls.ts';
const CALLS = 25;

/** The service: counts the events that it takes by their id; answers first with the given statuses. */
let server: Server;
let serviceUrl: string;
let arrived: Map<string, number>;
let refusals: { status: number; headers?: Record<string, string> }[];
let spool: string;

beforeEach(async () => {
  arrived = new Map();
  refusals = [];
  spool = mkdtempSync(join(tmpdir(), 'trueup-spool-'));
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method !== 'POST') {
      response.writeHead(404).end();
      return;
    }
    const refusal = refusals.shift();
    if (refusal) {
      response.writeHead(refusal.status, refusal.headers).end();
      return;
    }
    const bytes = Buffer.concat(chunks);
    const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
    for (const { request_id: id } of JSON.parse(text.toString('utf8')).events as { request_id: string }[])
      arrived.set(id, (arrived.get(id) ?? 0) + 1);
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"accepted":1}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  serviceUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(spool, { recursive: true, force: true });
});

function start(environment: Record<string, string>) {
  return startTypeScript(PROGRAM, [], { SERVICE_URL: serviceUrl, CALLS: String(CALLS), ...environment });
}

describe('the end of a process with the JavaScript package', () => {
  it('sends what waits when the process ends by itself', async () => {
    expect(await start({ END: 'return' }).ended()).toBe(0);
    expect(arrived.size).toBe(CALLS);
  });

  it('sends what waits on SIGTERM, and ends by the signal', async () => {
    const program = start({ END: 'stay' });
    await program.sees(/made/);
    program.child.kill('SIGTERM');
    expect(await program.ended()).toBe('SIGTERM');
    expect(arrived.size).toBe(CALLS);
  });

  it('sends what waits before process.exit() where the application flushes', async () => {
    const program = start({ END: 'flush' });
    expect(await program.ended()).toBe(0);
    expect(program.output()).toContain('flushed true');
    expect(arrived.size).toBe(CALLS);
  });

  it('ends in time when the service is away', async () => {
    const began = performance.now();
    const program = start({ END: 'return', SERVICE_URL: 'http://127.0.0.1:9' });
    expect(await program.ended()).toBe(0);
    expect(performance.now() - began).toBeLessThan(30_000);
  });

  it.each(['exit', 'stay'])('loses no event with a spool, by process.exit() or kill -9 (%s)', async (end) => {
    const first = start({ END: end, SPOOL: spool });
    await first.sees(/made/);
    if (end === 'stay') first.child.kill('SIGKILL');
    expect(await first.ended()).toBe(end === 'stay' ? 'SIGKILL' : 0);
    expect(arrived.size).toBe(0);
    expect(await start({ END: 'return', SPOOL: spool, CALLS: '1' }).ended()).toBe(0);
    expect(arrived.size).toBe(CALLS + 1);
    expect(readdirSync(spool)).toEqual([]);
  });

  it('waits as long as the service asks for, and sends each event once', async () => {
    refusals = [{ status: 429, headers: { 'retry-after': '1' } }];
    const program = start({ END: 'stay', SPOOL: spool });
    await program.sees(/made/);
    program.child.kill('SIGTERM');
    await program.ended();
    expect(arrived.size).toBe(0);
    expect(await start({ END: 'return', SPOOL: spool, CALLS: '0' }).ended()).toBe(0);
    expect([...arrived.values()]).toEqual(Array.from({ length: CALLS }, () => 1));
  });
});
