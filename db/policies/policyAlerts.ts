import { hash } from 'node:crypto';
import { uuidFromMicros } from '../../domain/ids.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { AlertKind, Severity, Violation } from '../../domain/policies/alerts/alert.js';
import { alertMessage, subjectOfEvent } from '../../domain/policies/alerts/alertMessage.js';
import type { PolicyType } from '../../domain/policies/policy.js';
import { costOf } from '../../domain/pricing/eventPrice.js';
import type { ColumnValue, StorableEvent } from '../events/eventColumns.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { publishMessages } from '../webhooks/webhookMessages.js';

/** An alert of a call that breaks a policy, ready to be stored. */
export interface NewAlert {
  /** uuid, the same whenever the same event is judged to break the same policy. */
  id: string;
  event: StorableEvent;
  violation: Violation;
}

/** The alert of an event that breaks a policy. */
export function newAlert(event: StorableEvent, violation: Violation): NewAlert {
  const digest = hash('sha256', `${event.id} ${violation.policyType}`, 'hex');
  return {
    id: uuidFromMicros(event.call.startMicros, BigInt(`0x${digest.slice(0, 16)}`)),
    event,
    violation,
  };
}

/** What an event costs; null where nobody knows. */
export function knownCost(event: Pick<StorableEvent, 'call' | 'price'>): Pico | null {
  const { pico, source } = costOf(event);
  return source === 'unpriced' ? null : pico;
}

/** A column of `alerts`: its name, SQL type, how its array is written, and its value. */
type AlertColumn = readonly [string, string, 'text' | 'plain', (alert: NewAlert) => ColumnValue];

const ALERT_COLUMNS: readonly AlertColumn[] = [
  ['id', 'uuid', 'plain', ({ id }) => id],
  ['event_id', 'uuid', 'plain', ({ event }) => event.id],
  ['event_timestamp', 'timestamptz', 'plain', ({ event }) => isoFromMicros(event.call.startMicros)],
  ['subject_id', 'text', 'plain', ({ event }) => subjectOfEvent(event.id).id],
  ['policy_type', 'text', 'plain', ({ violation }) => violation.policyType],
  ['policy_id', 'int4', 'plain', ({ violation }) => violation.policyId],
  ['severity', 'text', 'plain', ({ violation }) => violation.severity],
  ['message', 'text', 'text', ({ violation }) => violation.message],
  ['details', 'jsonb', 'text', ({ violation }) => JSON.stringify(violation.details)],
  ['provider', 'text', 'plain', ({ event }) => event.call.provider],
  ['model', 'text', 'text', ({ event }) => event.call.model],
  ['team_id', 'text', 'text', ({ event }) => event.call.teamId],
  ['feature', 'text', 'text', ({ event }) => event.call.feature],
  ['session_id', 'text', 'text', ({ event }) => event.call.sessionId],
  ['project_id', 'text', 'text', ({ event }) => event.projectId],
  ['cost_usd', 'numeric', 'plain', ({ event }) => decimalOrNull(knownCost(event))],
];

function decimalOrNull(pico: Pico | null): string | null {
  return pico === null ? null : decimalFromPico(pico);
}

const NAMES = ALERT_COLUMNS.map(([name]) => name).join(', ');
/** SQL types of the arrays that `alertArrays` gives. */
export const ALERT_TYPES = ALERT_COLUMNS.map(([, type]) => type);

/** The alerts as array literals, column by column. */
export function alertArrays(alerts: readonly NewAlert[]): string[] {
  return ALERT_COLUMNS.map(([, , form, of]) => {
    const values = alerts.map(of);
    return form === 'text' ? textArray(values as (string | null)[]) : plainArray(values);
  });
}

/**
 * SQL that stores alerts of organization $1 from the arrays; `condition` says of which, by the alias `a`. One that is
 * there stays.
 */
export function insertAlertsSql(arrays: readonly string[], condition: string): string {
  return `insert into alerts (org_id, kind, subject_type, ${NAMES})
  select $1::uuid, 'policy', 'event', a.* from unnest(${arrays.join(', ')}) as a (${NAMES})
  where ${condition}
  on conflict do nothing
  returning id`;
}

/** Stores alerts of events that are stored; returns the ids of those that are new. */
export async function insertPolicyAlerts(orgDb: OrgDb, alerts: readonly NewAlert[]): Promise<string[]> {
  if (alerts.length === 0) return [];
  const arrays = ALERT_TYPES.map((type, index) => `$${index + 2}::${type}[]`);
  const rows = await orgDb.rows<{ id: string }>(
    insertAlertsSql(arrays, 'true'),
    [orgDb.orgId, ...alertArrays(alerts)],
    'alerts_of_calls',
  );
  return rows.map(({ id }) => id);
}

interface ToldRow {
  id: string;
  kind: AlertKind;
  policy_type: PolicyType;
  policy_id: number;
  event_id: string;
  subject_type: string;
  subject_id: string;
  severity: Severity;
  created_at: bigint;
}

/** Leaves the webhook messages of alerts of this transaction, for whoever wants them. */
export async function publishPolicyAlerts(orgDb: OrgDb, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const rows = await orgDb.rows<ToldRow>(
    `select id, kind, policy_type, policy_id, event_id, subject_type, subject_id, severity, created_at
     from alerts where org_id = $1 and id = any($2::uuid[]) and kind = 'policy'`,
    [orgDb.orgId, plainArray(ids)],
    'alerts_to_tell',
  );
  await publishMessages(
    orgDb,
    rows.map((row) =>
      alertMessage({
        id: row.id,
        kind: row.kind,
        policyType: row.policy_type,
        policyId: row.policy_id,
        eventId: row.event_id,
        notice: null,
        subject: { type: row.subject_type, id: row.subject_id },
        severity: row.severity,
        createdAtMicros: row.created_at,
      }),
    ),
  );
}
