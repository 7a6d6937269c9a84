import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/** Seconds of each file in an earlier run, by path from the root; `npm run test:durations` rewrites it. */
const DURATIONS = 'test/durations.json';

/**
 * Runs the longest files first: a long file that begins last would keep the other cores idle, and a clean checkout has
 * no times of an earlier run. Files of one project follow one another, in a process that has loaded the sources already.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const file = join(root, DURATIONS);
    const seconds: Record<string, number> = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
    const durationOf = ({ moduleId }: TestSpecification) => seconds[relative(root, moduleId)] ?? 0;
    const sorted = await super.sort(files);
    return sorted.sort(
      (a, b) => a.project.name.localeCompare(b.project.name) || durationOf(b) - durationOf(a),
    );
  }
}
