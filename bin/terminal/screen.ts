import type { Logger } from 'pino';

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
