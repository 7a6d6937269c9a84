import { type ParseArgsConfig, parseArgs } from 'node:util';
import { parseInstant } from '../../domain/period.js';
import { findProvider, PROVIDERS, type Provider } from '../../domain/providers.js';
import { HelpAsked, StartError } from '../../platform/startError.js';

/** What is wrong with a command's line, with how it is used. */
export function misused(sentence: string, usage: string): StartError {
  return new StartError(`${sentence}\n${usage}`);
}

/**
 * The options and words of a command's line.
 * @throws StartError with the usage; HelpAsked where it has --help or -h.
 */
export function readCommandLine<const T extends ParseArgsConfig>(
  usage: string,
  config: T,
): ReturnType<typeof parseArgs<T>> {
  const args = config.args ?? process.argv.slice(2);
  if (args.some((word) => word === '--help' || word === '-h')) throw new HelpAsked(usage);
  try {
    return parseArgs(config);
  } catch (error) {
    throw misused((error as Error).message, usage);
  }
}

/**
 * The one file that a command takes.
 * @throws StartError with the usage.
 */
export function readOneFile(words: readonly string[], usage: string): string {
  const [file, ...more] = words;
  if (file === undefined || more.length > 0) throw misused('Give one file.', usage);
  return file;
}

/**
 * `--provider`, by any of the provider's names; undefined where it was not given.
 * @throws StartError with the usage.
 */
export function readProvider(text: string | undefined, usage: string): Provider | undefined {
  const provider = text === undefined ? undefined : findProvider(text);
  if (text !== undefined && !provider)
    throw misused(`--provider is ${text}: give one of ${PROVIDERS.join(', ')}.`, usage);
  return provider;
}

/**
 * `--provider` of a command that needs one.
 * @throws StartError with the usage.
 */
export function requireProvider(text: string | undefined, usage: string): Provider {
  const provider = readProvider(text, usage);
  if (!provider) throw misused(`--provider is missing: give one of ${PROVIDERS.join(', ')}.`, usage);
  return provider;
}

/**
 * A day of the calendar; undefined where it was not given.
 * @throws StartError with the usage.
 */
export function readDay(option: string, text: string | undefined, usage: string): string | undefined {
  if (text === undefined || (/^\d{4}-\d{2}-\d{2}$/.test(text) && parseInstant(text))) return text;
  throw misused(`--${option} is ${text}: give a UTC day such as 2026-01-31.`, usage);
}
