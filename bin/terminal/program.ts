import { Command, CommanderError } from 'commander';
import { TRUEUP_VERSION } from '../../platform/serverLimits.js';
import { Misuse } from '../../platform/startError.js';
import type { Terminal } from './terminal.js';

/** Every command with its module, which is loaded only when the command is called. */
const COMMANDS: Record<
  string,
  readonly [description: string, load: () => Promise<{ command: (terminal: Terminal) => Command }>]
> = {
  start: [
    'run everything: Postgres and Temporal where no address is set, the API, the worker',
    () => import('../commands/start.js'),
  ],
  status: ['show each part of the service and whether it is up', () => import('../commands/status.js')],
  doctor: ['look for what stands in the way, with the remedy', () => import('../commands/doctor.js')],
  demo: ['load the demo company and show what is found in it', () => import('../commands/demo.js')],
  import: [
    'import provider bills, calls of the past, or the data of another installation',
    () => import('../commands/import.js'),
  ],
  export: ['export all data of this installation', () => import('../commands/export.js')],
  audit: ['compare the rates on bills with list and contract prices', () => import('../commands/audit.js')],
  reconcile: ['compare bills with the calls of the same days', () => import('../commands/reconcile.js')],
  prices: ['import list prices from a public collection', () => import('../commands/prices.js')],
  keys: ['create, list, rotate, revoke and check API keys', () => import('../commands/keys.js')],
  'sign-in': ['print a link with which a browser signs in once', () => import('../commands/signIn.js')],
  'audit-log': ['verify the audit log', () => import('../commands/auditLog.js')],
  mcp: ['answer an assistant that asks over MCP: docs/ask.md', () => import('../commands/mcp.js')],
  evidence: ['verify the evidence pack of a claim', () => import('../commands/evidence.js')],
  secrets: ['change the key that seals stored credentials', () => import('../commands/secrets.js')],
  backup: ['back the installation up into one file', () => import('../commands/backup.js')],
  restore: ['bring a backup back', () => import('../commands/restore.js')],
  migrate: ['bring the database that DATABASE_URL names up to date', () => import('../commands/migrate.js')],
};

/**
 * Runs the named command; `terminal.exitCode` is its exit code.
 * @throws Misuse with the usage; StartError with a problem.
 */
export async function runProgram(words: readonly string[], terminal: Terminal): Promise<void> {
  const program = await createProgram(words, terminal);
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return;
    const isMisuse = error instanceof CommanderError || error instanceof Misuse;
    throw isMisuse ? new Misuse(`${sentenceOf(error)}\n${usageOf(program, words)}`) : error;
  }
}

async function createProgram(words: readonly string[], terminal: Terminal): Promise<Command> {
  const asked = words.find((word) => !word.startsWith('-') && word !== 'help');
  const program = new Command('trueup')
    .description('What LLM calls really cost, and what was overcharged.')
    .version(TRUEUP_VERSION, '-v, --version', 'print the version')
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 found something or failed, 2 wrong use. Settings: docs/configuration.md',
    );
  for (const [name, [description, load]] of Object.entries(COMMANDS)) {
    const command = name === asked ? (await load()).command(terminal) : new Command(name);
    program.addCommand(command.description(description));
  }
  settle(program, terminal);
  return program;
}

/** Prevents commander from ending the process and printing errors. */
function settle(command: Command, terminal: Terminal): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => terminal.output.write(text), writeErr: () => undefined });
  if (command.commands.length > 0) command.usage('[command]');
  for (const sub of command.commands) settle(sub, terminal);
}

/** The message of an error; replaces messages of commander without a remedy. */
function sentenceOf(error: CommanderError | Misuse): string {
  if (error instanceof Misuse) return error.message;
  if (error.code === 'commander.help') return 'What is to be done?';
  const words = error.message
    .replace(/^error: /, '')
    .replace(
      /^option '(?:-\w, )?(--[\w-]+)[^']*' argument '([\s\S]*)' is invalid\. Allowed choices are (.*)\.$/,
      '$1 is $2: give one of $3.',
    )
    .replace(/^required option '(--[\w-]+)[^']*' not specified$/, '$1 is missing.');
  return `${words[0]?.toUpperCase()}${words.slice(1)}${/[.)]$/.test(words) ? '' : '.'}`;
}

function usageOf(program: Command, words: readonly string[]): string {
  const named = words.reduce(
    (command, word) => command.commands.find((sub) => sub.name() === word) ?? command,
    program,
  );
  const usage = named.createHelp().commandUsage(named);
  return `Usage: ${usage}\n${usage.replace(/ [[<(].*$/, '')} --help explains it.`;
}
