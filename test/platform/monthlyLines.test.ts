import { appendFileSync, existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { MonthlyLines, readLines } from '../../platform/monthlyLines.js';
import { makeTestFolder } from '../support/testFolder.js';

const folders: string[] = [];
let lines: MonthlyLines;

beforeEach(() => {
  const folder = makeTestFolder('lines');
  folders.push(folder);
  lines = new MonthlyLines(join(folder, 'kept'));
});
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

async function all(): Promise<string[]> {
  const read: string[] = [];
  for await (const line of readLines(lines.listFiles())) read.push(line);
  return read;
}

describe('monthly lines', () => {
  it('are in a file for each month, in the order in which they came, and readable by their owner alone', async () => {
    lines.append(['a', 'b'], new Date('2026-01-31T23:59:59Z'));
    lines.append(['c'], new Date('2026-02-01T00:00:00Z'));
    lines.append(['d'], new Date('2026-02-02T00:00:00Z'));
    expect(lines.listFiles().map((file) => file.slice(-13))).toEqual(['2026-01.jsonl', '2026-02.jsonl']);
    expect(await all()).toEqual(['a', 'b', 'c', 'd']);
    expect(statSync(lines.folder).mode & 0o777).toBe(0o700);
    expect(statSync(lines.listFiles()[0] ?? '').mode & 0o777).toBe(0o600);
  });

  it('that a crash has broken off do not take the next one with them', async () => {
    const now = new Date('2026-01-31T00:00:00Z');
    lines.append(['a'], now);
    appendFileSync(lines.listFiles()[0] ?? '', '{"broken');
    lines.append(['b'], now);
    expect(await all()).toEqual(['a', '{"broken', 'b']);
  });

  it('are removed by the month once all of it is older than they are kept', () => {
    for (const month of ['2025-10', '2025-11', '2025-12', '2026-01'])
      lines.append(['x'], new Date(`${month}-15T00:00:00Z`));
    expect(lines.prune(60, new Date('2026-01-20T00:00:00Z'))).toBe(1);
    expect(lines.listFiles().map((file) => file.slice(-13, -6))).toEqual(['2025-11', '2025-12', '2026-01']);
  });

  it('make no file where there is nothing to write, and none are read where there is no folder', async () => {
    lines.append([], new Date());
    expect(existsSync(lines.folder)).toBe(false);
    expect(await all()).toEqual([]);
    expect(lines.prune(1, new Date())).toBe(0);
  });

  it('are never changed by what comes later', () => {
    const now = new Date('2026-01-31T00:00:00Z');
    lines.append(['a'], now);
    const before = readFileSync(lines.listFiles()[0] ?? '', 'utf8');
    lines.append(['b'], now);
    expect(readFileSync(lines.listFiles()[0] ?? '', 'utf8').startsWith(before)).toBe(true);
  });
});
