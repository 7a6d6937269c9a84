import type { Readable, Writable } from 'node:stream';
import { Option } from 'commander';
import type { Logger } from 'pino';
import { parseInstant } from '../../domain/period.js';
import { findProvider, PROVIDERS, type Provider } from '../../domain/providers.js';
import type { Config } from '../../platform/config.js';
import { Misuse } from '../../platform/startError.js';

/** A command's settings, output and input. */
export interface Terminal {
  readConfig(): Config;
  input: Readable;
  output: Writable;
  /** false: there is no person to ask. */
  isInteractive: boolean;
  now(): Date;
  /** 1 after a command has found something to act on, or has failed. */
  exitCode: 0 | 1;
}

export function print(terminal: Terminal, text: string): void {
  terminal.output.write(`${text}\n`);
}

export function printJson(terminal: Terminal, value: unknown): void {
  print(terminal, JSON.stringify(value, null, 2));
}

/** Accepts any of the provider's names. */
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

/** Output of a start: ticks with times for people, JSON lines for programs. */
export interface Screen {
  /** Prints a step with its duration when it ends; `since`: an earlier beginning (performance.now()). */
  step<T>(name: string, work: Promise<T>, since?: number): Promise<T>;
  /** Prints one line for people. */
  note(text: string): void;
  /** Prints one line about a fault that somebody has to fix. */
  warn(text: string): void;
  /** Prints the last block with the next steps. Programs read `fields` instead of `lines`. */
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
