import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import {
  ALERT_STATUSES,
  type AlertDetails,
  type AlertKind,
  type AlertStatus,
  type NoticeCode,
  SEVERITIES,
  type Severity,
} from '../../domain/policies/alerts/alert.js';
import { POLICY_TYPES, type PolicyType } from '../../domain/policies/policy.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';

/** An alert as it is stored; what a notice has no place for is null, and the notice is null of a policy's alert. */
export interface StoredAlert {
  id: string;
  kind: AlertKind;
  policyType: PolicyType | null;
  policyId: number | null;
  eventId: string | null;
  eventTimestampMicros: bigint | null;
  notice: NoticeCode | null;
  subject: { type: string; id: string };
  severity: Severity;
  status: AlertStatus;
  message: string;
  details: AlertDetails;
  /** Of the call, as it stood when the alert was made. */
  provider: string | null;
  model: string | null;
  teamId: string | null;
  feature: string | null;
  sessionId: string | null;
  projectId: string | null;
  costPico: Pico | null;
  createdAtMicros: bigint;
  acknowledgedAtMicros: bigint | null;
  acknowledgedBy: string | null;
}

interface AlertRow {
  id: string;
  kind: AlertKind;
  policy_type: PolicyType | null;
  policy_id: number | null;
  event_id: string | null;
  event_timestamp: bigint | null;
  notice: NoticeCode | null;
  subject_type: string;
  subject_id: string;
  severity: Severity;
  status: AlertStatus;
  message: string;
  details: AlertDetails;
  provider: string | null;
  model: string | null;
  team_id: string | null;
  feature: string | null;
  session_id: string | null;
  project_id: string | null;
  cost_usd: Pico | null;
  created_at: bigint;
  acknowledged_at: bigint | null;
  acknowledged_by: string | null;
}

const COLUMNS = `id, kind, policy_type, policy_id, event_id, event_timestamp, notice, subject_type, subject_id, severity, status,
  message, details, provider, model, team_id, feature, session_id, project_id, cost_usd, created_at, acknowledged_at, acknowledged_by`;

function fromAlertRow(row: AlertRow): StoredAlert {
  return {
    id: row.id,
    kind: row.kind,
    policyType: row.policy_type,
    policyId: row.policy_id,
    eventId: row.event_id,
    eventTimestampMicros: row.event_timestamp,
    notice: row.notice,
    subject: { type: row.subject_type, id: row.subject_id },
    severity: row.severity,
    status: row.status,
    message: row.message,
    details: row.details,
    provider: row.provider,
    model: row.model,
    teamId: row.team_id,
    feature: row.feature,
    sessionId: row.session_id,
    projectId: row.project_id,
    costPico: row.cost_usd,
    createdAtMicros: row.created_at,
    acknowledgedAtMicros: row.acknowledged_at,
    acknowledgedBy: row.acknowledged_by,
  };
}

export interface AlertFilter {
  kind?: AlertKind | undefined;
  policyType?: PolicyType | undefined;
  severity?: Severity | undefined;
  status?: AlertStatus | undefined;
  model?: string | undefined;
  /** Half-open bounds on the time when the alert was made. */
  fromMicros?: bigint | undefined;
  toMicros?: bigint | undefined;
}

export interface AlertPage {
  limit: number;
  offset: number;
  /** The last alert of the page before. */
  after?: { micros: bigint; id: string } | undefined;
}

/** Types of alerts, as an index holds them: of a notice null. */
type AlertType = PolicyType | null;

/** The types that a filter lets through; none where kind and type exclude each other. */
function typesOf({ kind, policyType }: AlertFilter): readonly AlertType[] {
  if (policyType !== undefined) return kind === 'notice' ? [] : [policyType];
  if (kind === 'notice') return [null];
  return kind === 'policy' ? POLICY_TYPES : [...POLICY_TYPES, null];
}

/**
 * A page of the feed, newest first (time, then id). An alert that another one stands for is in no page. With a handle of
 * a project: the alerts of its calls.
 *
 * A filter by words of fixed lists is asked as one look for each combination of them that it lets through, which
 * Postgres merges: each finds its newest at once in an index that begins with all of them, so that no filter has to
 * read past what it does not let through (docs/decisions/0025).
 */
export async function listAlerts(orgDb: OrgDb, filter: AlertFilter, page: AlertPage): Promise<StoredAlert[]> {
  const types = typesOf(filter);
  if (types.length === 0) return [];
  const values: SqlValue[] = [];
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  const where = feedConditions(orgDb, filter, page, values);
  const isByWords =
    types.length <= POLICY_TYPES.length ||
    filter.severity !== undefined ||
    filter.status !== undefined ||
    filter.model !== undefined ||
    orgDb.projectId !== undefined;
  const looks = isByWords ? wordsOf(filter, types).map((words) => `${where} and ${words}`) : [where];
  const order = 'order by created_at desc, id desc';
  const first = `${order} limit ${bind(page.offset + page.limit)}`;
  const rows = await orgDb.rows<AlertRow>(
    `select * from (${looks.map((look) => `(select ${COLUMNS} from alerts where ${look} ${first})`).join('\nunion all ')}) found
     ${order} limit ${bind(page.limit)} offset ${bind(page.offset)}`,
    values,
  );
  return rows.map(fromAlertRow);
}

/** What holds for every alert of the page, whatever its words. */
function feedConditions(orgDb: OrgDb, filter: AlertFilter, page: AlertPage, values: SqlValue[]): string {
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  const conditions = [`org_id = ${bind(orgDb.orgId)}`, 'merged_into is null'];
  if (filter.model !== undefined) conditions.push(`model = ${bind(filter.model)}`);
  if (filter.fromMicros !== undefined)
    conditions.push(`created_at >= ${bind(isoFromMicros(filter.fromMicros))}::timestamptz`);
  if (filter.toMicros !== undefined)
    conditions.push(`created_at < ${bind(isoFromMicros(filter.toMicros))}::timestamptz`);
  if (page.after) {
    const at = `${bind(isoFromMicros(page.after.micros))}::timestamptz`;
    conditions.push(`created_at <= ${at}`, `(created_at, id) < (${at}, ${bind(page.after.id)}::uuid)`);
  }
  return conditions.join(' and ') + andOfProject(orgDb, values);
}

/** Each combination of status, type and severity that the filter lets through; all of them words of fixed lists. */
function wordsOf(filter: AlertFilter, types: readonly AlertType[]): string[] {
  const statuses = filter.status === undefined ? ALERT_STATUSES : [filter.status];
  const severities = filter.severity === undefined ? SEVERITIES : [filter.severity];
  return statuses.flatMap((status) =>
    types.flatMap((type) =>
      severities.map(
        (severity) =>
          `status = '${status}' and policy_type ${type === null ? 'is null' : `= '${type}'`} and severity = '${severity}'`,
      ),
    ),
  );
}

/**
 * The alert behind an id, or, where two calls turned out to be one, the alert that stands for it; undefined for an
 * unknown id, for another organization's and, with a handle of a project, for what is not of its calls.
 */
export async function findAlert(orgDb: OrgDb, id: string): Promise<StoredAlert | undefined> {
  const values: SqlValue[] = [orgDb.orgId, id];
  const ofProject = andOfProject(orgDb, values, 'a.project_id');
  const rows = await orgDb.rows<AlertRow>(
    `with recursive standing (id, merged_into) as (
       select id, merged_into from alerts where org_id = $1 and id = $2::uuid
       union
       select a.id, a.merged_into from standing s join alerts a on a.org_id = $1 and a.id = s.merged_into)
     select ${COLUMNS} from alerts a
     where a.org_id = $1 and a.id in (select id from standing) and a.merged_into is null${ofProject}`,
    values,
  );
  return rows[0] && fromAlertRow(rows[0]);
}

/**
 * Marks an open alert as acknowledged. Undefined, and nothing changed, where it is acknowledged already, is none, or
 * another one stands for it: of two that acknowledge at once one is the first.
 */
export async function recordAcknowledgement(
  orgDb: OrgDb,
  id: string,
  acknowledgedBy: string,
): Promise<StoredAlert | undefined> {
  const values: SqlValue[] = [orgDb.orgId, id, acknowledgedBy];
  const rows = await orgDb.rows<AlertRow>(
    `update alerts set status = 'acknowledged', acknowledged_at = now(), acknowledged_by = $3
     where org_id = $1 and id = $2::uuid and status = 'open' and merged_into is null${andOfProject(orgDb, values)}
     returning ${COLUMNS}`,
    values,
  );
  return rows[0] && fromAlertRow(rows[0]);
}
