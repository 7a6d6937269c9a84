import { defineConfig } from 'vitest/config';

/** Sums of generated bills by DuckDB: not part of `npm test`, since it needs Python and its package index. */
export default defineConfig({
  test: { include: ['test/plainSums/*.live.ts'], pool: 'forks', testTimeout: 300_000, hookTimeout: 600_000 },
});
