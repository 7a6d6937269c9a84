import { createHash } from 'node:crypto';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { AlertStatus } from '../../domain/policies/alerts/alert.js';
import {
  doubleInstrumentation,
  type FormerNotice,
  isWorthTelling,
  LOOK_BACK_MICROS,
} from '../../domain/policies/alerts/doubleInstrumentation.js';
import type { Database } from '../client.js';
import { getOrganization } from '../installation/organizations.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { recordNotice } from '../policies/notices.js';
import { SOURCE_SEPARATOR } from '../usage/usageLog.js';
import { type DoubleTelling, listDoubleTellings } from './ingestHealth.js';

/**
 * Organizations of whose services one was told of by two scopes since then, by the totals: where it is worth looking at
 * calls. An organization without new totals costs one row.
 */
export async function listDoublyToldOrganizations(database: Database, nowMicros: bigint): Promise<string[]> {
  const rows = await unscoped(database, 'services that are instrumented twice are looked for', (system) =>
    system.rows<{ org_id: string }>(
      `select s.org_id from rollup_state s where s.folded_at >= $1::timestamptz and exists (
         select from usage_rollups u
         where u.org_id = s.org_id and u.dimension = 'source' and u.bucket >= date_trunc('hour', $1::timestamptz, 'UTC')
         group by split_part(u.key, $2, 1) having count(distinct u.key) > 1)
       order by s.org_id`,
      [isoFromMicros(nowMicros - LOOK_BACK_MICROS), SOURCE_SEPARATOR],
    ),
  );
  return rows.map(({ org_id }) => org_id);
}

/**
 * Looks through the calls of the last day for services that two scopes tell of, and tells the organization of each that
 * it was not told of yet. A service of which the organization has named the scopes that count is left out: what the
 * others send is counted no more. Returns how many were told.
 */
export async function tellDoubleTellings(orgDb: OrgDb, nowMicros: bigint): Promise<number> {
  const found = await listDoubleTellings(orgDb, nowMicros - LOOK_BACK_MICROS);
  if (found.length === 0) return 0;
  const { settings } = await getOrganization(orgDb);
  const settled = new Set(settings.countedScopes.map(({ service }) => service ?? ''));
  let told = 0;
  for (const double of found)
    if (!settled.has(double.serviceName) && (await tell(orgDb, double, nowMicros))) told += 1;
  return told;
}

async function tell(orgDb: OrgDb, double: DoubleTelling, nowMicros: bigint): Promise<boolean> {
  const pairKey = keyOf(double);
  const former = await findFormer(orgDb, pairKey);
  if (!isWorthTelling(former, nowMicros)) return false;
  const told = { ...double, costUsd: decimalFromPico(double.costPico) };
  return (await recordNotice(orgDb, doubleInstrumentation(told, pairKey, former))) !== undefined;
}

/** Names may be long, and an index takes no long key. */
function keyOf({ serviceName, scopes }: DoubleTelling): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([serviceName, ...scopes]))
    .digest('hex');
  return `double_instrumentation:${digest}`;
}

async function findFormer(orgDb: OrgDb, pairKey: string): Promise<FormerNotice | undefined> {
  const rows = await orgDb.rows<{ id: string; status: AlertStatus; acknowledged_at: bigint | null }>(
    `select id, status, acknowledged_at from alerts
     where org_id = $1 and kind = 'notice' and starts_with(notice_key, $2 || ':')
     order by created_at desc, id desc limit 1`,
    [orgDb.orgId, pairKey],
  );
  const row = rows[0];
  return row && { id: row.id, status: row.status, acknowledgedAtMicros: row.acknowledged_at };
}
