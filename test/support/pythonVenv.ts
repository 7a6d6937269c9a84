import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Ran {
  status: number | null;
  text: string;
  stdout: string;
}

/** Runs a program to its end. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { cwd?: string | undefined; input?: string } = {},
): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, {
    ...options,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  return { status, text: `${stdout ?? ''}${stderr ?? ''}`, stdout: stdout ?? '' };
}

/**
 * A folder with Python of at least this minor version and the packages of a requirements file; an existing one is used
 * unchanged. `PYTHON` names the Python. Throws where none is found, or the packages are unavailable.
 */
export function makeVenv(folder: string, requirements: string, minor: number): void {
  if (existsSync(join(folder, '.complete'))) return;
  const check = `import sys; sys.exit(sys.version_info < (3, ${minor}))`;
  const names = [process.env.PYTHON, 'python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11'];
  const python = names.find((name) => name !== undefined && runProgram(name, ['-c', check]).status === 0);
  if (python === undefined) throw new Error(`Python 3.${minor} is needed: name one in PYTHON`);
  const steps = [
    [python, ['-m', 'venv', folder]],
    [join(folder, 'bin', 'pip'), ['install', '-q', '-r', requirements]],
    [
      join(folder, 'bin', 'python'),
      ['-c', `open(${JSON.stringify(join(folder, '.complete'))}, 'w').close()`],
    ],
  ] as const;
  for (const [program, args] of steps) {
    const { status, text } = runProgram(program, args);
    if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${text}`);
  }
}
