import { readBillingFile } from '../../../adapters/billing/file.js';
import { OrgDb } from '../../../db/orgDb.js';
import { readImport } from '../../../usecases/billing/readImport.js';
import { openBenchDatabase } from './cluster.js';

/** The request of its parent: the import to read. */
export interface ImportPlan {
  url: string;
  orgId: string;
  importId: string;
}

export interface ImportResult {
  seconds: number;
  cpuSeconds: number;
  /** Peak memory of the process. */
  peakBytes: number;
}

/** Reads one import like a worker, in its own process, so that its memory can be measured separately. */
process.once('message', (plan: ImportPlan) => {
  work(plan).then(
    (result) => process.send?.(result, () => process.exit(0)),
    (error: unknown) => {
      process.stderr.write(`import: ${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});

async function work({ url, orgId, importId }: ImportPlan): Promise<ImportResult> {
  const database = openBenchDatabase(url, 4);
  const start = performance.now();
  await readImport(
    { database, readBillingFile },
    new OrgDb(database, orgId),
    importId,
    new AbortController().signal,
  );
  const seconds = (performance.now() - start) / 1_000;
  await database.close();
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  return { seconds, cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakBytes: maxRSS * 1_024 };
}
