/**
 * Writes test/durations.json, by which the longest files run first, from Vitest's JSON reports:
 *
 *   npm run test:durations -- REPORT [REPORT ...]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const results = process.argv.slice(2).flatMap((file) => JSON.parse(readFileSync(file, 'utf8')).testResults);
const durations = results
  .map(({ name, startTime, endTime }) => [relative(ROOT, name), Math.round((endTime - startTime) / 100) / 10])
  .sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(
  join(ROOT, 'test/durations.json'),
  `${JSON.stringify(Object.fromEntries(durations), null, 2)}\n`,
);
