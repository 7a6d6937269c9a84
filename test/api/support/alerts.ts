import { randomUUID } from 'node:crypto';
import { publicId } from '../../../domain/ids.js';
import type { AlertStatus, Severity } from '../../../domain/policies/alert.js';
import type { PolicyType } from '../../../domain/policies/policy.js';
import type { TestApi } from '../../support/api.js';

/** An alert of a test; fields that are not given do not matter to it. */
export interface AlertToStore {
  /** uuid */
  id?: string;
  /** Null: a notice. */
  policyType?: PolicyType | null;
  policyId?: number;
  severity?: Severity;
  status?: AlertStatus;
  model?: string;
  projectId?: string | null;
  costUsd?: string | null;
  /** ISO 8601. */
  createdAt?: string;
  /** uuid of the alert that counts in its place. */
  mergedInto?: string | null;
}

/** Stores alerts as given, without the code that creates them; returns their public ids. */
export async function storeAlerts(
  { database }: Pick<TestApi, 'database'>,
  orgId: string,
  alerts: readonly AlertToStore[],
): Promise<string[]> {
  const ids: string[] = [];
  for (const alert of alerts) {
    const { id = randomUUID(), policyType = 'approved_models', severity = 'medium', status = 'open' } = alert;
    const createdAt = alert.createdAt ?? new Date().toISOString();
    const isNotice = policyType === null;
    const eventId = isNotice ? null : randomUUID();
    await database.superuser.query(
      `insert into alerts (org_id, id, kind, policy_type, policy_id, event_id, event_timestamp, notice, notice_key, subject_type,
         subject_id, severity, status, message, details, provider, model, project_id, cost_usd, created_at, acknowledged_at,
         acknowledged_by, merged_into)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'Something is to be told.', '{}', 'openai', $14, $15, $16, $17, $18, $19, $20)`,
      [
        orgId,
        id,
        isNotice ? 'notice' : 'policy',
        policyType,
        isNotice ? null : (alert.policyId ?? 1),
        eventId,
        isNotice ? null : createdAt,
        isNotice ? 'connection_broken' : null,
        isNotice ? `key of ${id}` : null,
        isNotice ? 'connection' : 'event',
        eventId === null ? 'con_1' : publicId('evt', eventId),
        severity,
        status,
        isNotice ? null : (alert.model ?? 'gpt-4o'),
        alert.projectId ?? null,
        alert.costUsd ?? null,
        createdAt,
        status === 'open' ? null : createdAt,
        status === 'open' ? null : 'key_0000000000',
        alert.mergedInto ?? null,
      ],
    );
    ids.push(publicId('alr', id));
  }
  return ids;
}
