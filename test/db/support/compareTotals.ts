import type pg from 'pg';
import { expect } from 'vitest';
import { listObservedCells, type ObservedCell } from '../../../db/billing/billingCells.js';
import { OrgDb } from '../../../db/orgDb.js';
import { foldUsage } from '../../../db/usage/rollups.js';
import type { UsageDimension, UsageQuery } from '../../../db/usage/usage.js';
import { dayOf, MICROS_PER_DAY } from '../../../domain/period.js';
import { sumUsage } from '../../../usecases/usage/usage.js';
import { untilNothingHoldsBack } from '../../support/horizon.js';
import { DAYS, DIMENSIONS, FIRST, HOUR, type Question } from './drawSteps.js';
import { type LiveEvent, picoOfNumeric, readLiveEvents, sumBy } from './liveEvents.js';

export const KEY_OF: Record<UsageDimension, (event: LiveEvent) => string> = {
  model: (event) => event.model,
  provider: (event) => event.provider,
  team: (event) => event.team,
  feature: (event) => event.feature,
  project: (event) => event.project,
  key: (event) => event.key,
  user: (event) => event.user,
  session: (event) => event.session,
  day: (event) => dayOf(event.micros),
};

export function measuresOf(event: LiveEvent) {
  return {
    calls: 1n,
    inputTokens: event.input,
    outputTokens: event.output,
    cacheRead: event.cacheRead,
    cacheCreation: event.cacheCreation,
    reasoningTok: event.reasoning,
    costPico: event.costPico,
    computedCostPico: event.computedPico ?? 0n,
    reportedCostPico: event.reportedPico,
    unpriced: event.costSource === 'unpriced' ? 1n : 0n,
  };
}

export function isAsked(event: LiveEvent, asked: Omit<Question, 'dimension'>): boolean {
  const { filter } = asked;
  return (
    event.status !== 'blocked' &&
    (asked.fromMicros === undefined || event.micros >= asked.fromMicros) &&
    (asked.toMicros === undefined || event.micros < asked.toMicros) &&
    (filter.provider === undefined || event.provider === filter.provider) &&
    (filter.model === undefined || event.model === filter.model) &&
    (filter.teamId === undefined || event.team === filter.teamId) &&
    (filter.feature === undefined || event.feature === filter.feature) &&
    (filter.sessionId === undefined || event.session === filter.sessionId) &&
    (filter.projectId === undefined || event.project === filter.projectId) &&
    (filter.boundProjectId === undefined || event.project === filter.boundProjectId) &&
    (filter.kind === undefined || event.kind === filter.kind)
  );
}

/** The product's answer, with every count as a bigint, by key. Uses a project's handle where one is bound. */
export async function askProduct(orgDb: OrgDb, asked: Omit<UsageQuery, 'limit' | 'offset'>) {
  const projectId = asked.filter.boundProjectId;
  const bound = projectId === undefined ? orgDb : new OrgDb(orgDb.database, orgDb.orgId, { projectId });
  const { totals, groups } = await sumUsage(bound, { ...asked, limit: 1_000, offset: 0 });
  const exact = (row: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(row)
        .filter(([name]) => !['key', 'firstSeenMicros', 'lastSeenMicros'].includes(name))
        .map(([name, value]) => [name, BigInt(value as number)]),
    );
  return {
    totals: exact({ ...totals }),
    groups: new Map(groups.map((group) => [group.key, exact({ ...group })])),
  };
}

/** Compares a read's answer with the events themselves. */
export async function compareRead(superuser: pg.Pool, orgDb: OrgDb, asked: Question): Promise<void> {
  const events = (await readLiveEvents(superuser, orgDb.orgId)).filter((event) => isAsked(event, asked));
  const answer = await askProduct(orgDb, asked);
  const zero = measuresOf({
    ...({} as LiveEvent),
    input: 0n,
    output: 0n,
    cacheRead: 0n,
    cacheCreation: 0n,
    reasoning: 0n,
    costPico: 0n,
    computedPico: 0n,
    reportedPico: 0n,
  });
  const all = sumBy(events, () => 'all', measuresOf).get('all') ?? { ...zero, calls: 0n };
  expect(
    answer.totals,
    JSON.stringify(asked, (_, v) => (typeof v === 'bigint' ? `${v}` : v)),
  ).toEqual(all);
  expect(answer.groups).toEqual(sumBy(events, KEY_OF[asked.dimension], measuresOf));
}

function cellKey(event: LiveEvent): string {
  const hour = event.endMicros - (event.endMicros % HOUR);
  const model = event.responseModel ?? event.model;
  return [
    hour,
    event.billedBy,
    event.account,
    event.providerKey,
    model,
    event.tier,
    event.isBatch,
    event.band,
    event.status,
  ].join('|');
}

function cellMeasures(event: LiveEvent) {
  const isUnpriced = event.computedPico === null && !event.unmetered;
  return {
    calls: 1n,
    inputTokens: event.input - event.inputAudio,
    cacheRead: event.cacheRead,
    cacheWrite5m: event.cacheCreation - event.cacheCreation1h,
    cacheWrite1h: event.cacheCreation1h,
    outputTokens: event.output - event.outputAudio,
    inputAudio: event.inputAudio,
    outputAudio: event.outputAudio,
    reasoningTok: event.reasoning,
    computedCostPico: event.computedPico ?? 0n,
    unpriced: isUnpriced ? 1n : 0n,
    priceGaps: event.hasGaps ? 1n : 0n,
    unmetered: event.unmetered ? 1n : 0n,
  };
}

/** A cell's key and its measures as bigints. */
function presentCell(cell: ObservedCell): [string, Record<string, bigint>] {
  const {
    hourMicros,
    billedBy,
    providerAccountId,
    providerKeyId,
    model,
    serviceTier,
    isBatch,
    contextBand,
    status,
    ...rest
  } = cell;
  const { firstSeenMicros: _first, lastSeenMicros: _last, ...measures } = rest;
  return [
    [
      hourMicros,
      billedBy,
      providerAccountId,
      providerKeyId,
      model,
      serviceTier,
      isBatch,
      contextBand,
      status,
    ].join('|'),
    Object.fromEntries(Object.entries(measures).map(([name, value]) => [name, BigInt(value)])),
  ];
}

/** The cells that a bill is compared with, against the events themselves. */
export async function compareCells(
  superuser: pg.Pool,
  orgDb: OrgDb,
  days = Array.from({ length: Number(DAYS) + 1 }, (_, index) =>
    dayOf(FIRST + BigInt(index) * MICROS_PER_DAY),
  ),
): Promise<void> {
  const events = (await readLiveEvents(superuser, orgDb.orgId)).filter(({ status }) => status !== 'blocked');
  const answered = new Map<string, Record<string, bigint>>();
  const scopes = (['openai', 'anthropic', 'unknown'] as const).flatMap((provider) =>
    days.map((day) => ({ provider, day })),
  );
  for (const cells of await Promise.all(scopes.map((scope) => listObservedCells(orgDb, scope)))) {
    for (const cell of cells) {
      const [key, measures] = presentCell(cell);
      expect(answered.has(key)).toBe(false);
      answered.set(key, measures);
    }
  }
  expect(answered).toEqual(sumBy(events, cellKey, cellMeasures));
}

/** Folds until everything that is stored by now is in the totals. */
export async function foldAll(superuser: pg.Pool, orgDb: OrgDb): Promise<void> {
  await untilNothingHoldsBack(superuser);
  while ((await foldUsage(orgDb.database, orgDb.orgId)).more);
  const { rows } = await superuser.query<{ is_folded: boolean }>(
    `select coalesce(greatest((select max(ingest_xid) from events where org_id = $1), (select max(ingest_xid) from event_adjustments where org_id = $1))
       < (select least(folded_xid, projects_xid) from rollup_state where org_id = $1), true) as is_folded`,
    [orgDb.orgId],
  );
  expect(rows[0]?.is_folded).toBe(true);
}

/** Measures of a stored total, as a superuser reads them. */
const STORED = `calls, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cost_usd::text,
  computed_cost_usd::text, reported_cost_usd::text, unpriced`;

function storedMeasures(row: Record<string, string>) {
  return {
    calls: BigInt(row.calls ?? 0),
    inputTokens: BigInt(row.input_tokens ?? 0),
    outputTokens: BigInt(row.output_tokens ?? 0),
    cacheRead: BigInt(row.cache_read ?? 0),
    cacheCreation: BigInt(row.cache_creation ?? 0),
    reasoningTok: BigInt(row.reasoning_tok ?? 0),
    costPico: picoOfNumeric(row.cost_usd ?? '0'),
    computedCostPico: picoOfNumeric(row.computed_cost_usd ?? '0'),
    reportedCostPico: picoOfNumeric(row.reported_cost_usd ?? '0'),
    unpriced: BigInt(row.unpriced ?? 0),
  };
}

/** The stored totals, read past the product, against the events: everything is folded, nothing twice. */
export async function compareStored(superuser: pg.Pool, orgId: string): Promise<void> {
  const events = (await readLiveEvents(superuser, orgId)).filter((event) => event.status !== 'blocked');
  const stored = await superuser.query<Record<string, string>>(
    `select dimension, (extract(epoch from bucket) * 1000000)::bigint::text as bucket, key, ${STORED}
     from usage_rollups where org_id = $1 and calls <> 0`,
    [orgId],
  );
  const found = new Map(
    stored.rows.map((row) => [`${row.dimension}|${row.bucket}|${row.key}`, storedMeasures(row)]),
  );
  const expected = new Map<string, ReturnType<typeof measuresOf>>();
  for (const dimension of [...DIMENSIONS.filter((name) => name !== 'day'), 'source'] as const) {
    const size = dimension === 'user' || dimension === 'session' ? MICROS_PER_DAY : HOUR;
    const keyOf = dimension === 'source' ? (event: LiveEvent) => event.source : KEY_OF[dimension];
    const sums = sumBy(
      events,
      (event) => `${dimension}|${event.micros - (event.micros % size)}|${keyOf(event)}`,
      measuresOf,
    );
    for (const [key, sum] of sums) expected.set(key, sum);
  }
  expect(found).toEqual(expected);
  await compareProjects(superuser, orgId, events);
}

/** The same comparison for project totals. */
async function compareProjects(
  superuser: pg.Pool,
  orgId: string,
  events: readonly LiveEvent[],
): Promise<void> {
  const stored = await superuser.query<Record<string, string>>(
    `select concat_ws('|', project_id, to_char(day, 'YYYY-MM-DD'), provider, model, team_id, feature) as cell, ${STORED}
     from project_cells where org_id = $1 and calls <> 0`,
    [orgId],
  );
  const cellOf = ({ project, micros, provider, model, team, feature }: LiveEvent) =>
    [project, dayOf(micros), provider, model, team, feature].join('|');
  const ofProjects = events.filter(({ project }) => project !== '');
  expect(new Map(stored.rows.map((row) => [row.cell, storedMeasures(row)]))).toEqual(
    sumBy(ofProjects, cellOf, measuresOf),
  );
}
