import type { Readable, Writable } from 'node:stream';
import { Option } from 'commander';
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
