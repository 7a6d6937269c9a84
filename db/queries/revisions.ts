import type { OrgDb } from '../orgDb.js';
import { assignments, type StorableEvent, updateValues } from './eventColumns.js';
import { LOG_COLUMN_LIST } from './usageLog.js';

/**
 * Changes to events that are stored: one is superseded by a richer telling of its call, or completed by a poorer
 * one. What was counted is never edited; the change goes into event_adjustments as signed copies.
 */

const ONE = 'timestamp = $2::timestamptz and id = $3::uuid';

/** A copy of the form that was counted first, where and when it was counted. */
const FIRST_FORM = (which: string) => `
insert into event_adjustments (org_id, ingest_xid, ingested_at, sign, event_id, ${LOG_COLUMN_LIST})
select org_id, ingest_xid, ingested_at, 1, id, ${LOG_COLUMN_LIST} from events where org_id = $1 and ${which}`;

/** A copy of what an event counts for now, taken out or put in by this transaction. */
const COPY = (sign: -1 | 1, which: string) => `
insert into event_adjustments (org_id, sign, event_id, ${LOG_COLUMN_LIST})
select org_id, ${sign}, id, ${LOG_COLUMN_LIST} from events where org_id = $1 and ${which}`;

interface EventPlace {
  id: string;
  /** ISO 8601 with microseconds: the event's time, which finds its partition. */
  timestamp: string;
}

interface LockedRow {
  is_new: boolean;
  is_revised: boolean;
  superseded_by: string | null;
}

/**
 * Takes an event out of the totals before it is changed: locks it, keeps its first form at the place where it was
 * counted, and subtracts what it counts for now. Returns false when it counts for nothing (superseded already).
 */
async function withdraw(orgDb: OrgDb, place: EventPlace): Promise<{ counted: boolean; isNew: boolean }> {
  const key = [orgDb.orgId, place.timestamp, place.id];
  const rows = await orgDb.rows<LockedRow>(
    `select ingest_xid = current_xid() as is_new, revised_xid is not null as is_revised, superseded_by
     from events where org_id = $1 and timestamp = $2::timestamptz and id = $3::uuid for update`,
    key,
  );
  const row = rows[0];
  if (!row || row.superseded_by !== null) return { counted: false, isNew: false };
  // A row of this very transaction is in no total yet: its final form will be.
  if (row.is_new) return { counted: true, isNew: true };
  if (!row.is_revised) await orgDb.run(FIRST_FORM(ONE), key);
  await orgDb.run(COPY(-1, ONE), key);
  return { counted: true, isNew: false };
}

/** Lets another event stand for this one. Done already: nothing changes. */
export async function supersedeEvent(orgDb: OrgDb, place: EventPlace, winnerId: string): Promise<void> {
  const { counted } = await withdraw(orgDb, place);
  if (!counted) return;
  await orgDb.run(
    `update events set superseded_by = $4::uuid, revised_xid = coalesce(revised_xid, current_xid())
     where org_id = $1 and timestamp = $2::timestamptz and id = $3::uuid`,
    [orgDb.orgId, place.timestamp, place.id, winnerId],
  );
}

/**
 * Writes an event's completed form over it. A row of this very transaction stays unrevised: its completed form is the
 * first that is counted, and a later revision must find it so.
 */
export async function completeEvent(
  orgDb: OrgDb,
  place: EventPlace,
  completed: StorableEvent,
): Promise<void> {
  const { counted, isNew } = await withdraw(orgDb, place);
  if (!counted) return;
  await orgDb.run(
    `update events set ${assignments(4)}, revised_xid = ${isNew ? 'revised_xid' : 'coalesce(revised_xid, current_xid())'}
     where org_id = $1 and timestamp = $2::timestamptz and id = $3::uuid`,
    [orgDb.orgId, place.timestamp, place.id, ...updateValues(completed)],
  );
  if (!isNew) await orgDb.run(COPY(1, ONE), [orgDb.orgId, place.timestamp, place.id]);
}
