import { defineConfig } from 'vitest/config';

/** The FOCUS project's own validator: not part of `npm test`, since it needs Python 3.12 and its package index. */
export default defineConfig({
  test: {
    include: ['test/focus/*.live.ts'],
    globalSetup: ['test/globalSetup.ts'],
    pool: 'forks',
    testTimeout: 600_000,
    hookTimeout: 900_000,
  },
});
