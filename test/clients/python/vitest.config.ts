import { defineConfig } from 'vitest/config';

/** The Python clients themselves: not part of `npm test`, since they need python3 and its package index. */
export default defineConfig({
  test: {
    include: ['test/clients/python/*.live.ts'],
    globalSetup: ['test/globalSetup.ts'],
    pool: 'forks',
    hookTimeout: 60_000,
  },
});
