import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, '../durations.json');

/**
 * A reporter that writes test/durations.json, by which the longest files run first: of each file that ran, the seconds
 * of its tests and of what they begin with.
 *
 *   npm run test:durations             the gate
 *   npm run test:durations -- --config test/slow.config.ts
 */
export default class RecordDurations {
  onTestRunEnd(files) {
    const before = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {};
    const seconds = new Map(Object.entries(before));
    for (const file of files) {
      if (file.project.name.startsWith('long runs')) continue;
      const { duration, setupDuration } = file.diagnostic();
      seconds.set(file.relativeModuleId, Math.round((duration + setupDuration) / 100) / 10);
    }
    const there = [...seconds].filter(([name]) => existsSync(join(import.meta.dirname, '../..', name)));
    const sorted = Object.fromEntries(there.sort(([a], [b]) => (a < b ? -1 : 1)));
    writeFileSync(FILE, `${JSON.stringify(sorted, null, 2)}\n`);
  }
}
