import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Places } from '../../domain/places.js';

describe('places for work', () => {
  it('let all through, in order, never more at once than there are places, also past those that fail', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.record({ turns: fc.nat(3), fails: fc.boolean() }), { maxLength: 20 }),
        async (width, works) => {
          const places = new Places(width);
          const begun: number[] = [];
          let inside = 0;
          let most = 0;
          const ended = await Promise.allSettled(
            works.map(({ turns, fails }, at) =>
              places.use(undefined, async () => {
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

  it('refuse work where too many wait, and forget work whose signal is aborted while it waits', async () => {
    const places = new Places(1, 1);
    let finish: () => void = () => undefined;
    const first = places.use(undefined, () => new Promise<void>((resolve) => (finish = resolve)));
    const aborting = new AbortController();
    const second = places.use(aborting.signal, async () => 'second');
    await expect(places.use(undefined, async () => 'third')).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    aborting.abort(new Error('nobody waits for it any more'));
    await expect(second).rejects.toThrow('nobody waits for it any more');
    const fourth = places.use(undefined, async () => 'fourth');
    finish();
    await first;
    expect(await fourth).toBe('fourth');
  });
});
