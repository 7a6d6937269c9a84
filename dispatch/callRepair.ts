import type { Logger } from 'pino';
import type { Database } from '../db/client.js';
import { OrgDb } from '../db/orgDb.js';
import { repeatOnConflict } from '../db/repeatOnConflict.js';
import { decimalFromPico } from '../domain/money.js';
import { listUnrepairedOrganizations, repairNextCalls } from '../usecases/events/callRepairs.js';
import type { Prices } from '../usecases/pricing/priceBookHolder.js';

/**
 * One round of the duty that reduces calls which an earlier version counted more than once to one event each: the next
 * events of each organization that is not done. Returns whether more is waiting. One organization that fails keeps none
 * of the others from it.
 */
export async function repairCalls(
  database: Database,
  prices: Pick<Prices, 'of'>,
  logger: Logger,
): Promise<boolean> {
  let more = false;
  for (const orgId of await listUnrepairedOrganizations(database)) {
    try {
      const book = await prices.of(orgId);
      const step = await repeatOnConflict(() => repairNextCalls(new OrgDb(database, orgId), book));
      if (!step.isDone) more = true;
      else if (step.repair !== undefined && step.repair.events > 0) {
        const { calls, events, costPico } = step.repair;
        logger.warn(
          { org_id: orgId, calls, events, cost_usd: decimalFromPico(costPico) },
          'calls that were counted more than once count once now',
        );
      }
    } catch (error) {
      logger.warn(
        { err: error, org_id: orgId },
        'calls counted more than once were not repaired; it is tried again',
      );
    }
  }
  return more;
}
