/**
 * Runs one client program in a separate process against fresh fakes of the providers and returns the fakes' journals.
 * Each client needs a separate process, since instrumentations change their libraries permanently.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAnthropicFake } from '../../fakes/anthropicFake.js';
import type { JournalEntry } from '../../fakes/fakeProvider.js';
import { startOpenAiFake } from '../../fakes/openAiFake.js';
import type { PlannedCall } from '../../fakes/plannedCall.js';

const PROGRAMS = fileURLToPath(new URL('../programs/', import.meta.url));
const PYTHON_PROGRAMS = fileURLToPath(new URL('../python/', import.meta.url));
const PROGRAM_TIME_MS = 180_000;

/** The input of a client program; its telemetry gets its target from the environment alone. */
export interface ClientRun {
  /** File name in test/clients/programs, or of a Python program in test/clients/python. */
  program: string;
  plan: readonly PlannedCall[];
  environment: Record<string, string>;
  /** Folder of a Python program's interpreter, in test/clients/python; default: .venv. */
  venv?: string | undefined;
  /** Host name under which the programs reach the OpenAI fake; it leads to this machine. */
  openAiHost?: string;
}

export interface ClientOutcome {
  journal: JournalEntry[];
  /** Calls that ended in an error for the application. */
  failures: number;
  /** The stderr of the program and its libraries. */
  stderr: string;
}

/** Runs the program to its end. Throws when it does not end well. */
export async function runClient(run: ClientRun): Promise<ClientOutcome> {
  const directory = await mkdtemp(join(tmpdir(), 'trueup-client-'));
  const openAi = await startOpenAiFake(run.plan);
  const anthropic = await startAnthropicFake(run.plan);
  try {
    const file = join(directory, 'run.json');
    const content = {
      plan: run.plan,
      openAiBaseUrl: `http://${run.openAiHost ?? 'api.openai.com'}:${openAi.port}/v1`,
      anthropicBaseUrl: `http://api.anthropic.com:${anthropic.port}`,
    };
    await writeFile(file, JSON.stringify(content));
    const { stdout, stderr } = await runProgram(run, file);
    const { failures } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { failures: number };
    return { journal: [...openAi.journal, ...anthropic.journal], failures, stderr };
  } finally {
    await Promise.all([openAi.close(), anthropic.close(), rm(directory, { recursive: true })]);
  }
}

function runProgram(
  { program, environment, venv = '.venv' }: ClientRun,
  file: string,
): Promise<{ stdout: string; stderr: string }> {
  const [command, ...words] = program.endsWith('.py')
    ? [join(PYTHON_PROGRAMS, venv, 'bin', 'python'), join(PYTHON_PROGRAMS, program)]
    : [process.execPath, '--require', join(PROGRAMS, 'loopbackNames.cjs'), join(PROGRAMS, program)];
  const child = spawn(command, [...words, file], {
    // Nothing of the tester's own environment may configure the client.
    env: { PATH: process.env.PATH ?? '', PYTHONDONTWRITEBYTECODE: '1', ...environment },
    timeout: PROGRAM_TIME_MS,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8');
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('utf8');
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve({ stdout, stderr });
      else reject(new Error(`${program} ended with ${code}:\n${stdout}\n${stderr}`));
    });
  });
}
