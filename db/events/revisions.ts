import type { CostSource } from '../../domain/events/event.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { CallPrice } from '../../domain/pricing/cost.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { StatementNames } from '../statementNames.js';
import { LOG_COLUMN_LIST } from '../usage/usageLog.js';
import { type CompletedForm, completionOf } from './eventColumns.js';
import {
  AFTER_PLACES,
  AT_PLACES,
  type EventPlace,
  inOrderOfIds,
  placeAt,
  placesOf,
  valueAt,
} from './eventPlaces.js';

/** Changes of events: the form that was counted is never edited; signed copies are added to event_adjustments. */

/** A copy of the first counted form, with the place and time of its counting. */
const firstForms = (which: string) => `
insert into event_adjustments (org_id, ingest_xid, ingested_at, sign, event_id, ${LOG_COLUMN_LIST})
select org_id, ingest_xid, ingested_at, 1, id, ${LOG_COLUMN_LIST} from events where ${which}`;

/** A copy of an event's present sums, subtracted or added by this transaction. */
const copies = (sign: -1 | 1, which: string) => `
insert into event_adjustments (org_id, sign, event_id, ${LOG_COLUMN_LIST})
select org_id, ${sign}, id, ${LOG_COLUMN_LIST} from events where ${which}`;

/** False for rows of this transaction, which are in no total yet: only their final form will be. */
const COUNTED_BEFORE = 'ingest_xid <> current_xid() and superseded_by is null';

const KEEP_FIRST_FORMS = firstForms(`${AT_PLACES} and revised_xid is null and ${COUNTED_BEFORE}`);
const SUBTRACT = copies(-1, `${AT_PLACES} and ${COUNTED_BEFORE}`);
const ADD = copies(1, `${AT_PLACES} and ${COUNTED_BEFORE}`);

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
  const sorted = inOrderOfIds(changes);
  const which = placesOf(orgDb.orgId, sorted);
  await orgDb.run(firstForms(`${AT_PLACES} and revised_xid is null`), which);
  await orgDb.run(copies(-1, AT_PLACES), which);
  const decimal = (pico: Pico | null) => (pico === null ? null : decimalFromPico(pico));
  await orgDb.run(CHANGE_PRICES, [
    ...which,
    plainArray(sorted.map(({ costPico }) => decimal(costPico))),
    plainArray(sorted.map(({ price }) => decimal(price.computedPico))),
    textArray(sorted.map(({ costSource }) => costSource)),
    textArray(sorted.map(({ price }) => (price.priceGaps.length === 0 ? null : price.priceGaps.join(',')))),
    plainArray(sorted.map(({ price }) => price.contextBand)),
  ]);
  await orgDb.run(copies(1, AT_PLACES), which);
}

const CHANGE_PRICES = `
update events set cost_usd = ${valueAt(AFTER_PLACES, 'numeric')}, computed_cost_usd = ${valueAt(AFTER_PLACES + 1, 'numeric')},
  cost_source = ${valueAt(AFTER_PLACES + 2, 'text')}, price_gaps = string_to_array(${valueAt(AFTER_PLACES + 3, 'text')}, ','),
  context_band = ${valueAt(AFTER_PLACES + 4, 'int4')}, revised_xid = coalesce(revised_xid, current_xid())
where ${AT_PLACES}`;

/** An event that no longer counts, and the one that counts for its call. */
export interface Superseded extends EventPlace {
  winnerId: string;
  /** Stored by this transaction, so it is in no total. */
  isNew: boolean;
}

/** Marks locked events as superseded by others. Events that are already superseded stay unchanged. */
export async function supersedeEvents(orgDb: OrgDb, events: readonly Superseded[]): Promise<void> {
  if (events.length === 0) return;
  const sorted = inOrderOfIds(events);
  const counted = sorted.filter(({ isNew }) => !isNew);
  if (counted.length > 0) await withdraw(orgDb, placesOf(orgDb.orgId, counted));
  await orgDb.run(SUPERSEDE, [
    ...placesOf(orgDb.orgId, sorted),
    plainArray(sorted.map(({ winnerId }) => winnerId)),
  ]);
}

const SUPERSEDE = `
update events set superseded_by = ${valueAt(AFTER_PLACES, 'uuid')}, revised_xid = coalesce(revised_xid, current_xid())
where ${AT_PLACES} and superseded_by is null`;

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
  const placed = inOrderOfIds(
    completed.map((one) => ({ ...one, ...placeAt(one.event.id, one.event.call.startMicros) })),
  );
  const old = placed.filter(({ isNew, isRecounted }) => isRecounted && !isNew);
  const counted = old.length === 0 ? undefined : placesOf(orgDb.orgId, old);
  const { assignments, isRecounted, values } = completionOf(placed);
  const update = `
update events set ${[...assignments, ''].join(', ')}
  revised_xid = case when ingest_xid = current_xid() or not ${isRecounted} then revised_xid
    else coalesce(revised_xid, current_xid()) end
where ${AT_PLACES} and superseded_by is null`;
  if (counted) await withdraw(orgDb, counted);
  await orgDb.run(update, [...placesOf(orgDb.orgId, placed), ...values], COMPLETIONS.nameOf(update));
  if (counted) await orgDb.run(ADD, counted);
}
