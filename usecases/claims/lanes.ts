/**
 * Lets one piece of work of a name go on at a time in this process: a claim's workflow takes a few moves at once and no
 * more, and of many that came together only the first can be carried out.
 */
export class Lanes {
  readonly #last = new Map<string, Promise<void>>();

  /** What `work` gives, which is told whether it had to wait; undefined where its turn did not come in time. */
  async pass<T>(
    name: string,
    waitMs: number,
    work: (hasWaited: boolean) => Promise<T>,
  ): Promise<{ given: T } | undefined> {
    const before = this.#last.get(name);
    let release: () => void = () => undefined;
    const done = new Promise<void>((resolve) => {
      release = resolve;
    });
    const mine = (before ?? Promise.resolve()).then(() => done);
    this.#last.set(name, mine);
    try {
      if (before && !(await isWithin(before, waitMs))) return undefined;
      return { given: await work(before !== undefined) };
    } finally {
      release();
      // Whoever came after has this one in mind.
      if (this.#last.get(name) === mine) void mine.then(() => this.#forget(name, mine));
    }
  }

  #forget(name: string, ended: Promise<void>): void {
    if (this.#last.get(name) === ended) this.#last.delete(name);
  }
}

async function isWithin(work: Promise<void>, waitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), waitMs);
  });
  const isDone = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return isDone;
}
