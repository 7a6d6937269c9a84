import type { CostSource } from '../../domain/events/event.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros, MICROS_PER_DAY, startOfDay } from '../../domain/period.js';
import { costOf, type EventPrice, isSamePrice, priceOf } from '../../domain/pricing/cost.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { column } from '../entity.js';
import { eventConditions, lockEventsById } from '../events/events.js';
import { changePrices } from '../events/revisions.js';
import {
  callOfStored,
  type EventRow,
  fromEventRow,
  placeOf,
  SELECT_EVENT,
  type StoredEvent,
} from '../events/storedEvents.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { defineRun, lockRun, type Run } from '../runs/runTable.js';
import { sumOfMeasure } from '../usage/usageLog.js';

export interface NewRepriceRun {
  id: string;
  windowStartMicros: bigint;
  windowEndMicros: bigint;
  /** null: all providers. */
  provider: string | null;
  model: string | null;
  requestedBy: string | null;
}

export interface RepriceRun extends Run, Omit<NewRepriceRun, 'requestedBy'> {
  id: string;
  /** The last processed event; null before the first. */
  cursorMicros: bigint | null;
  cursorId: string | null;
  priceVersion: string | null;
}

/** A unique index permits one open run for an organization. */
export const REPRICE_RUNS = defineRun<RepriceRun, NewRepriceRun>('reprice', {
  windowStartMicros: column(),
  windowEndMicros: column(),
  provider: column(),
  model: column(),
  cursorMicros: column('cursor_at'),
  cursorId: column(),
  priceVersion: column(),
});

export interface RepriceSums {
  events: number;
  changed: number;
  oldCostPico: Pico;
  newCostPico: Pico;
  oldComputedPico: Pico;
  newComputedPico: Pico;
  oldUnpriced: number;
  newUnpriced: number;
}

interface RepriceTotals extends RepriceSums {
  provider: string;
  model: string;
}

export interface RepriceFindings {
  sums: RepriceSums;
  /** Largest change of cost first, up to the requested number. */
  models: RepriceTotals[];
  modelCount: number;
}

interface TotalsRow extends RepriceSums {
  runId: string;
  /** null: the sum over all models. */
  provider: string | null;
  model: string | null;
  models: number;
  place: number;
}

const SUMMED = Object.entries({
  events: 'events',
  changed: 'changed',
  old_unpriced: 'oldUnpriced',
  new_unpriced: 'newUnpriced',
  old_cost_usd: 'oldCostPico',
  new_cost_usd: 'newCostPico',
  old_computed_cost_usd: 'oldComputedPico',
  new_computed_cost_usd: 'newComputedPico',
} satisfies Record<string, keyof RepriceSums>);
const SUMS = SUMMED.map(([name, property]) => `${sumOfMeasure(name)} as "${property}"`).join(', ');
const NAMES = SUMMED.map(([name]) => name).join(', ');

/** Findings of runs with at most `modelsMax` models each; runs without findings are absent. */
export async function listRepriceFindings(
  orgDb: OrgDb,
  runIds: readonly string[],
  modelsMax: number,
): Promise<Map<string, RepriceFindings>> {
  const rows = await orgDb.rows<TotalsRow>(
    `with totals as (select * from reprice_totals where org_id = $1 and run_id = any($2::uuid[])),
     ranked as (select *, row_number() over (partition by run_id order by abs(new_cost_usd - old_cost_usd) desc, provider, model) as place
       from totals)
     select run_id as "runId", null as provider, null as model, count(*)::bigint as models, 0::bigint as place, ${SUMS} from totals group by run_id
     union all
     select run_id, provider, model, 1::bigint, place, ${NAMES} from ranked where place <= $3
     order by "runId", place`,
    [orgDb.orgId, runIds, modelsMax],
  );
  const found = new Map<string, RepriceFindings>();
  for (const { runId, provider, model, models, place: _place, ...sums } of rows) {
    if (provider === null || model === null) found.set(runId, { sums, models: [], modelCount: models });
    else found.get(runId)?.models.push({ provider, model, ...sums });
  }
  return found;
}

/** Marks a run as started and sets its price version. undefined: it has ended or is cancelled. */
export async function startRepriceRun(
  orgDb: OrgDb,
  id: string,
  priceVersion: string,
): Promise<RepriceRun | undefined> {
  const rows = await orgDb.rows<RepriceRun>(
    `update reprice_runs set status = 'running', stage = 'pricing', started_at = coalesce(started_at, now()), heartbeat_at = now(),
       price_version = coalesce(price_version, $3)
     where org_id = $1 and id = $2 and status in ('queued', 'running') and cancel_requested_at is null returning ${REPRICE_RUNS.columns}`,
    [orgDb.orgId, id, priceVersion],
  );
  return REPRICE_RUNS.read(rows)[0];
}

/** Records the run's progress, in the transaction of its work. */
export async function moveRepriceCursor(
  orgDb: OrgDb,
  id: string,
  cursor: { micros: bigint; id: string },
): Promise<void> {
  await orgDb.run(
    'update reprice_runs set cursor_at = $3, cursor_id = $4, heartbeat_at = now() where org_id = $1 and id = $2',
    [orgDb.orgId, id, isoFromMicros(cursor.micros), cursor.id],
  );
}

export interface FormerPrice {
  costPico: Pico;
  computedCostPico: Pico | null;
  costSource: 'reported' | 'computed' | 'unpriced';
  priceGaps: string[];
  /** When another price replaced it, and by which run. */
  untilMicros: bigint;
  runId: string;
}

/** Former costs of an event, oldest price first; empty for an event that the handle does not see. */
export async function listFormerPrices(orgDb: OrgDb, eventId: string): Promise<FormerPrice[]> {
  const values: SqlValue[] = [orgDb.orgId, eventId];
  const ofProject =
    orgDb.projectId === undefined
      ? ''
      : ` and exists (select from events e where e.org_id = c.org_id and e.timestamp = c.timestamp and e.id = c.event_id
           ${andOfProject(orgDb, values, 'e.project_id')})`;
  return orgDb.rows<FormerPrice>(
    `select old_cost_usd as "costPico", old_computed_cost_usd as "computedCostPico", old_cost_source as "costSource",
       coalesce(old_price_gaps, '{}') as "priceGaps", changed_at as "untilMicros", run_id as "runId"
     from event_price_changes c where org_id = $1 and event_id = $2${ofProject} order by changed_at, run_id`,
    values,
  );
}

/** Most events of one transaction: the fold waits as long as it lasts. */
const BATCH_EVENTS = 1_000;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** Whether a run has more work, is complete, or may not continue. */
export type RepriceStep = 'more' | 'done' | 'over';

interface Repriced {
  event: StoredEvent;
  before: EventPrice;
  after: EventPrice;
}

/** Prices the next 1,000 events at most, within one UTC day; prices, sums and cursor commit together. */
export async function repriceBatch(inside: OrgDb, runId: string, book: PriceBook): Promise<RepriceStep> {
  const run = await lockRun(inside, REPRICE_RUNS, runId);
  if (run?.status !== 'running') return 'over';
  const from = { micros: run.cursorMicros ?? run.windowStartMicros, id: run.cursorId ?? FIRST_ID };
  if (from.micros >= run.windowEndMicros) return 'done';
  const dayEnd = startOfDay(from.micros) + MICROS_PER_DAY;
  const untilMicros = dayEnd < run.windowEndMicros ? dayEnd : run.windowEndMicros;
  const events = await readNext(inside, run, from, untilMicros);
  const repriced = await settle(
    inside,
    events.map((event) => reprice(event, book)),
    book,
  );
  await recordChanges(inside, run, repriced.filter(isChanged), book.version);
  await addTotals(inside, run.id, repriced);
  const last = events.length === BATCH_EVENTS ? events.at(-1) : undefined;
  const cursor = last ? { micros: last.timestampMicros, id: last.id } : { micros: untilMicros, id: FIRST_ID };
  await moveRepriceCursor(inside, run.id, cursor);
  return cursor.micros >= run.windowEndMicros ? 'done' : 'more';
}

async function readNext(
  orgDb: OrgDb,
  run: RepriceRun,
  after: { micros: bigint; id: string },
  untilMicros: bigint,
): Promise<StoredEvent[]> {
  const values: SqlValue[] = [];
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  let where = eventConditions(orgDb, { fromMicros: after.micros, toMicros: untilMicros }, values);
  where += ` and (e.timestamp, e.id) > (${bind(isoFromMicros(after.micros))}::timestamptz, ${bind(after.id)}::uuid)`;
  if (run.provider !== null) {
    const provider = bind(run.provider);
    where += ` and (e.billed_by = ${provider} or e.provider = ${provider})`;
  }
  if (run.model !== null) {
    const model = bind(run.model);
    where += ` and (e.model = ${model} or e.response_model = ${model})`;
  }
  const rows = await orgDb.rows<EventRow>(
    `select ${SELECT_EVENT} from events e where ${where} order by e.timestamp, e.id limit ${BATCH_EVENTS}`,
    values,
  );
  return rows.map((row) => fromEventRow(row, false));
}

/** An event's present and new cost, by the same function that priced it at ingest. */
function reprice(event: StoredEvent, book: PriceBook): Repriced {
  const call = callOfStored(event, null);
  const price = priceOf(call, book);
  const { pico, source } = costOf({ call, price });
  return {
    event,
    before: {
      costPico: event.costPico,
      costSource: event.costSource,
      price: {
        computedPico: event.computedCostPico,
        priceGaps: event.priceGaps,
        contextBand: event.contextBand,
      },
    },
    after: { costPico: pico, costSource: source, price },
  };
}

const isChanged = ({ before, after }: Repriced) => !isSamePrice(before, after);

/** Reprices changed events under a lock and skips those superseded meanwhile. */
async function settle(orgDb: OrgDb, found: readonly Repriced[], book: PriceBook): Promise<Repriced[]> {
  const changed = found.filter(isChanged);
  if (changed.length === 0) return [...found];
  const locked = await lockEventsById(
    orgDb,
    changed.map(({ event }) => event.id),
  );
  const live = locked.filter((event) => event.supersededBy === null);
  return [...found.filter((one) => !isChanged(one)), ...live.map((event) => reprice(event, book))];
}

async function recordChanges(
  orgDb: OrgDb,
  run: RepriceRun,
  changed: readonly Repriced[],
  priceVersion: string,
): Promise<void> {
  if (changed.length === 0) return;
  await changePrices(
    orgDb,
    changed.map(({ event, after }) => ({ ...placeOf(event), ...after })),
  );
  const decimals = (of: (one: Repriced) => Pico | null) =>
    plainArray(
      changed.map((one) => {
        const pico = of(one);
        return pico === null ? null : decimalFromPico(pico);
      }),
    );
  const gaps = ({ price }: EventPrice) => (price.priceGaps.length === 0 ? null : price.priceGaps.join(','));
  await orgDb.run(
    `insert into event_price_changes (org_id, run_id, price_version, event_id, timestamp, old_cost_usd, new_cost_usd, old_computed_cost_usd,
       new_computed_cost_usd, old_cost_source, new_cost_source, old_price_gaps, new_price_gaps, old_context_band, new_context_band)
     select $1::uuid, $2::uuid, $3, c.id, c.at, c.o_cost, c.n_cost, c.o_computed, c.n_computed, c.o_source, c.n_source,
       string_to_array(c.o_gaps, ','), string_to_array(c.n_gaps, ','), c.o_band, c.n_band
     from unnest($4::uuid[], $5::timestamptz[], $6::numeric[], $7::numeric[], $8::numeric[], $9::numeric[], $10::text[], $11::text[],
       $12::text[], $13::text[], $14::int4[], $15::int4[])
       as c (id, at, o_cost, n_cost, o_computed, n_computed, o_source, n_source, o_gaps, n_gaps, o_band, n_band)`,
    [
      orgDb.orgId,
      run.id,
      priceVersion,
      plainArray(changed.map(({ event }) => event.id)),
      textArray(changed.map(({ event }) => isoFromMicros(event.timestampMicros))),
      decimals(({ before }) => before.costPico),
      decimals(({ after }) => after.costPico),
      decimals(({ before }) => before.price.computedPico),
      decimals(({ after }) => after.price.computedPico),
      textArray(changed.map(({ before }) => before.costSource)),
      textArray(changed.map(({ after }) => after.costSource)),
      textArray(changed.map(({ before }) => gaps(before))),
      textArray(changed.map(({ after }) => gaps(after))),
      plainArray(changed.map(({ before }) => before.price.contextBand)),
      plainArray(changed.map(({ after }) => after.price.contextBand)),
    ],
  );
}

interface Sums {
  provider: string;
  model: string;
  events: number;
  changed: number;
  oldCost: Pico;
  newCost: Pico;
  oldComputed: Pico;
  newComputed: Pico;
  oldUnpriced: number;
  newUnpriced: number;
}

const isUnpriced = (source: CostSource) => (source === 'unpriced' ? 1 : 0);

function sumByModel(repriced: readonly Repriced[]): Sums[] {
  const sums = new Map<string, Sums>();
  for (const one of repriced) {
    const { event, before, after } = one;
    // Blocked calls are in no total.
    if (event.status === 'blocked') continue;
    const { provider, model } = event;
    const key = `${provider}|${model}`;
    const known = sums.get(key);
    const none = { events: 0, changed: 0, oldCost: 0n, newCost: 0n, oldComputed: 0n, newComputed: 0n };
    const sum = known ?? { provider, model, ...none, oldUnpriced: 0, newUnpriced: 0 };
    sum.events += 1;
    sum.changed += isChanged(one) ? 1 : 0;
    sum.oldCost += before.costPico;
    sum.newCost += after.costPico;
    sum.oldComputed += before.price.computedPico ?? 0n;
    sum.newComputed += after.price.computedPico ?? 0n;
    sum.oldUnpriced += isUnpriced(before.costSource);
    sum.newUnpriced += isUnpriced(after.costSource);
    sums.set(key, sum);
  }
  return [...sums.values()];
}

const SUM_COLUMNS = [
  'events',
  'changed',
  'old_cost_usd',
  'new_cost_usd',
  'old_computed_cost_usd',
  'new_computed_cost_usd',
  'old_unpriced',
  'new_unpriced',
];

async function addTotals(orgDb: OrgDb, runId: string, repriced: readonly Repriced[]): Promise<void> {
  const sums = sumByModel(repriced);
  if (sums.length === 0) return;
  const added = SUM_COLUMNS.map((name) => `${name} = t.${name} + excluded.${name}`).join(', ');
  await orgDb.run(
    `insert into reprice_totals as t (org_id, run_id, provider, model, ${SUM_COLUMNS.join(', ')})
     select $1::uuid, $2::uuid, s.* from unnest($3::text[], $4::text[], $5::int8[], $6::int8[], $7::numeric[], $8::numeric[],
       $9::numeric[], $10::numeric[], $11::int8[], $12::int8[]) s
     on conflict (org_id, run_id, provider, model) do update set ${added}`,
    [
      orgDb.orgId,
      runId,
      textArray(sums.map(({ provider }) => provider)),
      textArray(sums.map(({ model }) => model)),
      plainArray(sums.map(({ events }) => events)),
      plainArray(sums.map(({ changed }) => changed)),
      plainArray(sums.map(({ oldCost }) => decimalFromPico(oldCost))),
      plainArray(sums.map(({ newCost }) => decimalFromPico(newCost))),
      plainArray(sums.map(({ oldComputed }) => decimalFromPico(oldComputed))),
      plainArray(sums.map(({ newComputed }) => decimalFromPico(newComputed))),
      plainArray(sums.map(({ oldUnpriced }) => oldUnpriced)),
      plainArray(sums.map(({ newUnpriced }) => newUnpriced)),
    ],
  );
}
