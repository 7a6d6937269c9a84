import { Context } from '@temporalio/activity';
import { discardImport, readImport } from '../usecases/billing/readImport.js';
import { analyzeAfterBulk } from '../usecases/installation/maintenance.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

interface ImportRef {
  orgId: string;
  importId: string;
}

export function createBillingImportActivities(deps: ActivityDeps) {
  return {
    /** Reads a stored file into rows: either the whole file counts, or nothing of it. */
    readBillingImport: ({ orgId, importId }: ImportRef): Promise<void> =>
      // A repeat stores the same rows again; the days that make them count commit once, with the import's end.
      withFailures(() =>
        withHeartbeat(async () => {
          await readImport(deps, orgDbOf(deps, orgId), importId, Context.current().cancellationSignal);
          await analyzeAfterBulk(deps);
        }),
      ),

    endBillingImportFailed: ({ orgId, importId, message }: ImportRef & { message: string }): Promise<void> =>
      // Only an open import is ended.
      withFailures(() => discardImport(orgDbOf(deps, orgId), importId, { code: 'internal_error', message })),
  };
}
