import { readdirSync } from 'node:fs';
import { OpenAI } from 'openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Trueup } from '../../../sdk/js/src/node.js';
import { startTypeScript } from '../../support/childProgram.js';
import { type EventService, startEventService } from '../support/eventService.js';

const PROGRAM = 'test/sdk/js/programs/someCalls.ts';
const CALLS = 25;

let service: EventService;

beforeEach(async () => {
  service = await startEventService();
});
afterEach(() => service.close());

function start(environment: Record<string, string>) {
  return startTypeScript(PROGRAM, [], { SERVICE_URL: service.url, CALLS: String(CALLS), ...environment });
}

describe('the end of a process with the JavaScript package', () => {
  it('sends what waits when the process ends by itself', async () => {
    expect(await start({ END: 'return' }).ended()).toBe(0);
    expect(service.arrived.size).toBe(CALLS);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'sends what waits on %s, and ends by the signal',
    async (signal) => {
      const program = start({ END: 'stay' });
      await program.sees(/made/);
      program.child.kill(signal);
      expect(await program.ended()).toBe(signal);
      expect(service.arrived.size).toBe(CALLS);
    },
  );

  it('loses what waits at process.exit() without a flush and without a spool', async () => {
    expect(await start({ END: 'exit' }).ended()).toBe(0);
    expect(service.arrived.size).toBe(0);
  });

  it('loses no event that is older than the interval by kill -9 without a spool', async () => {
    const program = start({ END: 'stay', FLUSH_MS: '1000' });
    await expect.poll(() => service.arrived.size, { timeout: 20_000 }).toBe(CALLS);
    program.child.kill('SIGKILL');
    expect(await program.ended()).toBe('SIGKILL');
    expect(service.arrived.size).toBe(CALLS);
  });

  it.each(['return', 'stay'])('waits no longer than exitTimeoutMs for the service (%s)', async (end) => {
    service.isHanging = true;
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
    expect(service.arrived.size).toBe(CALLS);
  });

  it('makes every call and ends in time when the service is away, and a spool keeps the events', async () => {
    const began = performance.now();
    const program = start({ END: 'return', SERVICE_URL: 'http://127.0.0.1:9', SPOOL: service.spool });
    expect(await program.ended()).toBe(0);
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(program.output()).toContain(`made ${CALLS}`);
    expect(await start({ END: 'return', SPOOL: service.spool, CALLS: '0' }).ended()).toBe(0);
    expect(service.arrived.size).toBe(CALLS);
  });

  it.each(['exit', 'stay'])('loses no event with a spool, by process.exit() or kill -9 (%s)', async (end) => {
    const first = start({ END: end, SPOOL: service.spool });
    await first.sees(/made/);
    if (end === 'stay') first.child.kill('SIGKILL');
    expect(await first.ended()).toBe(end === 'stay' ? 'SIGKILL' : 0);
    expect(service.arrived.size).toBe(0);
    expect(await start({ END: 'return', SPOOL: service.spool, CALLS: '1' }).ended()).toBe(0);
    expect(service.arrived.size).toBe(CALLS + 1);
    expect(readdirSync(service.spool)).toEqual([]);
  });

  it.each(['SIGKILL', 'SIGTERM', 'SIGUSR2'] as const)(
    'loses no event with a spool when the process ends in the middle of a batch, by %s (SIGUSR2: process.exit())',
    async (signal) => {
      service.isHanging = true;
      const first = start({ END: 'stay', SPOOL: service.spool, FLUSH_MS: '10', EXIT_MS: '200' });
      await first.sees(/made/);
      // The service has read events, and the process does not know it.
      await expect.poll(() => service.arrived.size, { timeout: 20_000 }).toBeGreaterThan(0);
      first.child.kill(signal);
      expect(await first.ended()).toBe(signal === 'SIGUSR2' ? 0 : signal);
      service.isHanging = false;
      expect(await start({ END: 'return', SPOOL: service.spool, CALLS: '0' }).ended()).toBe(0);
      expect(service.arrived.size).toBe(CALLS);
      // An event that is sent twice has the same id, by which it counts once.
      expect(Math.max(...service.arrived.values())).toBe(2);
      expect(readdirSync(service.spool)).toEqual([]);
    },
  );

  it('loses nothing while the service is away for a time, up to the memory for waiting events', async () => {
    service.refusals = Array.from({ length: 3 }, () => ({ status: 503, headers: { 'retry-after': '0' } }));
    const options = { url: service.url, apiKey: 'tru_test', enforcement: false, flushAtExit: false };
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
    expect(service.arrived.size).toBe(CALLS);
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
      url: service.url,
      apiKey: 'tru_test',
      enforcement: false,
      flushAtExit: false,
      flushIntervalMs: 60_000,
      spool: { folder: service.spool, bytesMax: 2_000 },
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
    expect(service.arrived.size).toBe(CALLS);
  });

  it('waits as long as the service asks for, and sends each event once', async () => {
    service.refusals = [{ status: 429, headers: { 'retry-after': '1' } }];
    const program = start({ END: 'stay', SPOOL: service.spool });
    await program.sees(/made/);
    program.child.kill('SIGTERM');
    await program.ended();
    expect(service.arrived.size).toBe(0);
    expect(await start({ END: 'return', SPOOL: service.spool, CALLS: '0' }).ended()).toBe(0);
    expect([...service.arrived.values()]).toEqual(Array.from({ length: CALLS }, () => 1));
  });
});
