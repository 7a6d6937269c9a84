import { defineConfig } from 'vitest/config';

/** The whole API under generated requests: not part of `npm test`, since it needs python3 and its package index. */
export default defineConfig({
  test: {
    include: ['test/fuzz/*.live.ts'],
    globalSetup: ['test/globalSetup.ts'],
    pool: 'forks',
    hookTimeout: 300_000,
  },
});
