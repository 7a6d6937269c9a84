import { findMicrosOfUuid } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/**
 * From a superseded event to the event that counts for its call. `superseded_by` names the event that took its place
 * at the time; that one may be superseded since, so the way is a chain of any length.
 */

/** Events of long chains that one transaction corrects. */
const SHORTENED_MAX = 1_000;

/** The time in an event's id, which finds its partition (domain/ids.ts, uuidFromMicros). */
export const timeOfId = (id: string) => {
  const hex = (from: number, digits: number) =>
    `('x' || lpad(substr(replace(${id}::text, '-', ''), ${from}, ${digits}), 16, '0'))::bit(64)::bigint`;
  return `(timestamptz 'epoch' + (${hex(1, 12)} * 1000 + ${hex(14, 3)}) * interval '1 microsecond')`;
};

/** From each event of a chain to the next; null at the end. */
export type Chains = Map<string, string | null>;

// A step is one look into an index, whatever Postgres believes of the number of rows; `union` ends a circle.
const WALK = `
with recursive walked (id, superseded_by) as (
  select e.id, e.superseded_by from unnest($2::timestamptz[], $3::uuid[]) as s (at, id) cross join lateral (
    select id, superseded_by from events where org_id = $1 and timestamp = s.at and id = s.id limit 1) e
  union
  select e.id, e.superseded_by from walked w cross join lateral (
    select id, superseded_by from events
    where org_id = $1 and timestamp = ${timeOfId('w.superseded_by')} and id = w.superseded_by limit 1) e
  where w.superseded_by is not null)
select id, superseded_by as "supersededBy" from walked`;

/** The chains from these events to their ends, in one statement. */
export async function walkChains(orgDb: OrgDb, ids: readonly string[]): Promise<Chains> {
  const timed = ids.flatMap(withTime);
  if (timed.length === 0) return new Map();
  const links = await orgDb.rows<{ id: string; supersededBy: string | null }>(
    WALK,
    [orgDb.orgId, textArray(timed.map(({ time }) => time)), plainArray(timed.map(({ id }) => id))],
    'walk_chains',
  );
  return new Map(links.map(({ id, supersededBy }) => [id, supersededBy]));
}

/**
 * The end of the chain from `id`; undefined where an event on the way is gone for its age.
 * @throws Error where the chain is a circle: no event counts for the call, which must not pass for "none is stored".
 */
export function endOf(chains: Chains, id: string): string | undefined {
  let at = id;
  for (let step = 0; step <= chains.size; step += 1) {
    const next = chains.get(at);
    if (next === undefined) return undefined;
    if (next === null) return at;
    at = next;
  }
  throw new Error(`the events of a call supersede each other in a circle: ${id}`);
}

function withTime(id: string): { id: string; time: string }[] {
  const micros = findMicrosOfUuid(id);
  return micros === undefined ? [] : [{ id, time: isoFromMicros(micros) }];
}

/** For each event the one that counts for its call; without those whose chain ends at an event that is gone. */
export async function findLiveIds(orgDb: OrgDb, ids: readonly string[]): Promise<Map<string, string>> {
  const chains = await walkChains(orgDb, [...new Set(ids)]);
  return new Map(
    ids.flatMap((id) => {
      const end = endOf(chains, id);
      return end === undefined ? [] : [[id, end]];
    }),
  );
}

/** Lets events that name one which is superseded itself name the end of the chain. What others hold stays for another time. */
export async function shortenChains(orgDb: OrgDb, walked: Chains): Promise<void> {
  const long = [...walked].flatMap(([id, next]) => {
    const end = next === null ? undefined : endOf(walked, id);
    return end === undefined || end === next ? [] : withTime(id).map((place) => ({ ...place, end }));
  });
  const some = long.slice(0, SHORTENED_MAX);
  if (some.length === 0) return;
  await orgDb.run(
    `update events e set superseded_by = s.live_id from unnest($2::timestamptz[], $3::uuid[], $4::uuid[]) as w (at, id, live_id)
     cross join lateral (
       select timestamp, id, w.live_id from events
       where org_id = $1 and timestamp = w.at and id = w.id and superseded_by is not null for update skip locked) s
     where e.org_id = $1 and e.timestamp = s.timestamp and e.id = s.id`,
    [
      orgDb.orgId,
      textArray(some.map(({ time }) => time)),
      plainArray(some.map(({ id }) => id)),
      plainArray(some.map(({ end }) => end)),
    ],
  );
}
