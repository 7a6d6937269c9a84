import type { CostSource } from '../../domain/events/event.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { CallPrice } from '../../domain/pricing/cost.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { assignments, type StorableEvent, updateValues } from './eventColumns.js';
import { LOG_COLUMN_LIST } from './usageLog.js';

/**
 * Changes to events that are stored: one is superseded by a richer telling of its call, completed by a poorer one, or
 * priced anew. What was counted is never edited; the change goes into event_adjustments as signed copies.
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

/** What an event costs by other prices than before. */
export interface PriceChange extends EventPlace {
  costPico: Pico;
  costSource: CostSource;
  price: CallPrice;
}

const MANY = `timestamp between $4::timestamptz and $5::timestamptz
  and (timestamp, id) in (select * from unnest($2::timestamptz[], $3::uuid[]))`;

/**
 * Writes other prices on events of earlier transactions, which the caller has locked in this one and of which none is
 * superseded. `changes` must be in order of time.
 */
export async function changePrices(orgDb: OrgDb, changes: readonly PriceChange[]): Promise<void> {
  const [first, last] = [changes[0], changes.at(-1)];
  if (!first || !last) return;
  const which = [
    orgDb.orgId,
    textArray(changes.map(({ timestamp }) => timestamp)),
    plainArray(changes.map(({ id }) => id)),
    first.timestamp,
    last.timestamp,
  ];
  await orgDb.run(FIRST_FORM(`${MANY} and revised_xid is null`), which);
  await orgDb.run(COPY(-1, MANY), which);
  const decimal = (pico: Pico | null) => (pico === null ? null : decimalFromPico(pico));
  await orgDb.run(
    `update events e set cost_usd = c.cost, computed_cost_usd = c.computed, cost_source = c.source,
       price_gaps = string_to_array(c.gaps, ','), context_band = c.band, revised_xid = coalesce(e.revised_xid, current_xid())
     from unnest($2::timestamptz[], $3::uuid[], $6::numeric[], $7::numeric[], $8::text[], $9::text[], $10::int4[])
       as c (timestamp, id, cost, computed, source, gaps, band)
     where e.org_id = $1 and e.timestamp = c.timestamp and e.id = c.id and e.timestamp between $4::timestamptz and $5::timestamptz`,
    [
      ...which,
      plainArray(changes.map(({ costPico }) => decimal(costPico))),
      plainArray(changes.map(({ price }) => decimal(price.computedPico))),
      textArray(changes.map(({ costSource }) => costSource)),
      textArray(
        changes.map(({ price }) => (price.priceGaps.length === 0 ? null : price.priceGaps.join(','))),
      ),
      plainArray(changes.map(({ price }) => price.contextBand)),
    ],
  );
  await orgDb.run(COPY(1, MANY), which);
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
