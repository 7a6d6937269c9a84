import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longestFirst.js';
import { findPgBouncer, HOW_TO_INSTALL } from './test/support/pooler.js';
import { canMountDisks, HOW_TO_MOUNT } from './test/support/smallDisk.js';

/**
 * Suites that touch no server, no native module and no process: they share threads, which is several times faster. What
 * measures the work of its process is none of them: the threads beside it would count.
 */
const PURE = [
  'test/domain/**/!(inspectPatterns).test.ts',
  'test/architecture.test.ts',
  'test/lab/demo/**/*.test.ts',
  'test/docs/docs.test.ts',
  'test/docs/decisions.test.ts',
  'test/docs/domainLanguage.test.ts',
  'test/compose/**/*.test.ts',
];

/** Asks for a program that comes with no package: where it is missing, the run says what is not run. */
const POOLED = ['test/db/pooler.test.ts'];
const isPoolerThere = findPgBouncer() !== undefined;
if (!isPoolerThere) console.warn(`Not run: ${POOLED.join(', ')}. ${HOW_TO_INSTALL}.`);

/** Fills a file system: where none can be mounted, test/api/installation/storage.test.ts has Postgres answer as if one were full. */
const MOUNTED = ['test/fault/fullDisk.test.ts'];
const isMountable = canMountDisks();
if (!isMountable) console.warn(`Not run: ${MOUNTED.join(', ')}. ${HOW_TO_MOUNT}.`);

/** Many tests wait for a server or for a killed process to be missed: one worker more than cores keeps all cores at work. */
const WORKERS = availableParallelism() + 1;

export default defineConfig({
  test: {
    maxWorkers: WORKERS,
    // The servers of the run end in it.
    teardownTimeout: 120_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: { name: 'pure', include: PURE, pool: 'threads', isolate: false, testTimeout: 300_000 },
      },
      {
        test: {
          name: 'servers',
          include: ['test/**/*.test.ts'],
          exclude: [...PURE, ...(isPoolerThere ? [] : POOLED), ...(isMountable ? [] : MOUNTED)],
          globalSetup: ['test/globalSetup.ts'],
          // Temporal's native module breaks in worker threads.
          pool: 'forks',
          // Vite puts its own BASE_URL into the environment; an empty value counts as absent.
          env: { BASE_URL: '' },
          // The sources are loaded, and the workflows bundled, once in each process and not once in each file. No file
          // may leave anything behind: a server that listens, a timer, a changed environment.
          isolate: false,
          // A test and a poll end when what they wait for is there; how long a loaded machine takes proves nothing.
          testTimeout: 300_000,
          expect: { poll: { timeout: 120_000 } },
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
