import { allHandlersFinished, condition, defineUpdate, setHandler } from '@temporalio/workflow';

export const bareUpdate = defineUpdate<number, [object]>('bare');

/** Counts updates and does nothing else: no activity, no timer, no database. Ends after so many. */
export async function bareUpdates({ updates }: { updates: number }): Promise<void> {
  let done = 0;
  setHandler(bareUpdate, () => {
    done += 1;
    return done;
  });
  await condition(() => done >= updates);
  await condition(allHandlersFinished);
}
