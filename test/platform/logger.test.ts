import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createLogger, gatheringDestination, lastingDestination } from '../../platform/logger.js';
import { makeTestFolder } from '../support/testFolder.js';

const folder = makeTestFolder('log');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Linux: every write to it fails with ENOSPC. */
const FULL_DISK = '/dev/full';

it('keeps lines that a full disk refuses, drops those beyond its limit, and writes again when there is room', () => {
  const full = openSync(FULL_DISK, 'w');
  const file = join(folder, 'log');
  const roomy = openSync(file, 'a');
  let fd = full;
  const destination = lastingDestination(fd, (_, bytes) => writeSync(fd, bytes as Buffer));
  const logger = createLogger({ name: 'test', level: 'info', destination });
  const text = 'x'.repeat(10_000);
  for (let line = 0; line < 300; line += 1) logger.info({ line, text }, 'refused');
  fd = roomy;
  for (let line = 0; line < 3; line += 1) logger.info({ line }, 'written');
  for (const each of [full, roomy]) closeSync(each);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const written = lines.map((line) => JSON.parse(line) as { msg: string; line: number });
  const refused = written.flatMap(({ msg, line }) => (msg === 'refused' ? [line] : []));
  expect(refused).toEqual(refused.map((_, index) => index));
  expect(refused.length).toBeGreaterThan(100);
  expect(refused.length).toBeLessThan(110);
  expect(written.slice(refused.length).map(({ line }) => line)).toEqual([0, 1, 2]);
});

it('writes the ordinary lines of a turn together, and a warning at once with the lines before it', async () => {
  const written: string[] = [];
  const destination = gatheringDestination({
    write(text) {
      written.push(text);
    },
  });
  const logger = createLogger({ name: 'test', level: 'info', destination });
  for (let line = 0; line < 3; line += 1) logger.info({ line }, 'request');
  expect(written).toEqual([]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(written.map((text) => text.trimEnd().split('\n').length)).toEqual([3]);
  logger.info('before');
  logger.warn('refused');
  expect(written.slice(1).map((text) => text.match(/"msg":"\w+"/g))).toEqual([
    ['"msg":"before"', '"msg":"refused"'],
  ]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(written).toHaveLength(2);
});
