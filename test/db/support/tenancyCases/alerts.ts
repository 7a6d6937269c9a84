import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as alerts from '../../../../db/policies/alerts.js';
import { recordNotice } from '../../../../db/policies/alerts.js';
import { noticeIfBroken } from '../../../../usecases/billing/connectionTurns.js';
import { reportDoublesOf } from '../../../../usecases/events/ingestHealth.js';
import { acknowledgeAlert, getAlert } from '../../../../usecases/policies/policies.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

/** An hour after `makeOwned` has reported calls twice. */
const nowMicros = () => BigInt(Date.now()) * 1_000n;

/** Creates an open alert of a call, whose id is returned, and a notice. */
export async function makeAlert(db: OrgDb, marker: string): Promise<{ alertId: string }> {
  const alertId = randomUUID();
  await db.run(
    `insert into alerts (org_id, id, kind, policy_type, policy_id, event_id, event_timestamp, subject_type, subject_id, severity, message, details)
     values ($1, $2, 'policy', 'approved_models', 1, $3, now(), 'event', $4, 'medium', $4, '{}')`,
    [db.orgId, alertId, randomUUID(), marker],
  );
  await db.run(
    `insert into alerts (org_id, id, kind, notice, notice_key, subject_type, subject_id, severity, message, details)
     values ($1, gen_random_uuid(), 'notice', 'double_instrumentation', $2, 'service', $3, 'medium', $3, '{}')`,
    [db.orgId, `double_instrumentation:${marker}:first`, marker],
  );
  return { alertId };
}

/** Functions of the alerts feed. */
export const ALERT_CASES: Record<string, TenancyCase> = {
  listAlerts: (db) => alerts.listAlerts(db, {}, { limit: 10, offset: 0 }),
  findAlert: (db, { alertId }) => alerts.findAlert(db, alertId),
  getAlert: (db, { alertId }) => getAlert(db, alertId),
  acknowledgeAlert: (db, { alertId, marker }) => acknowledgeAlert(db, alertId, anAuthor(marker)),
  recordAcknowledgement: (db, { alertId, marker }) => alerts.recordAcknowledgement(db, alertId, marker),
  recordNotice: (db, { marker, connection }) =>
    recordNotice(db, {
      code: 'connection_broken',
      key: `connection_broken:${marker}`,
      subject: { type: 'connection', id: connection.id },
      severity: 'high',
      message: marker,
      details: {},
      provider: null,
    }),
  noticeIfBroken: (db, { connection, marker, provider }) =>
    noticeIfBroken(db, {
      id: connection.id,
      name: marker,
      provider,
      accountId: marker,
      lastSyncedAtMicros: null,
      status: 'failing',
      statusBefore: 'active',
      lastErrorCode: 'credentials_refused',
      lastErrorMessage: marker,
      turnedAtMicros: 0n,
    }),
  reportDoublesOf: (db) => reportDoublesOf(db, nowMicros()),
};
