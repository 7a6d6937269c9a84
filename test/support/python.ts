import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { type ChildProgram, startProgram } from './childProgram.js';
import { runProgram } from './pythonVenv.js';

/** Interpreters for the tests of the Python package, which needs 3.9 or newer and nothing else. */

const MINOR_MIN = 9;
const MINOR_MAX = 14;
const NAMES = Array.from({ length: MINOR_MAX - MINOR_MIN + 1 }, (_, index) => `python3.${MINOR_MAX - index}`);
/** Prints its version and its own path, which starts faster than a name that a version manager looks up. */
const WHO = 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)';

export const PYTHON_SOURCES = join(PROJECT_ROOT, 'sdk/python/src');

interface Interpreter {
  /** `3.12`. */
  version: string;
  path: string;
}

function ask(name: string): Interpreter | undefined {
  const { status, stdout } = runProgram(name, ['-c', WHO]);
  const [version = '', ...path] = stdout.trim().split(' ');
  const [major, minor] = version.split('.').map(Number);
  if (status !== 0 || major !== 3 || (minor ?? 0) < MINOR_MIN) return undefined;
  return { version, path: path.join(' ') };
}

let found: Interpreter | undefined;

/** `PYTHON`, or else the first of `python3` and its numbered names that is new enough. @throws where there is none. */
export function findPython(): string {
  for (const name of [process.env.PYTHON, 'python3', ...NAMES]) {
    if (found !== undefined) break;
    if (name !== undefined) found = ask(name);
  }
  if (found === undefined)
    throw new Error(
      `the tests of sdk/python need Python 3.${MINOR_MIN} or newer: install python3, or set PYTHON to one`,
    );
  return found.path;
}

/** One interpreter of each version on the path or below pyenv's folder, oldest first; at least the one of `findPython`. */
export function allPythons(): Interpreter[] {
  const versions = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions');
  const ofPyenv = listed(versions).map((name) => join(versions, name, 'bin/python3'));
  const byVersion = new Map<string, Interpreter>();
  for (const name of [findPython(), ...NAMES, ...ofPyenv]) {
    const one = ask(name);
    if (one && !byVersion.has(one.version)) byVersion.set(one.version, one);
  }
  return [...byVersion.values()].sort((left, right) =>
    left.version.localeCompare(right.version, 'en', { numeric: true }),
  );
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The environment in which a program imports the package from its sources. */
export function pythonEnvironment(more: Record<string, string> = {}): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, PYTHONPATH: PYTHON_SOURCES, PYTHONDONTWRITEBYTECODE: '1', ...more };
}

/** Starts a Python program with exactly this environment over PATH and HOME. */
export function startPython(
  python: string,
  program: string,
  environment: Record<string, string> = {},
): ChildProgram {
  return startProgram([join(PROJECT_ROOT, program)], pythonEnvironment(environment), python);
}

/** A Python program that answers each line with a line; both are JSON. */
export class LineProgram {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #errors = '';

  constructor(program: string) {
    this.#child = spawn(findPython(), [join(PROJECT_ROOT, program)], {
      env: pythonEnvironment(),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors += chunk.toString('utf8');
    });
    const input = this.#child.stdout as NodeJS.ReadableStream;
    this.#lines = createInterface({ input })[Symbol.asyncIterator]();
  }

  /** One question at a time. @throws where the program has ended. */
  async ask<Answer>(question: object): Promise<Answer> {
    this.#child.stdin?.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the program has ended: ${this.#errors}`);
    return JSON.parse(value) as Answer;
  }

  async close(): Promise<void> {
    const ended = once(this.#child, 'close');
    this.#child.stdin?.end();
    await ended;
  }
}
