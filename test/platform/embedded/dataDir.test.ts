import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  dataDirLockFile,
  openDataDir,
  readPorts,
  rememberPorts,
} from '../../../platform/embedded/dataDir.js';
import { findLockHolder, takeFileLock } from '../../../platform/embedded/fileLock.js';
import { StartError } from '../../../platform/startError.js';
import { startProgram } from '../../support/childProgram.js';

const folder = mkdtempSync(join(tmpdir(), 'trueup-datadir-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a data directory', () => {
  it('is closed to others, but for passing through where we are root', () => {
    const path = join(folder, 'new');
    openDataDir(path).release();
    expect(statSync(path).mode & 0o777).toBe(process.getuid?.() === 0 ? 0o711 : 0o700);
  });

  it('belongs to one start at a time: the second is answered with the first one’s process', () => {
    const path = join(folder, 'one');
    const first = openDataDir(path);
    expect(() => openDataDir(path)).toThrow(
      new StartError(
        `DATA_DIR ${path} is in use by process ${process.pid}: stop that one first, or set DATA_DIR to another folder.`,
      ),
    );
    first.release();
    openDataDir(path).release();
  });

  it('that is a file is answered with a sentence', () => {
    const path = join(folder, 'file');
    writeFileSync(path, '');
    expect(() => openDataDir(path)).toThrow(/DATA_DIR .* is not a folder/);
  });

  it('that cannot be made is answered with a sentence', () => {
    expect(() => openDataDir('/proc/trueup')).toThrow(
      /DATA_DIR \/proc\/trueup cannot be written \(E[A-Z]+\): set DATA_DIR/,
    );
  });

  it('remembers the ports of each server apart', () => {
    rememberPorts(folder, { postgres: 1 });
    rememberPorts(folder, { temporal: 2 });
    expect(readPorts(folder)).toEqual({ postgres: 1, temporal: 2 });
  });
});

describe('a lock file', () => {
  const path = join(folder, 'some.lock');

  it('left by a killed process is taken over', async () => {
    const program = startProgram(['-e', 'setInterval(() => {}, 1000)']);
    writeFileSync(path, JSON.stringify({ pid: program.pid, mark: readMark(program.pid) }));
    expect(takeFileLock(path)).toEqual({ heldBy: program.pid });
    program.child.kill('SIGKILL');
    await program.ended();
    const lock = takeFileLock(path);
    expect(findLockHolder(path)).toBe(process.pid);
    if ('release' in lock) lock.release();
  });

  it('with the number of a process that came later is taken over', () => {
    writeFileSync(path, JSON.stringify({ pid: process.pid, mark: 'an earlier time' }));
    const lock = takeFileLock(path);
    expect('release' in lock).toBe(true);
    if ('release' in lock) lock.release();
  });

  it('with rubbish in it is taken over', () => {
    writeFileSync(path, 'rubbish');
    const lock = takeFileLock(path);
    if ('release' in lock) lock.release();
    expect(findLockHolder(path)).toBeUndefined();
  });

  it('is held by exactly one of many that try at once', async () => {
    const contested = join(folder, 'contested');
    mkdirSync(contested);
    writeFileSync(dataDirLockFile(contested), JSON.stringify({ pid: 2 ** 22 + 1, mark: 'dead' }));
    const script = `import('${new URL('../../../platform/embedded/fileLock.ts', import.meta.url).pathname}').then(({ takeFileLock }) => {
      const lock = takeFileLock(${JSON.stringify(dataDirLockFile(contested))});
      console.log('release' in lock ? 'mine' : 'theirs');
      setTimeout(() => {}, 600_000);
    })`;
    const programs = Array.from({ length: 6 }, () => startProgram(['--import', 'tsx', '-e', script]));
    const answers = await Promise.all(
      programs.map((program) => program.sees(/mine|theirs/).then(([word]) => word)),
    );
    for (const program of programs) program.child.kill('SIGKILL');
    expect(answers.filter((word) => word === 'mine')).toHaveLength(1);
  });
});

function readMark(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}
