import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ChildProgram } from '../../../support/childProgram.js';
import { startPython } from '../../../support/python.js';
import { type EventService, startEventService } from '../../support/eventService.js';

const PROGRAM = 'test/sdk/python/programs/some_calls.py';
const CALLS = 25;

let service: EventService;

beforeEach(async () => {
  service = await startEventService();
});
afterEach(() => service.close());

/** Ways to make a child: by the system alone, by multiprocessing's start methods and by its pools. */
export const FORKS = ['os', 'fork', 'spawn', 'forkserver', 'pool', 'executor'] as const;

/** The README's promises on the end of a process, by this interpreter. */
export function describeEndOfProcess(
  name: string,
  python: () => string,
  forks: readonly (typeof FORKS)[number][] = FORKS,
): void {
  const start = (environment: Record<string, string>): ChildProgram =>
    startPython(python(), PROGRAM, { SERVICE_URL: service.url, CALLS: String(CALLS), ...environment });

  /** Starts a program that ends by a signal while the service holds its first batch. */
  async function startInABatch(environment: Record<string, string>): Promise<ChildProgram> {
    const isHeld = service.holdNext();
    const program = start({ END: 'stay', INTERVAL: '0.05', ...environment });
    await isHeld;
    await program.sees(/made/);
    return program;
  }

  describe(`the end of a process with the Python package, ${name}`, () => {
    it.each([
      ['return', 0],
      ['exit', 3],
      ['raise', 1],
    ])('sends what waits when the interpreter ends (%s)', async (end, code) => {
      expect(await start({ END: end }).ended()).toBe(code);
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

    it.each(['before', 'after'])(
      "leaves SIGTERM to the application's handler, set %s the package, and sends what waits",
      async (handler) => {
        const program = start({ END: 'stay', HANDLER: handler });
        await program.sees(/made/);
        program.child.kill('SIGTERM');
        expect(await program.ended()).toBe(7);
        expect(program.output()).toContain('handled');
        expect(service.arrived.size).toBe(CALLS);
      },
    );

    it('ends on SIGTERM while threads record, whichever lock they hold', async () => {
      const program = start({ END: 'stay', BUSY_THREADS: '2', CALLS: '1' });
      await program.sees(/made/);
      const began = performance.now();
      program.child.kill('SIGTERM');
      expect(await program.ended()).toBe('SIGTERM');
      expect(performance.now() - began).toBeLessThan(30_000);
    });

    it('sends what waits before os._exit() where the application flushes', async () => {
      const program = start({ END: 'flush' });
      expect(await program.ended()).toBe(0);
      expect(program.output()).toContain('flushed True');
      expect(service.arrived.size).toBe(CALLS);
    });

    it('ends in time when the service is away or never answers', async () => {
      const began = performance.now();
      expect(await start({ END: 'return', SERVICE_URL: 'http://127.0.0.1:9' }).ended()).toBe(0);
      void service.holdNext();
      expect(await start({ END: 'return' }).ended()).toBe(0);
      expect(performance.now() - began).toBeLessThan(30_000);
    });

    it.each(['os_exit', 'stay'])(
      'loses no event with a spool, by os._exit() or kill -9 (%s)',
      async (end) => {
        const first = start({ END: end, SPOOL: service.spool });
        await first.sees(/made/);
        if (end === 'stay') first.child.kill('SIGKILL');
        expect(await first.ended()).toBe(end === 'stay' ? 'SIGKILL' : 0);
        expect(service.arrived.size).toBe(0);
        expect(await start({ END: 'return', SPOOL: service.spool, CALLS: '1' }).ended()).toBe(0);
        expect(service.arrived.size).toBe(CALLS + 1);
        expect(readdirSync(service.spool)).toEqual([]);
      },
    );

    it.each(['SIGKILL', 'SIGTERM'] as const)(
      'loses no event with a spool by %s within a batch, and a batch that had no answer is sent again',
      async (signal) => {
        const first = await startInABatch({ SPOOL: service.spool });
        first.child.kill(signal);
        expect(await first.ended()).toBe(signal);
        const before = service.arrived.size;
        expect(before).toBe(0);
        expect(await start({ END: 'return', SPOOL: service.spool, CALLS: '0' }).ended()).toBe(0);
        expect([...service.arrived.values()]).toEqual(Array.from({ length: CALLS }, () => 1));
      },
    );

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

    it.each(forks)(
      'sends the events of a parent and of its child once each, without and with a spool (%s)',
      async (fork) => {
        for (const environment of [{}, { SPOOL: service.spool }]) {
          service.arrived.clear();
          const program = start({ END: 'return', FORK: fork, ...environment });
          expect(await program.ended(), program.output()).toBe(0);
          expect([...service.arrived.values()]).toEqual(Array.from({ length: 2 * CALLS }, () => 1));
          expect(readdirSync(service.spool)).toEqual([]);
        }
      },
    );
  });
}
