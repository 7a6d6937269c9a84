import type { Readable, Writable } from 'node:stream';
import type { Config } from '../../platform/config.js';

/** What a command reads its settings from, writes to, and can ask. */
export interface Terminal {
  readConfig(): Config;
  input: Readable;
  output: Writable;
  /** False: nobody can be asked. */
  isInteractive: boolean;
  now(): Date;
  /** 1 once a command has found something that asks for action, or has failed. */
  exitCode: 0 | 1;
}

export function print(terminal: Terminal, text: string): void {
  terminal.output.write(`${text}\n`);
}

export function printJson(terminal: Terminal, value: unknown): void {
  print(terminal, JSON.stringify(value, null, 2));
}
