import { writeAuditCsv } from '../../../api/reconciliation/audit/csv.js';
import { presentAudit } from '../../../api/reconciliation/audit/wire.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { DomainError } from '../../../domain/errors.js';
import { StartError } from '../../../platform/startError.js';
import { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { auditBills } from '../../../usecases/reconciliation/billAudit.js';
import type { AuditArguments } from './auditArguments.js';
import { auditTable } from './auditTable.js';

/**
 * The audit that `npm run audit` was asked for: what it prints, and whether a charge is not at the agreed rate.
 * @throws StartError for a range that cannot be audited.
 */
export async function runAudit(
  orgDb: OrgDb,
  asked: Omit<AuditArguments, 'org'>,
  nowMicros: bigint,
): Promise<{ text: string; differs: boolean }> {
  const holder = await PriceBookHolder.open(orgDb.database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  const agreed = await holder.of(orgDb.orgId);
  const { provider, fromDay, toDay } = asked;
  const report = await auditBills(
    orgDb,
    { provider, fromDay, toDay, nowMicros },
    { agreed, list: agreed.list },
  ).catch((error: unknown) => {
    throw error instanceof DomainError && error.code === 'invalid_range'
      ? new StartError(`--${error.message}.`)
      : error;
  });
  await holder.settle();
  const text =
    asked.format === 'json'
      ? `${JSON.stringify(presentAudit(report, agreed.versionAt(nowMicros)), null, 2)}\n`
      : asked.format === 'csv'
        ? writeAuditCsv(report)
        : auditTable(report);
  return { text, differs: report.differences.length + report.omitted.lines > 0 };
}
