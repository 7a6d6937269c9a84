import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { TestProjectInlineConfiguration, ViteUserConfig } from 'vitest/config';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { recordWalks } from '../lab/walks/recordWalks.js';
import { LongestFirst } from './longestFirst.js';
import { findPgBouncer, HOW_TO_INSTALL } from './pooler.js';
import { canMountDisks, HOW_TO_MOUNT } from './smallDisk.js';
import { HOW_TO_GET_VERSITY, isVersityGatewayThere } from './versityGateway.js';

/**
 * Part of the suite. `gate` is run by `npm test`. `slow` is every file named `*.slow.test.ts`: faults, backups,
 * recorded clients, acceptance by large data. `all` is both.
 */
export type Tier = 'gate' | 'slow' | 'all';

const SLOW = 'test/**/*.slow.test.ts';

/** Runs with the product's functions instrumented, in a separate process. */
const WALKS = 'test/lab/walks/walks.slow.test.ts';

/**
 * Suites without servers, native modules and processes: they share threads, which is several times faster. Suites that
 * measure their process's work are excluded, since the other threads would count.
 */
const PURE = [
  'test/domain/**/!(inspectPatterns.slow).test.ts',
  'test/architecture.test.ts',
  'test/lab/demo/**/*.test.ts',
  'test/lab/invoices/generators*.test.ts',
  'test/docs/docs.test.ts',
  'test/compose/**/*.test.ts',
];

/** Suites that need something which no package brings; without it they are excluded, with a warning. */
const NEEDING = [
  {
    file: 'test/db/pooler.slow.test.ts',
    isThere: findPgBouncer() !== undefined,
    remedy: HOW_TO_INSTALL,
  },
  {
    file: 'test/adapters/blobs/s3Server.slow.test.ts',
    isThere: isVersityGatewayThere(),
    remedy: HOW_TO_GET_VERSITY,
  },
  // Fills a file system; test/api/installation/storage.test.ts has Postgres answer as if one were full.
  { file: 'test/fault/fullDisk.slow.test.ts', isThere: canMountDisks(), remedy: HOW_TO_MOUNT },
];

/** Many tests wait for a server or for the timeout of a killed process: one worker more than cores keeps all cores busy. */
const WORKERS = availableParallelism() + 1;

const WITHOUT_SERVERS = { pool: 'threads' as const, isolate: false, testTimeout: 300_000 };

const WITH_SERVERS = {
  globalSetup: ['test/globalSetup.ts'],
  // Temporal's native module breaks in worker threads.
  pool: 'forks' as const,
  // Vite puts its own BASE_URL into the environment; an empty value counts as absent.
  env: { BASE_URL: '' },
  // Sources are loaded and workflows bundled once in each process, not once in each file. No file may leave anything
  // behind: a listening server, a timer, a changed environment.
  isolate: false,
  // Generous, because the time of a loaded machine proves nothing; tests and polls end as soon as their condition
  // holds.
  testTimeout: 300_000,
  expect: { poll: { timeout: 120_000 } },
  hookTimeout: 300_000,
};

/** The files of which the gate runs a short form, once more and in their long form. */
function longRuns(): TestProjectInlineConfiguration[] {
  const files = readdirSync(join(PROJECT_ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => join('test', name))
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => readFileSync(join(PROJECT_ROOT, file), 'utf8').includes('support/propertyRuns.js'));
  const isPure = (file: string) => file.startsWith('test/domain/');
  const env = { ...WITH_SERVERS.env, LONG_RUNS: '1' };
  return [
    { test: { name: 'long runs', include: files.filter(isPure), ...WITHOUT_SERVERS, env } },
    {
      test: {
        name: 'long runs with servers',
        include: files.filter((file) => !isPure(file)),
        ...WITH_SERVERS,
        env,
      },
    },
  ];
}

/**
 * The Vitest configuration of one part: pure suites in threads, the others in processes with one Postgres and one
 * Temporal.
 */
export function suiteConfig(tier: Tier): ViteUserConfig {
  const missing = tier === 'gate' ? [] : NEEDING.filter(({ isThere }) => !isThere);
  for (const { file, remedy } of missing) console.warn(`Not run: ${file}. ${remedy}.`);
  const include = [tier === 'slow' ? SLOW : 'test/**/*.test.ts'];
  const exclude = [...(tier === 'gate' ? [SLOW] : []), ...missing.map(({ file }) => file)];
  return {
    test: {
      maxWorkers: WORKERS,
      // The servers of the run stop in it.
      teardownTimeout: 120_000,
      sequence: { sequencer: LongestFirst },
      projects: [
        {
          test: {
            name: 'pure',
            include: PURE,
            exclude: tier === 'slow' ? ['test/**/!(*.slow).test.ts'] : exclude,
            ...WITHOUT_SERVERS,
          },
        },
        { test: { name: 'servers', include, exclude: [...PURE, WALKS, ...exclude], ...WITH_SERVERS } },
        ...(tier === 'slow' ? longRuns() : []),
        ...(tier === 'gate'
          ? []
          : [
              {
                plugins: [recordWalks(PROJECT_ROOT)],
                test: { name: 'walks', include: [WALKS], ...WITH_SERVERS },
              },
            ]),
      ],
    },
  };
}
