import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

/** A program that runs as a separate process, with its output so far. */
export interface ChildProgram {
  child: ChildProcess;
  pid: number;
  output(): string;
  /** Its output without stderr. */
  stdout(): string;
  /** Resolves when its output matches; rejects when it ends before or the time is over. */
  sees(pattern: RegExp, limitMs?: number): Promise<RegExpExecArray>;
  /** Resolves with its exit code, or the signal that ended it. */
  ended(): Promise<number | string>;
}

/**
 * Starts `node <args>`, or another interpreter, in a separate process group, with exactly this environment over PATH
 * and HOME.
 */
export function startProgram(
  args: readonly string[],
  environment: Record<string, string> = {},
  interpreter = process.execPath,
): ChildProgram {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(interpreter, args, {
    cwd: PROJECT_ROOT,
    env: { PATH, HOME, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8');
    output += chunk.toString('utf8');
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8');
  });
  const end = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  return {
    child,
    pid: child.pid ?? -1,
    output: () => output,
    stdout: () => stdout,
    ended: () => end,
    async sees(pattern, limitMs = 180_000) {
      const deadline = performance.now() + limitMs;
      for (;;) {
        const match = pattern.exec(output);
        if (match) return match;
        if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) {
          throw new Error(`did not see ${pattern} in:\n${output}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  };
}

/**
 * Starts a TypeScript program of the product or of the tests. The product's come from dist/ where bin/bootstrap.mjs
 * runs the tests, which has just built it: loading the sources takes four times as long.
 */
export function startTypeScript(
  path: string,
  args: readonly string[],
  environment?: Record<string, string>,
): ChildProgram {
  const isBuilt = process.env.TESTS_OF_DIST === '1' && path.startsWith('bin/');
  const program = isBuilt
    ? [join(PROJECT_ROOT, 'dist', path.replace(/\.ts$/, '.js'))]
    : ['--import', 'tsx', join(PROJECT_ROOT, path)];
  return startProgram([...program, ...args], environment);
}

/** Runs a command by `node bin/bootstrap.mjs`, as ./trueup and the npm scripts do. */
export function startTrueup(words: readonly string[], environment?: Record<string, string>): ChildProgram {
  return startProgram([join(PROJECT_ROOT, 'bin/bootstrap.mjs'), 'trueup', ...words], environment);
}
