import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import {
  type DoubleReport,
  findFormerNotice,
  listDoubleReports,
  listDoublyReportedOrganizations,
  listRejections,
  type SourceHealth,
} from '../../db/events/ingestHealth.js';
import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import { recordNotice } from '../../db/policies/alerts.js';
import { compare } from '../../domain/compare.js';
import { SCOPE_NOT_COUNTED } from '../../domain/events/clients.js';
import { decimalFromPico } from '../../domain/money.js';
import { doubleInstrumentation, isWorthNotice, LOOK_BACK_MICROS } from '../../domain/policies/alert.js';
import { sumSources } from '../usage/usage.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

/**
 * Sources of the window, busiest first, including sources whose every item was refused. With a project's handle: the
 * sources of its calls, and the refused items of its workspace's keys.
 */
export async function listSourceHealth(orgDb: OrgDb, sinceMicros: bigint): Promise<SourceHealth[]> {
  const sources = await sumSources(orgDb, sinceMicros);
  const byKey = new Map(sources.map((source) => [keyOf(source), source]));
  for (const rejected of await listRejections(orgDb, sinceMicros)) {
    const source = byKey.get(keyOf(rejected)) ?? emptySource(rejected);
    byKey.set(keyOf(rejected), source);
    if (rejected.reason === SCOPE_NOT_COUNTED) source.notCounted = rejected.count;
    else source.rejected[rejected.reason] = rejected.count;
  }
  return [...byKey.values()].sort((a, b) => b.calls - a.calls || compare(a.serviceName, b.serviceName));
}

type Source = Pick<SourceHealth, 'serviceName' | 'scopeName'>;

const keyOf = ({ serviceName, scopeName }: Source) => `${serviceName}\u001f${scopeName}`;

function emptySource({ serviceName, scopeName }: Source): SourceHealth {
  const counts = { calls: 0, unmetered: 0, unpriced: 0, priceGaps: 0, unknownBiller: 0, notCounted: 0 };
  return { serviceName, scopeName, lastSeenMicros: null, ...counts, rejected: {} };
}

/**
 * Finds services that are instrumented twice and adds a notice to each affected organization's feed. A failure in one
 * organization does not stop the others. Returns the number of notices.
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
 * Searches the calls of the last day for services that two scopes report, and records a notice for each without one.
 * Services whose counted scopes the organization has configured are skipped, because their other scopes do not count.
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
  const pairKey = noticeKeyOf(double);
  const former = await findFormerNotice(orgDb, pairKey);
  if (!isWorthNotice(former, nowMicros)) return false;
  const reported = { ...double, costUsd: decimalFromPico(double.costPico) };
  const notice = doubleInstrumentation(reported, pairKey, former);
  return orgDb.transaction(async (inside) => (await recordNotice(inside, notice)) !== undefined);
}

/** A hash, because names may exceed the length of an index key. */
function noticeKeyOf({ serviceName, scopes }: DoubleReport): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([serviceName, ...scopes]))
    .digest('hex');
  return `double_instrumentation:${digest}`;
}
