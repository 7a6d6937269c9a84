import { describe, expect, it } from 'vitest';
import { Lanes } from '../../../usecases/claims/moveClaim.js';

/** Work that ends on request. */
function held() {
  let end: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { done, end };
}

describe('a lane', () => {
  it('runs one piece of work of a name at a time, in the order in which they came', async () => {
    const lanes = new Lanes();
    const told: string[] = [];
    const first = held();
    const work = (name: string, until?: Promise<void>) =>
      lanes.pass('a', 60_000, async (hasWaited) => {
        told.push(`${name} ${hasWaited}`);
        await until;
        told.push(`${name} ends`);
        return name;
      });
    const all = [work('one', first.done), work('two'), work('three')];
    await lanes.pass('b', 60_000, async () => told.push('another'));
    expect(told).toEqual(['one false', 'another']);
    first.end();
    expect(await Promise.all(all)).toEqual([{ given: 'one' }, { given: 'two' }, { given: 'three' }]);
    expect(told.slice(2)).toEqual(['one ends', 'two true', 'two ends', 'three true', 'three ends']);
    expect(await lanes.pass('a', 0, async (hasWaited) => hasWaited)).toEqual({ given: false });
  });

  it('is released by work that waits too long and by work that fails; those behind keep their turn', async () => {
    const lanes = new Lanes();
    const first = held();
    const failing = lanes.pass('a', 60_000, async () => {
      await first.done;
      throw new Error('broken');
    });
    const impatient = lanes.pass('a', 1, async () => 'never');
    const patient = lanes.pass('a', 60_000, async () => 'done');
    expect(await impatient).toBeUndefined();
    first.end();
    await expect(failing).rejects.toThrow('broken');
    expect(await patient).toEqual({ given: 'done' });
  });
});
