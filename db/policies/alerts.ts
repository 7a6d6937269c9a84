import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import {
  ALERT_STATUSES,
  type AlertDetails,
  type AlertKind,
  type AlertStatus,
  alertMessage,
  type Notice,
  type NoticeCode,
  SEVERITIES,
  type Severity,
} from '../../domain/policies/alert.js';
import { POLICY_TYPES, type PolicyType } from '../../domain/policies/policy.js';
import type { AlertSum } from '../../domain/reports/figures.js';
import { column, defineEntity, type TimePage } from '../entity.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';
import { publishMessages } from '../webhooks/webhookDeliveries.js';

/** A stored alert; fields that a notice lacks are null, and `notice` is null for a policy's alert. */
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
  /** Of the call, at the time of the alert. */
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

const { columns: COLUMNS } = defineEntity<StoredAlert>('alerts', {
  id: column(),
  kind: column(),
  policyType: column(),
  policyId: column(),
  eventId: column(),
  eventTimestampMicros: column(),
  notice: column(),
  subject: column("jsonb_build_object('type', subject_type, 'id', subject_id)"),
  severity: column(),
  status: column(),
  message: column(),
  details: column(),
  provider: column(),
  model: column(),
  teamId: column(),
  feature: column(),
  sessionId: column(),
  projectId: column(),
  costPico: column('cost_usd'),
  createdAtMicros: column(),
  acknowledgedAtMicros: column(),
  acknowledgedBy: column(),
});

interface AlertFilter {
  kind?: AlertKind | undefined;
  policyType?: PolicyType | undefined;
  severity?: Severity | undefined;
  status?: AlertStatus | undefined;
  model?: string | undefined;
  fromMicros?: bigint | undefined;
  toMicros?: bigint | undefined;
}

/** Type of an alert in the index: null for a notice. */
type AlertType = PolicyType | null;

/** The types that match a filter; empty where kind and type exclude each other. */
function typesOf({ kind, policyType }: AlertFilter): readonly AlertType[] {
  if (policyType !== undefined) return kind === 'notice' ? [] : [policyType];
  if (kind === 'notice') return [null];
  return kind === 'policy' ? POLICY_TYPES : [...POLICY_TYPES, null];
}

/**
 * A page of the feed, newest first (time, then id), without merged alerts. With a project's handle: the alerts of its
 * calls.
 * A filter by words of fixed lists becomes one index lookup for each matching combination, which Postgres merges: each
 * lookup finds its newest rows at once in an index that begins with all of them, so that no filter reads rows that do
 * not match (docs/decisions/0025).
 */
export async function listAlerts(orgDb: OrgDb, filter: AlertFilter, page: TimePage): Promise<StoredAlert[]> {
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
  const first = `order by created_at desc, id desc limit ${bind(page.offset + page.limit)}`;
  return orgDb.rows<StoredAlert>(
    `select * from (${looks.map((look) => `(select ${COLUMNS} from alerts where ${look} ${first})`).join('\nunion all ')}) found
     order by "createdAtMicros" desc, id desc limit ${bind(page.limit)} offset ${bind(page.offset)}`,
    values,
  );
}

/** The conditions on every alert of the page besides the words. */
function feedConditions(orgDb: OrgDb, filter: AlertFilter, page: TimePage, values: SqlValue[]): string {
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

/** Each matching combination of status, type and severity; all are words of fixed lists. */
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

/** The alert with an id, or the one it was merged into; undefined also outside the handle's project. */
export async function findAlert(orgDb: OrgDb, id: string): Promise<StoredAlert | undefined> {
  const values: SqlValue[] = [orgDb.orgId, id];
  const ofProject = andOfProject(orgDb, values, 'a.project_id');
  const [alert] = await orgDb.rows<StoredAlert>(
    `with recursive standing (id, merged_into) as (
       select id, merged_into from alerts where org_id = $1 and id = $2::uuid
       union
       select a.id, a.merged_into from standing s join alerts a on a.org_id = $1 and a.id = s.merged_into)
     select ${COLUMNS} from alerts a
     where a.org_id = $1 and a.id in (select id from standing) and a.merged_into is null${ofProject}`,
    values,
  );
  return alert;
}

/** Acknowledges an open alert; undefined: it does not exist, is already acknowledged, or was merged. */
export async function recordAcknowledgement(
  orgDb: OrgDb,
  id: string,
  acknowledgedBy: string,
): Promise<StoredAlert | undefined> {
  const values: SqlValue[] = [orgDb.orgId, id, acknowledgedBy];
  const [alert] = await orgDb.rows<StoredAlert>(
    `update alerts set status = 'acknowledged', acknowledged_at = now(), acknowledged_by = $3
     where org_id = $1 and id = $2::uuid and status = 'open' and merged_into is null${andOfProject(orgDb, values)}
     returning ${COLUMNS}`,
    values,
  );
  return alert;
}

/** Alerts of a half-open window of times at which they were made, added up by day and what they are. */
export async function sumAlerts(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
): Promise<AlertSum[]> {
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(window.fromMicros), isoFromMicros(window.toMicros)];
  return orgDb.rows<AlertSum>(
    `select to_char(created_at at time zone 'UTC', 'YYYY-MM-DD') as day, policy_type as "policyType", notice, severity, status,
       count(*)::bigint as alerts, coalesce(sum(cost_usd), 0) as "costPico"
     from alerts
     where org_id = $1 and merged_into is null and created_at >= $2::timestamptz and created_at < $3::timestamptz${andOfProject(orgDb, values)}
     group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`,
    values,
  );
}

/** Most characters of a notice's message; a failure's message may be longer. */
const MESSAGE_CHARS_MAX = 1_000;

/**
 * Publishes a notice in the caller's transaction; a key identifies one episode forever. Returns the id when it is new.
 */
export async function recordNotice(inside: OrgDb, notice: Notice): Promise<string | undefined> {
  const [stored] = await inside.rows<{ id: string; createdAtMicros: bigint }>(
    `insert into alerts (org_id, id, kind, notice, notice_key, subject_type, subject_id, severity, message, details, provider)
     values ($1, gen_random_uuid(), 'notice', $2, $3, $4, $5, $6, $7, $8::jsonb, $9)
     on conflict (org_id, notice_key) where kind = 'notice' do nothing
     returning id, created_at as "createdAtMicros"`,
    [
      ...[inside.orgId, notice.code, notice.key, notice.subject.type, notice.subject.id, notice.severity],
      ...[notice.message.slice(0, MESSAGE_CHARS_MAX), JSON.stringify(notice.details), notice.provider],
    ],
  );
  if (!stored) return undefined;
  await publishMessages(inside, [
    alertMessage({
      ...{ ...stored, kind: 'notice', policyType: null, policyId: null, eventId: null, notice: notice.code },
      ...{ subject: notice.subject, severity: notice.severity },
    }),
  ]);
  return stored.id;
}
