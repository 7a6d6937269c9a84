import { isatty } from 'node:tty';
import { Misuse, StartError } from './startError.js';
import type { ChildMessage } from './supervision.js';

export function notifySupervisor(message: ChildMessage): void {
  if (process.connected) process.send?.(message);
}

/**
 * Runs a program's main function. A StartError ends it with exit code 1, or 2 for a Misuse, and prints only its
 * sentence, on stderr or, from a supervised process, through its supervisor; any other error is a bug and prints its
 * stack.
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

export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/**
 * Calls `end` on each signal that ends this process. SIGHUP means that the terminal was closed. A process without a
 * terminal on stdin, stdout and stderr ignores it: nohup starts a program so, and Node resets the ignored signal.
 */
export function onEndSignals(end: (signal: EndSignal) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => end(signal));
  const hasTerminal = [0, 1, 2].some((fd) => isatty(fd));
  process.on('SIGHUP', () => {
    if (hasTerminal) end('SIGHUP');
  });
}

/**
 * Lets this process outlive the reader of its output, such as a closed terminal or `npm start | head`, because an
 * exception would break its orderly shutdown.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}
