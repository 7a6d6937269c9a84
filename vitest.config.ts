import { defineConfig } from 'vitest/config';

/** Suites that touch no server, no native module and no process: they share threads, which is several times faster. */
const PURE = ['test/domain/**/*.test.ts', 'test/architecture.test.ts', 'test/compose/**/*.test.ts'];

export default defineConfig({
  test: {
    projects: [
      {
        test: { name: 'pure', include: PURE, pool: 'threads', isolate: false, testTimeout: 20_000 },
      },
      {
        test: {
          name: 'servers',
          include: ['test/**/*.test.ts'],
          exclude: PURE,
          globalSetup: ['test/globalSetup.ts'],
          // Temporal's native module breaks in worker threads.
          pool: 'forks',
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
