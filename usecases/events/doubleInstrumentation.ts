import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import {
  type DoubleReport,
  findFormerNotice,
  listDoubleReports,
  listDoublyReportedOrganizations,
} from '../../db/events/ingestHealth.js';
import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import { recordNotice } from '../../db/policies/notices.js';
import { decimalFromPico } from '../../domain/money.js';
import {
  doubleInstrumentation,
  isWorthTelling,
  LOOK_BACK_MICROS,
} from '../../domain/policies/alerts/doubleInstrumentation.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

/**
 * Finds services that are instrumented twice and puts a notice into the feed of each organization that has one. A failure
 * in one organization keeps none of the others from it. Returns the number of notices.
 */
export async function reportDoubleInstrumentation(
  deps: UseCaseDeps & { logger: Logger },
  nowMicros: bigint,
): Promise<number> {
  let notices = 0;
  for (const orgId of await listDoublyReportedOrganizations(deps.database, nowMicros - LOOK_BACK_MICROS))
    notices += await reportDoublesOf(orgDbOf(deps, orgId), nowMicros).catch((error: unknown) => {
      deps.logger.warn(
        { err: error, orgId },
        'calls were not looked through for services instrumented twice',
      );
      return 0;
    });
  return notices;
}

/**
 * Looks through the calls of the last day for services that two scopes report, and records a notice of each that has none
 * yet. A service whose counted scopes the organization has named is left out: what the others send does not count.
 * Returns the number of notices.
 */
export async function reportDoublesOf(orgDb: OrgDb, nowMicros: bigint): Promise<number> {
  const found = await listDoubleReports(orgDb, nowMicros - LOOK_BACK_MICROS);
  if (found.length === 0) return 0;
  const { settings } = await getOrganization(orgDb);
  const settled = new Set(settings.countedScopes.map(({ service }) => service ?? ''));
  let notices = 0;
  for (const double of found)
    if (!settled.has(double.serviceName) && (await recordDouble(orgDb, double, nowMicros))) notices += 1;
  return notices;
}

async function recordDouble(orgDb: OrgDb, double: DoubleReport, nowMicros: bigint): Promise<boolean> {
  const pairKey = keyOf(double);
  const former = await findFormerNotice(orgDb, pairKey);
  if (!isWorthTelling(former, nowMicros)) return false;
  const reported = { ...double, costUsd: decimalFromPico(double.costPico) };
  const notice = doubleInstrumentation(reported, pairKey, former);
  return orgDb.transaction(async (inside) => (await recordNotice(inside, notice)) !== undefined);
}

/** Names may be long, and an index takes no long key. */
function keyOf({ serviceName, scopes }: DoubleReport): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([serviceName, ...scopes]))
    .digest('hex');
  return `double_instrumentation:${digest}`;
}
