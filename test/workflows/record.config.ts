import { defineConfig } from 'vitest/config';

/** `npm run workflows:record`: not a test, but it needs the same servers. */
export default defineConfig({
  test: {
    include: ['test/workflows/record*Histories.ts'],
    globalSetup: ['test/globalSetup.ts'],
    pool: 'forks',
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
});
