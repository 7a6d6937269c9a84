import { defineConfig } from 'vitest/config';
import { suiteConfig } from './support/suite.js';

/** `npm run test:pooler`: every test that has a database, through PgBouncer in transaction mode. */
process.env.TEST_POOLER = '1';

const { projects = [], ...shared } = suiteConfig('all').test ?? {};

export default defineConfig({
  test: {
    ...shared,
    projects: projects.filter(
      (project) => typeof project === 'object' && 'test' in project && project.test?.name === 'servers',
    ),
  },
});
