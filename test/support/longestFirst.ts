import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/**
 * The files that take longest, the longest first. A long one that begins last is waited for with the other cores at
 * rest; a clean checkout has no times of an earlier run to go by.
 */
const LONGEST = [
  'test/platform/demo.test.ts',
  'test/workflows/billingSync.test.ts',
  'test/workflows/billingSyncFaults.test.ts',
  'test/e2e/demo.test.ts',
  'test/workflows/billingImport.test.ts',
  'test/workflows/gapRun.test.ts',
  'test/db/tenancy.test.ts',
  'test/e2e/demoConnected.test.ts',
  'test/platform/start.test.ts',
  'test/workflows/billingSyncRaces.test.ts',
  'test/workflows/billingSyncProviders.test.ts',
  'test/docs/reconciliationDocuments.test.ts',
  'test/api/access/workspaceReads.test.ts',
  'test/workflows/repricing.test.ts',
  'test/usecases/installation/backup/backup.test.ts',
  'test/usecases/installation/backup/dataExport.test.ts',
  'test/usecases/reconciliation/reconciliationRun.test.ts',
  'test/e2e/reconciliationEndToEnd.test.ts',
  'test/lab/reconciliationQuality.test.ts',
  'test/platform/commands.test.ts',
  'test/platform/embedded/postgres.test.ts',
  'test/api/access/injection.test.ts',
  'test/api/access/isolation.test.ts',
  'test/usecases/installation/backup/auditLog.test.ts',
  'test/db/billing/closedPeriods.test.ts',
  'test/fault/repeatedRequests.test.ts',
  'test/fault/killApi.test.ts',
  'test/fault/killPostgres.test.ts',
];

/**
 * Project by project, since files of one project follow one another in a process that has loaded the sources already;
 * in each the long files first, then the order of Vitest (by earlier times, else by size).
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const gone = LONGEST.filter((file) => !existsSync(join(root, file)));
    if (gone.length > 0) throw new Error(`test/support/longestFirst.ts names ${gone.join(', ')}: not there`);
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.indexOf(relative(root, moduleId));
      return at < 0 ? LONGEST.length : at;
    };
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => a.project.name.localeCompare(b.project.name) || place(a) - place(b));
  }
}
