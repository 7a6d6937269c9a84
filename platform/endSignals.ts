import { isatty } from 'node:tty';

export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/**
 * Calls `end` on each signal that asks this process to end. SIGHUP means that the terminal was closed. A process
 * without a terminal on stdin, stdout and stderr ignores it: so does nohup start a program, and Node resets the
 * ignored signal that nohup leaves it.
 */
export function onEndSignals(end: (signal: EndSignal) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => end(signal));
  const hasTerminal = [0, 1, 2].some((fd) => isatty(fd));
  process.on('SIGHUP', () => {
    if (hasTerminal) end('SIGHUP');
  });
}

/**
 * Lets this process outlive whatever reads its output: a closed terminal, or `npm start | head`. Its end has an order
 * that an exception would break.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}
