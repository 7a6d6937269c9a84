import { Misuse, StartError } from './startError.js';
import type { ChildMessage } from './supervision.js';

/** Tells the supervisor, where there is one. */
export function tellSupervisor(message: ChildMessage): void {
  if (process.connected) process.send?.(message);
}

/**
 * Runs a program's main function. A StartError ends it with exit code 1, or 2 for a Misuse, and its sentence alone, on
 * stderr or, from a supervised process, through its supervisor; any other error is a bug and shows its stack.
 */
export async function runMain(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (error instanceof StartError && process.connected) {
      await new Promise<void>((resolve) =>
        process.send?.({ type: 'failed', sentence: error.message }, () => resolve()),
      );
    } else {
      process.stderr.write(
        `${error instanceof StartError ? error.message : ((error as Error).stack ?? error)}\n`,
      );
    }
    process.exit(error instanceof Misuse ? 2 : 1);
  }
}
