import { Command } from 'commander';
import { runInForeground } from '../service/foreground.js';
import type { Terminal } from '../terminal/terminal.js';

/** Runs everything in one process group: the embedded servers where no address is set, the API and the worker. */
export function command(terminal: Terminal): Command {
  return new Command('start').action(() => runInForeground(terminal.readConfig()));
}
