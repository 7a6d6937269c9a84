import { Command } from 'commander';
import { bridge } from '../mcp/bridge.js';
import { runningServiceOf } from '../service/runningService.js';
import type { Terminal } from '../terminal/terminal.js';

/** Serves the tools of a running service to an assistant, over standard input and output. */
export function command(terminal: Terminal): Command {
  return new Command('mcp').action(() =>
    bridge(runningServiceOf(terminal.readConfig(), 'mcp'), terminal.input, terminal.output),
  );
}
