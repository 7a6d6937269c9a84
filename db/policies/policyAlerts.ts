import { hash } from 'node:crypto';
import { uuidFromMicros } from '../../domain/ids.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { alertMessage, subjectOfEvent, type Violation } from '../../domain/policies/alert.js';
import { costOf } from '../../domain/pricing/cost.js';
import type { ColumnValue, StorableEvent } from '../events/eventColumns.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, plainItems, textArray } from '../pgArray.js';
import { publishMessages } from '../webhooks/webhookDeliveries.js';

export interface NewAlert {
  /** uuid, the same whenever the same event is judged to break the same policy. */
  id: string;
  event: StorableEvent;
  violation: Violation;
}

export function newAlert(event: StorableEvent, violation: Violation): NewAlert {
  const digest = hash('sha256', `${event.id} ${violation.policyType}`, 'hex');
  return {
    id: uuidFromMicros(event.call.startMicros, BigInt(`0x${digest.slice(0, 16)}`)),
    event,
    violation,
  };
}

/** The cost of an event; null: unknown. */
export function knownCost(event: Pick<StorableEvent, 'call' | 'price'>): Pico | null {
  const { pico, source } = costOf(event);
  return source === 'unpriced' ? null : pico;
}

/** A column of `alerts`: its name, SQL type, form in its array, and value. */
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
/** SQL types of the arrays of `alertArrays`. */
export const ALERT_TYPES = ALERT_COLUMNS.map(([, type]) => type);

export function alertArrays(alerts: readonly NewAlert[]): string[] {
  return ALERT_COLUMNS.map(([, , form, of]) => {
    const values = alerts.map(of);
    return form === 'text' ? textArray(values as (string | null)[]) : plainArray(values);
  });
}

/** SQL that stores alerts of organization $1 where `condition` holds for `a`; existing ones stay. */
export function insertAlertsSql(arrays: readonly string[], condition: string): string {
  return `insert into alerts (org_id, kind, subject_type, ${NAMES})
  select $1::uuid, 'policy', 'event', a.* from unnest(${arrays.join(', ')}) as a (${NAMES})
  where ${condition}
  on conflict do nothing
  returning id`;
}

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

/** Stores webhook messages about this transaction's alerts, for the endpoints that want them. */
export async function publishPolicyAlerts(orgDb: OrgDb, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const alerts = await orgDb.rows<Parameters<typeof alertMessage>[0]>(
    `select id, kind, policy_type as "policyType", policy_id as "policyId", event_id as "eventId", notice, severity,
       jsonb_build_object('type', subject_type, 'id', subject_id) as subject, created_at as "createdAtMicros"
     from alerts where org_id = $1 and id = any($2::uuid[]) and kind = 'policy'`,
    [orgDb.orgId, plainArray(ids)],
    'alerts_to_tell',
  );
  await publishMessages(orgDb, alerts.map(alertMessage));
}

/** Policies that need the whole call, so that a single report's alert may be wrong. */
const OF_WHOLE_CALL = new Set<string>(['approved_models', 'approval_required_threshold_cents']);

interface Standing {
  /** The event that counts for the call, in its completed form. */
  event: StorableEvent;
  /** The cost before; undefined: the event is new. */
  costBefore: Pico | null | undefined;
  /** Policy violations in reports that joined it. */
  said: readonly Violation[];
}

/** Collects the calls of a transaction that were reported more than once, so that their alerts are updated together. */
export class SettledCalls {
  readonly #standing = new Map<string, Standing>();
  readonly #successors = new Map<string, string>();

  /** Records that an event counts for a call and was completed by another one. */
  note(standing: Standing, otherId: string): void {
    const { event } = standing;
    const known = this.#standing.get(event.id);
    this.#standing.set(event.id, {
      event,
      costBefore: known ? known.costBefore : standing.costBefore,
      said: known ? [...known.said, ...standing.said] : standing.said,
    });
    if (otherId !== event.id) this.#successors.set(otherId, event.id);
  }

  /** The events that count in the end. */
  get calls(): Standing[] {
    return [...this.#standing.values()].filter(({ event }) => !this.#successors.has(event.id));
  }

  /** Every settled event, with the one that counts for it in the end. */
  get members(): { id: string; standsId: string }[] {
    const ids = new Set([...this.#standing.keys(), ...this.#successors.keys()]);
    return [...ids].map((id) => ({ id, standsId: this.#lastOf(id) }));
  }

  #lastOf(id: string): string {
    let last = id;
    for (let next = this.#successors.get(last); next !== undefined; next = this.#successors.get(last))
      last = next;
    return last;
  }
}

export type JudgeCost = (event: StorableEvent, costPico: Pico) => readonly Violation[];

export interface AlertChanges {
  added: NewAlert[];
  removedIds: string[];
}

/**
 * Reduces alerts to one a call and policy: the counting event takes over alerts; new ones are deleted, others are
 * merged. Lock the events first.
 */
export async function settleAlerts(
  orgDb: OrgDb,
  settled: SettledCalls,
  fresh: readonly NewAlert[],
  judgeCost: JudgeCost,
): Promise<AlertChanges> {
  const { members, calls } = settled;
  if (members.length === 0) return { added: [], removedIds: [] };
  const standsFor = new Map(members.map(({ id, standsId }) => [id, standsId]));
  const costChanged = new Set(calls.filter(hasOtherCost).map(({ event }) => event.id));
  const outdated = fresh.filter(({ event, violation: { policyType } }) => {
    const standsId = standsFor.get(event.id);
    if (standsId === undefined || !OF_WHOLE_CALL.has(policyType)) return false;
    if (standsId !== event.id) return true;
    return policyType === 'approval_required_threshold_cents' && costChanged.has(event.id);
  });
  const removedIds = await mergeAlerts(orgDb, members, calls, { fresh, outdated });
  const candidates = calls.flatMap(({ event, said }) => {
    const cost = knownCost(event);
    const ofCost = cost !== null && costChanged.has(event.id) ? judgeCost(event, cost) : [];
    return [...said, ...ofCost].map((violation) => newAlert(event, violation));
  });
  const addedIds = new Set(await insertPolicyAlerts(orgDb, candidates));
  return { added: candidates.filter(({ id }) => addedIds.has(id)), removedIds };
}

function hasOtherCost({ event, costBefore }: Standing): boolean {
  return knownCost(event) !== costBefore;
}

/** Merges the alerts of settled events; returns the ids of deleted ones. */
async function mergeAlerts(
  orgDb: OrgDb,
  members: readonly { id: string; standsId: string }[],
  calls: readonly Standing[],
  { fresh, outdated }: { fresh: readonly NewAlert[]; outdated: readonly NewAlert[] },
): Promise<string[]> {
  const ids = (alerts: readonly NewAlert[]) => plainArray(alerts.map(({ id }) => id));
  const [row] = await orgDb.rows<{ removed: string | null; kept: [string, string][] | null }>(
    `with outdated as (delete from alerts where org_id = $1 and id = any($4::uuid[]) returning id),
     -- locked, so that none of them is being acknowledged meanwhile
     theirs as (
       select a.*, m.stands_id from unnest($2::uuid[], $3::uuid[]) as m (event_id, stands_id)
       join alerts a on a.org_id = $1 and a.event_id = m.event_id
       where a.kind = 'policy' and a.merged_into is null and a.id <> all($4::uuid[])
       for update of a),
     ranked as (
       select id, stands_id, status, acknowledged_at, acknowledged_by,
         first_value(id) over (partition by stands_id, policy_type order by created_at, id) as oldest_id
       from theirs),
     seen_to as (
       update alerts a set status = 'acknowledged', acknowledged_at = r.acknowledged_at, acknowledged_by = r.acknowledged_by
       from (select distinct on (oldest_id) * from ranked where status = 'acknowledged' order by oldest_id, acknowledged_at, id) r
       where a.org_id = $1 and a.id = r.oldest_id and a.status = 'open'),
     doubled as (
       delete from alerts a using ranked r
       where a.org_id = $1 and a.id = r.id and r.id <> r.oldest_id and a.id = any($5::uuid[]) returning a.id),
     merged as (
       update alerts a set merged_into = r.oldest_id from ranked r
       where a.org_id = $1 and a.id = r.id and r.id <> r.oldest_id and a.id <> all($5::uuid[])),
     passed_on as (
       update alerts a set merged_into = r.oldest_id from ranked r
       where a.org_id = $1 and a.merged_into = r.id and r.id <> r.oldest_id)
     select (select array_agg(id)::text from (select id from outdated union all select id from doubled) gone) as removed,
       (select jsonb_agg(jsonb_build_array(id, stands_id)) from ranked where id = oldest_id) as kept`,
    [
      orgDb.orgId,
      plainArray(members.map(({ id }) => id)),
      plainArray(members.map(({ standsId }) => standsId)),
      ids(outdated),
      ids(fresh),
    ],
    'alerts_merged',
  );
  await moveAlerts(orgDb, row?.kept ?? [], calls);
  return plainItems(row?.removed ?? null);
}

async function moveAlerts(
  orgDb: OrgDb,
  kept: readonly [alertId: string, eventId: string][],
  calls: readonly Standing[],
): Promise<void> {
  if (kept.length === 0) return;
  const byId = new Map(calls.map(({ event }) => [event.id, event]));
  const moves = kept.map(([alertId, eventId]) => ({ alertId, event: byId.get(eventId) as StorableEvent }));
  await orgDb.rows(
    `update alerts a set event_id = m.event_id, event_timestamp = m.at, subject_id = m.subject_id, project_id = m.project_id
     from unnest($2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[]) as m (id, event_id, at, subject_id, project_id)
     where a.org_id = $1 and a.id = m.id and (a.event_id, a.project_id) is distinct from (m.event_id, m.project_id)`,
    [
      orgDb.orgId,
      plainArray(moves.map(({ alertId }) => alertId)),
      plainArray(moves.map(({ event }) => event.id)),
      plainArray(moves.map(({ event }) => isoFromMicros(event.call.startMicros))),
      plainArray(moves.map(({ event }) => subjectOfEvent(event.id).id)),
      textArray(moves.map(({ event }) => event.projectId)),
    ],
    'alerts_moved',
  );
}
