import { allHandlersFinished, condition, defineUpdate, setHandler } from '@temporalio/workflow';

export const bareUpdate = defineUpdate<number, [object]>('bare');

/** Counts updates without an activity, timer or database, and ends after `updates` of them. */
export async function bareUpdates({ updates }: { updates: number }): Promise<void> {
  let done = 0;
  setHandler(bareUpdate, () => {
    done += 1;
    return done;
  });
  await condition(() => done >= updates);
  await condition(allHandlersFinished);
}
