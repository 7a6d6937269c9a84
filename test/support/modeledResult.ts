import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../db/orgDb.js';
import {
  insertModeledCalls,
  insertModeledRules,
  listModeledRules,
  recordFindings,
} from '../../db/policies/modeledSavings.js';
import { openRunOf, SAVINGS_RUNS, succeedSavingsRun, takeSavingsRun } from '../../db/policies/savingsRuns.js';
import { findOpenRun, insertRun } from '../../db/runs/runTable.js';
import { microsFromDate } from '../../domain/period.js';
import { standardPeriod } from '../../usecases/policies/savings.js';

/** A result of the last 30 days without a worker: each enabled rule has blocked one call of a dollar. */
export async function storeModeledResult(orgDb: OrgDb): Promise<void> {
  const period = standardPeriod(microsFromDate(new Date()));
  const wanted = { id: randomUUID(), ...period, cause: 'request', requestedBy: null } as const;
  const run =
    (await insertRun(orgDb, SAVINGS_RUNS, wanted)) ??
    (await findOpenRun(orgDb, SAVINGS_RUNS, openRunOf(period)));
  if (!run) throw new Error('a run is open or can be opened');
  await takeSavingsRun(orgDb, run.id, { id: randomUUID(), priceVersion: 'v' });
  await insertModeledRules(orgDb, run.id);
  const rules = await listModeledRules(orgDb, run.id);
  const savedPico = 1_000_000_000_000n;
  const judged = rules.map(({ rule }) => ({
    eventId: randomUUID(),
    timestampMicros: period.windowStartMicros + 1n,
    verdict: { ruleId: rule.id, action: 'block', savedPico, unpricedReason: null } as const,
  }));
  await insertModeledCalls(orgDb, run.id, judged);
  const found = rules.map(({ findings }) => ({ ...findings, asked: 1, blocked: 1, savedPico }));
  await recordFindings(orgDb, run.id, found);
  await succeedSavingsRun(orgDb, run.id);
}
