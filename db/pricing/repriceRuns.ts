import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { column } from '../entity.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

export interface NewRepriceRun {
  id: string;
  /** Half-open, by the calls' times. */
  windowStartMicros: bigint;
  windowEndMicros: bigint;
  /** Null: all. */
  provider: string | null;
  model: string | null;
  requestedBy: string | null;
}

/** A re-pricing as it is stored. */
export interface RepriceRun extends Run, Omit<NewRepriceRun, 'requestedBy'> {
  id: string;
  /** The last event that was looked at; null before the first. */
  cursorMicros: bigint | null;
  cursorId: string | null;
  priceVersion: string | null;
}

/** An organization has one open run, which a unique index decides. */
export const REPRICE_RUNS = defineRun<RepriceRun, NewRepriceRun>('reprice', {
  windowStartMicros: column(),
  windowEndMicros: column(),
  provider: column(),
  model: column(),
  cursorMicros: column('cursor_at'),
  cursorId: column(),
  priceVersion: column(),
});

/** What a run has found, in calls that totals count. */
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

/** The same of one provider's model. */
export interface RepriceTotals extends RepriceSums {
  provider: string;
  model: string;
}

export interface RepriceFindings {
  /** Over all models. */
  sums: RepriceSums;
  /** The largest change of cost first; as many as were asked for. */
  models: RepriceTotals[];
  modelCount: number;
}

interface TotalsRow {
  run_id: string;
  /** Null: the sum over all models. */
  provider: string | null;
  model: string | null;
  models: number;
  events: number;
  changed: number;
  old_cost_usd: Pico;
  new_cost_usd: Pico;
  old_computed_cost_usd: Pico;
  new_computed_cost_usd: Pico;
  old_unpriced: number;
  new_unpriced: number;
}

const COUNTED = ['events', 'changed', 'old_unpriced', 'new_unpriced'];
const PRICED = ['old_cost_usd', 'new_cost_usd', 'old_computed_cost_usd', 'new_computed_cost_usd'];
const SUMS = [
  ...COUNTED.map((name) => `sum(${name})::bigint as ${name}`),
  ...PRICED.map((name) => `sum(${name}) as ${name}`),
].join(', ');
const NAMES = [...COUNTED, ...PRICED].join(', ');

/**
 * What each of some runs has found so far, with at most `modelsMax` models of each: models are the clients' to name, and
 * a run can have as many as calls. A run that found nothing is not among them.
 */
export async function listRepriceFindings(
  orgDb: OrgDb,
  runIds: readonly string[],
  modelsMax: number,
): Promise<Map<string, RepriceFindings>> {
  const rows = await orgDb.rows<TotalsRow>(
    `with totals as (select * from reprice_totals where org_id = $1 and run_id = any($2::uuid[])),
     ranked as (select *, row_number() over (partition by run_id order by abs(new_cost_usd - old_cost_usd) desc, provider, model) as place
       from totals)
     select run_id, null as provider, null as model, count(*)::bigint as models, 0::bigint as place, ${SUMS} from totals group by run_id
     union all
     select run_id, provider, model, 1::bigint, place, ${NAMES} from ranked where place <= $3
     order by run_id, place`,
    [orgDb.orgId, runIds, modelsMax],
  );
  const found = new Map<string, RepriceFindings>();
  for (const row of rows) {
    const sums = sumsOf(row);
    const { provider, model } = row;
    if (provider === null || model === null)
      found.set(row.run_id, { sums, models: [], modelCount: row.models });
    else found.get(row.run_id)?.models.push({ provider, model, ...sums });
  }
  return found;
}

function sumsOf(row: TotalsRow): RepriceSums {
  return {
    events: row.events,
    changed: row.changed,
    oldCostPico: row.old_cost_usd,
    newCostPico: row.new_cost_usd,
    oldComputedPico: row.old_computed_cost_usd,
    newComputedPico: row.new_computed_cost_usd,
    oldUnpriced: row.old_unpriced,
    newUnpriced: row.new_unpriced,
  };
}

/**
 * Marks a run as taken up and by which prices it works, the first time it is. Undefined when it has ended or was asked to
 * stop.
 */
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

/** Notes how far a run has come, in the transaction of what it did. */
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

/** A former price of an event. */
export interface FormerPrice {
  costPico: Pico;
  computedCostPico: Pico | null;
  costSource: 'reported' | 'computed' | 'unpriced';
  priceGaps: string[];
  /** When another price took its place, and by which run. */
  untilMicros: bigint;
  runId: string;
}

/** What an event cost before, the oldest price first; nothing of an event that the handle does not see. */
export async function listFormerPrices(orgDb: OrgDb, eventId: string): Promise<FormerPrice[]> {
  const values: SqlValue[] = [orgDb.orgId, eventId];
  const ofProject =
    orgDb.projectId === undefined
      ? ''
      : ` and exists (select from events e where e.org_id = c.org_id and e.timestamp = c.timestamp and e.id = c.event_id
           ${andOfProject(orgDb, values, 'e.project_id')})`;
  const rows = await orgDb.rows<{
    old_cost_usd: Pico;
    old_computed_cost_usd: Pico | null;
    old_cost_source: FormerPrice['costSource'];
    old_price_gaps: string[] | null;
    changed_at: bigint;
    run_id: string;
  }>(
    `select old_cost_usd, old_computed_cost_usd, old_cost_source, old_price_gaps, changed_at, run_id
     from event_price_changes c where org_id = $1 and event_id = $2${ofProject} order by changed_at, run_id`,
    values,
  );
  return rows.map((row) => ({
    costPico: row.old_cost_usd,
    computedCostPico: row.old_computed_cost_usd,
    costSource: row.old_cost_source,
    priceGaps: row.old_price_gaps ?? [],
    untilMicros: row.changed_at,
    runId: row.run_id,
  }));
}
