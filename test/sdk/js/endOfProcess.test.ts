import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { OpenAI } from 'openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Trueup } from '../../../sdk/js/src/node.js';
import { createBodyServer } from '../../support/bodyServer.js';
import { startTypeScript } from '../../support/childProgram.js';

const PROGRAM = 'test/sdk/js/programs/someCalls.ts';
const CALLS = 25;

/**
 * The service: counts the events that it takes by their id; answers first with the given statuses, and not at all while
 * it hangs.
 */
let server: Server;
let serviceUrl: string;
let arrived: Map<string, number>;
let refusals: { status: number; headers?: Record<string, string> }[];
let isHanging: boolean;
let spool: string;

beforeEach(async () => {
  arrived = new Map();
  refusals = [];
  isHanging = false;
  spool = mkdtempSync(join(tmpdir(), 'trueup-spool-'));
  server = createBodyServer((request, response, bytes) => {
    if (request.method !== 'POST') {
      response.writeHead(404).end();
      return;
    }
    const refusal = refusals.shift();
    if (refusal) {
      response.writeHead(refusal.status, refusal.headers).end();
      return;
    }
    const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
    for (const { request_id: id } of JSON.parse(text.toString('utf8')).events as { request_id: string }[])
      arrived.set(id, (arrived.get(id) ?? 0) + 1);
    if (isHanging) return;
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

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'sends what waits on %s, and ends by the signal',
    async (signal) => {
      const program = start({ END: 'stay' });
      await program.sees(/made/);
      program.child.kill(signal);
      expect(await program.ended()).toBe(signal);
      expect(arrived.size).toBe(CALLS);
    },
  );

  it('loses what waits at process.exit() without a flush and without a spool', async () => {
    expect(await start({ END: 'exit' }).ended()).toBe(0);
    expect(arrived.size).toBe(0);
  });

  it('loses no event that is older than the interval by kill -9 without a spool', async () => {
    const program = start({ END: 'stay', FLUSH_MS: '1000' });
    await expect.poll(() => arrived.size, { timeout: 20_000 }).toBe(CALLS);
    program.child.kill('SIGKILL');
    expect(await program.ended()).toBe('SIGKILL');
    expect(arrived.size).toBe(CALLS);
  });

  it.each(['return', 'stay'])('waits no longer than exitTimeoutMs for the service (%s)', async (end) => {
    isHanging = true;
    const program = start({ END: end, EXIT_MS: '700' });
    await program.sees(/made/);
    const began = performance.now();
    if (end === 'stay') program.child.kill('SIGTERM');
    expect(await program.ended()).toBe(end === 'stay' ? 'SIGTERM' : 0);
    const tookMs = performance.now() - began;
    expect(tookMs).toBeGreaterThan(500);
    // Far below the ten seconds after which a request is given up.
    expect(tookMs).toBeLessThan(8_000);
  });

  it('sends what waits before process.exit() where the application flushes', async () => {
    const program = start({ END: 'flush' });
    expect(await program.ended()).toBe(0);
    expect(program.output()).toContain('flushed true');
    expect(arrived.size).toBe(CALLS);
  });

  it('makes every call and ends in time when the service is away, and a spool keeps the events', async () => {
    const began = performance.now();
    const program = start({ END: 'return', SERVICE_URL: 'http://127.0.0.1:9', SPOOL: spool });
    expect(await program.ended()).toBe(0);
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(program.output()).toContain(`made ${CALLS}`);
    expect(await start({ END: 'return', SPOOL: spool, CALLS: '0' }).ended()).toBe(0);
    expect(arrived.size).toBe(CALLS);
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

  it.each(['SIGKILL', 'SIGTERM', 'SIGUSR2'] as const)(
    'loses no event with a spool when the process ends in the middle of a batch, by %s (SIGUSR2: process.exit())',
    async (signal) => {
      isHanging = true;
      const first = start({ END: 'stay', SPOOL: spool, FLUSH_MS: '10', EXIT_MS: '200' });
      await first.sees(/made/);
      // The service has read events, and the process does not know it.
      await expect.poll(() => arrived.size, { timeout: 20_000 }).toBeGreaterThan(0);
      first.child.kill(signal);
      expect(await first.ended()).toBe(signal === 'SIGUSR2' ? 0 : signal);
      isHanging = false;
      expect(await start({ END: 'return', SPOOL: spool, CALLS: '0' }).ended()).toBe(0);
      expect(arrived.size).toBe(CALLS);
      // What was sent twice has the same ids, by which it counts once.
      expect(Math.max(...arrived.values())).toBe(2);
      expect(readdirSync(spool)).toEqual([]);
    },
  );

  it('loses nothing while the service is away for a time, up to the memory for waiting events', async () => {
    refusals = Array.from({ length: 3 }, () => ({ status: 503, headers: { 'retry-after': '0' } }));
    const options = { url: serviceUrl, apiKey: 'tru_test', enforcement: false, flushAtExit: false };
    const client = () =>
      new OpenAI({
        apiKey: 'sk-test',
        fetch: async () => Response.json({ object: 'chat.completion', model: 'gpt-4o', choices: [] }),
      });
    const call = { model: 'gpt-4o', messages: [] };
    const patient = new Trueup({ ...options, flushIntervalMs: 10 });
    const observed = patient.observe(client());
    for (let index = 0; index < CALLS; index += 1) await observed.chat.completions.create(call);
    await expect.poll(() => patient.stats.sent, { timeout: 20_000 }).toBe(CALLS);
    expect(patient.stats).toMatchObject({ recorded: CALLS, dropped: 0 });
    expect(arrived.size).toBe(CALLS);
    await patient.close();
    const errors: string[] = [];
    const small = new Trueup({
      ...options,
      flushIntervalMs: 60_000,
      queueBytesMax: 2_000,
      onError: ({ message }) => errors.push(message),
    });
    const crowded = small.observe(client());
    for (let index = 0; index < CALLS; index += 1) await crowded.chat.completions.create(call);
    const { recorded, waiting, waitingBytes, dropped } = small.stats;
    expect(recorded).toBe(CALLS);
    expect(waiting + dropped).toBe(CALLS);
    expect(waitingBytes).toBeLessThanOrEqual(2_000);
    expect(dropped).toBeGreaterThan(0);
    expect(errors).toEqual(['the queue is full: events are being dropped']);
    await small.close();
  });

  it('keeps in memory what a full spool cannot take', async () => {
    const trueup = new Trueup({
      url: serviceUrl,
      apiKey: 'tru_test',
      enforcement: false,
      flushAtExit: false,
      flushIntervalMs: 60_000,
      spool: { folder: spool, bytesMax: 2_000 },
    });
    const client = trueup.observe(
      new OpenAI({
        apiKey: 'sk-test',
        fetch: async () => Response.json({ object: 'chat.completion', model: 'gpt-4o', choices: [] }),
      }),
    );
    for (let index = 0; index < CALLS; index += 1)
      await client.chat.completions.create({ model: 'gpt-4o', messages: [] });
    const { waiting } = trueup.stats;
    expect(waiting).toBeGreaterThan(0);
    expect(waiting).toBeLessThan(CALLS);
    expect(await trueup.close()).toBe(true);
    expect(arrived.size).toBe(CALLS);
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
