import type { CostSource } from '../../domain/events/event.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { CallPrice } from '../../domain/pricing/cost.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { StatementNames } from '../statementNames.js';
import { LOG_COLUMN_LIST } from '../usage/usageLog.js';
import { type CompletedForm, completionOf } from './eventColumns.js';

/** Changes of events: the form that was counted is never edited; signed copies are added to event_adjustments. */

/** A copy of the first counted form, with the place and time of its counting. */
const firstForms = (which: string) => `
insert into event_adjustments (org_id, ingest_xid, ingested_at, sign, event_id, ${LOG_COLUMN_LIST})
select org_id, ingest_xid, ingested_at, 1, id, ${LOG_COLUMN_LIST} from events where org_id = $1 and ${which}`;

/** A copy of an event's present sums, subtracted or added by this transaction. */
const copies = (sign: -1 | 1, which: string) => `
insert into event_adjustments (org_id, sign, event_id, ${LOG_COLUMN_LIST})
select org_id, ${sign}, id, ${LOG_COLUMN_LIST} from events where org_id = $1 and ${which}`;

interface EventPlace {
  id: string;
  timestamp: string;
}

// A join: where many events have one time, a look-up of each would read all of them each time.
const MANY = `timestamp between $4::timestamptz and $5::timestamptz
  and (timestamp, id) in (select * from unnest($2::timestamptz[], $3::uuid[]))`;
const MANY_OF_BATCH = 'e.timestamp between $4::timestamptz and $5::timestamptz';
/** False for rows of this transaction, which are in no total yet: only their final form will be. */
const COUNTED_BEFORE = 'ingest_xid <> current_xid() and superseded_by is null';

function placesOf(orgId: string, places: readonly EventPlace[]): [string, string, string, string, string] {
  const times = places.map(({ timestamp }) => timestamp);
  const sorted = times.map(withMicros).sort();
  return [
    orgId,
    textArray(times),
    plainArray(places.map(({ id }) => id)),
    sorted[0] as string,
    sorted.at(-1) as string,
  ];
}

/** Adds the fraction to a whole second, which as text would sort after the times within it. */
function withMicros(time: string): string {
  return time.includes('.') ? time : time.replace('Z', '.000000Z');
}

const KEEP_FIRST_FORMS = firstForms(`${MANY} and revised_xid is null and ${COUNTED_BEFORE}`);
const SUBTRACT = copies(-1, `${MANY} and ${COUNTED_BEFORE}`);
const ADD = copies(1, `${MANY} and ${COUNTED_BEFORE}`);

/** Removes events from the totals before they change: keeps their first form and subtracts their present sums. */
async function withdraw(orgDb: OrgDb, places: readonly string[]): Promise<void> {
  await orgDb.run(KEEP_FIRST_FORMS, places);
  await orgDb.run(SUBTRACT, places);
}

/** The new cost of an event. */
export interface PriceChange extends EventPlace {
  costPico: Pico;
  costSource: CostSource;
  price: CallPrice;
}

/** Changes the prices of locked live events of earlier transactions. */
export async function changePrices(orgDb: OrgDb, changes: readonly PriceChange[]): Promise<void> {
  if (changes.length === 0) return;
  const which = placesOf(orgDb.orgId, changes);
  await orgDb.run(firstForms(`${MANY} and revised_xid is null`), which);
  await orgDb.run(copies(-1, MANY), which);
  const decimal = (pico: Pico | null) => (pico === null ? null : decimalFromPico(pico));
  await orgDb.run(
    `update events e set cost_usd = c.cost, computed_cost_usd = c.computed, cost_source = c.source,
       price_gaps = string_to_array(c.gaps, ','), context_band = c.band, revised_xid = coalesce(e.revised_xid, current_xid())
     from unnest($2::timestamptz[], $3::uuid[], $6::numeric[], $7::numeric[], $8::text[], $9::text[], $10::int4[])
       as c (timestamp, id, cost, computed, source, gaps, band)
     where e.org_id = $1 and e.timestamp = c.timestamp and e.id = c.id and ${MANY_OF_BATCH}`,
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
  await orgDb.run(copies(1, MANY), which);
}

/** An event that no longer counts, and the one that counts for its call. */
export interface Superseded extends EventPlace {
  winnerId: string;
  /** Stored by this transaction, so it is in no total. */
  isNew: boolean;
}

/** Marks locked events as superseded by others. Events that are already superseded stay unchanged. */
export async function supersedeEvents(orgDb: OrgDb, events: readonly Superseded[]): Promise<void> {
  if (events.length === 0) return;
  const counted = events.filter(({ isNew }) => !isNew);
  if (counted.length > 0) await withdraw(orgDb, placesOf(orgDb.orgId, counted));
  await orgDb.run(SUPERSEDE, [
    ...placesOf(orgDb.orgId, events),
    plainArray(events.map(({ winnerId }) => winnerId)),
  ]);
}

const SUPERSEDE = `
update events e set superseded_by = s.winner_id, revised_xid = coalesce(e.revised_xid, current_xid())
from unnest($2::timestamptz[], $3::uuid[], $6::uuid[]) as s (timestamp, id, winner_id)
where e.org_id = $1 and e.timestamp = s.timestamp and e.id = s.id and ${MANY_OF_BATCH} and e.superseded_by is null`;

/** Few combinations of columns are completed. */
const COMPLETIONS = new StatementNames('complete', 32);

/** An event as completed by other reports of its call. */
export interface Completed extends CompletedForm {
  isNew: boolean;
}

/**
 * Stores completed forms of locked live events. Rows of this transaction need no revision: their final form counts
 * first. Nor do rows of which no column changed that totals need.
 */
export async function completeEvents(orgDb: OrgDb, completed: readonly Completed[]): Promise<void> {
  if (completed.length === 0) return;
  const placeOf = ({ event }: Completed) => ({
    id: event.id,
    timestamp: isoFromMicros(event.call.startMicros),
  });
  const old = completed.filter(({ isNew, isRecounted }) => isRecounted && !isNew).map(placeOf);
  const counted = old.length === 0 ? undefined : placesOf(orgDb.orgId, old);
  const { arrays, names, assignments, values } = completionOf(completed, 6);
  const update = `
update events e set ${assignments === '' ? '' : `${assignments}, `}
  revised_xid = case when e.ingest_xid = current_xid() or not c.is_recounted then e.revised_xid
    else coalesce(e.revised_xid, current_xid()) end
from unnest($2::timestamptz[], $3::uuid[], ${arrays}) as c (timestamp, id, ${names})
where e.org_id = $1 and e.timestamp = c.timestamp and e.id = c.id and ${MANY_OF_BATCH} and e.superseded_by is null`;
  const places = placesOf(orgDb.orgId, completed.map(placeOf));
  if (counted) await withdraw(orgDb, counted);
  await orgDb.run(update, [...places, ...values], COMPLETIONS.nameOf(update));
  if (counted) await orgDb.run(ADD, counted);
}
