import type { Readable, Writable } from 'node:stream';
import { Option } from 'commander';
import type { Logger } from 'pino';
import { parseInstant } from '../../domain/period.js';
import { findProvider, PROVIDERS, type Provider } from '../../domain/providers.js';
import type { Config } from '../../platform/config.js';
import { Misuse } from '../../platform/startError.js';

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

/** By any of the provider's names. */
export function providerOption(description: string): Option {
  return new Option('--provider <name>', `${description}: ${PROVIDERS.join(', ')}`).argParser(
    (text): Provider => {
      const provider = findProvider(text);
      if (!provider) throw new Misuse(`--provider is ${text}: give one of ${PROVIDERS.join(', ')}.`);
      return provider;
    },
  );
}

export function organizationOption(): Option {
  return new Option('--org <org>', 'id or name of the organization, where there are several');
}

/** `name` is the option without its dashes. */
export function dayOption(name: string, description: string): Option {
  return new Option(`--${name} <day>`, description).argParser((text) => {
    if (/^\d{4}-\d{2}-\d{2}$/.test(text) && parseInstant(text)) return text;
    throw new Misuse(`--${name} is ${text}: give a UTC day such as 2026-01-31.`);
  });
}

export function jsonOption(): Option {
  return new Option('--json', 'as JSON');
}

/** What a start shows: ticks with times to a person, JSON lines to a program. */
export interface Screen {
  /** Shows a step with its time when it is done; `since` where it began before (performance.now()). */
  step<T>(name: string, work: Promise<T>, since?: number): Promise<T>;
  /** One line that a person should see now. */
  note(text: string): void;
  /** One line about what does not work and asks for somebody. */
  warn(text: string): void;
  /** The last block: where to go. `fields` is what a program reads instead of `lines`. */
  ready(title: string, lines: readonly (readonly [label: string, text: string])[], fields: object): void;
}

export function createScreen(isTerminal: boolean, logger: Logger): Screen {
  return isTerminal ? terminalScreen() : jsonScreen(logger);
}

function terminalScreen(): Screen {
  const write = (line: string) => process.stdout.write(`${line}\n`);
  return {
    async step(name, work, since = performance.now()) {
      const result = await work;
      write(`  ✓ ${name.padEnd(22)} ${seconds(performance.now() - since)} s`);
      return result;
    },
    note: (text) => write(`  … ${text}`),
    warn: (text) => write(`  ✗ ${text}`),
    ready(title, lines) {
      const width = Math.max(...lines.map(([label]) => label.length));
      const bar = (index: number) => (index === 0 ? '┌' : index === lines.length - 1 ? '└' : '├');
      write(`\n  ${title}`);
      for (const [index, [label, text]] of lines.entries())
        write(`  ${bar(index)} ${label.padEnd(width)}   ${text}`);
      write('');
    },
  };
}

function jsonScreen(logger: Logger): Screen {
  return {
    async step(name, work, since = performance.now()) {
      const result = await work;
      logger.info({ step: name, ms: Math.round(performance.now() - since) }, 'step done');
      return result;
    },
    note: (text) => logger.info(text),
    warn: (text) => logger.error(text),
    ready: (title, _lines, fields) => logger.info(fields, title),
  };
}

export function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(1);
}
