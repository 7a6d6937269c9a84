import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Gate } from '../../../usecases/webhooks/gate.js';

describe('a gate', () => {
  it('lets all through, in order, never more at once than it is wide, also past those that fail', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.record({ turns: fc.nat(3), fails: fc.boolean() }), { maxLength: 20 }),
        async (width, works) => {
          const gate = new Gate(width);
          const begun: number[] = [];
          let inside = 0;
          let most = 0;
          const ended = await Promise.allSettled(
            works.map(({ turns, fails }, at) =>
              gate.pass(async () => {
                begun.push(at);
                inside += 1;
                most = Math.max(most, inside);
                for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
                inside -= 1;
                if (fails) throw new Error('failed');
              }),
            ),
          );
          expect(begun).toEqual(works.map((_, at) => at));
          expect(most).toBeLessThanOrEqual(width);
          expect(ended.map(({ status }) => status === 'rejected')).toEqual(works.map(({ fails }) => fails));
        },
      ),
    );
  });
});
