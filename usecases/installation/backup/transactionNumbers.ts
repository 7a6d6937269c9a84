/**
 * Numbers of transactions belong to a cluster: another one counts from the beginning, and a number from here may be one
 * that it has yet to give. What they decide, though, is little: whether a row of the log is in the totals yet, which
 * closings of its organization saw it, whether a span was swept. An export therefore numbers anew, from the smallest
 * number there is: small enough for every cluster, and each of these questions has the answer that it had
 * (docs/decisions/0038).
 */

/** The first number that a transaction of a cluster can have. */
const FIRST = 3;

/** Organizations that closed months, with how many closings there are. */
const CLOSINGS = 'select org_id, count(*)::int as closings from period_closings group by org_id';

const RUNNING = '(select count(*) from pg_snapshot_xip(snapshot))';

/**
 * Closings of an organization in their order, which the snapshots have among themselves: a later one sees all that an
 * earlier one saw. Months that were closed together have one snapshot; then any order will do.
 */
const ORDERED_CLOSINGS = `
select org_id, month, (row_number() over (partition by org_id order by
  pg_snapshot_xmax(snapshot), pg_snapshot_xmin(snapshot), ${RUNNING} desc, month))::int as place from period_closings`;

/** How many closings of its organization did not see the transaction `column` of row t: 0 to all. */
const unseenBy = (column: string) => `
case when c.closings is null then 0 else (
  select count(*) from period_closings p where p.org_id = t.org_id
    and not pg_visible_in_snapshot(t.${column}::text::xid8, p.snapshot))::int end`;

/** Folded rows come first, in the order of the closings that first saw them; then the others in the same order. */
const inLog = (column: string) => `
case when t.${column} is null then null else
  ${FIRST} + ${unseenBy(column)} + case when t.${column} < coalesce(r.folded_xid, 0) then 0 else coalesce(c.closings, 0) + 1 end end`;

const OF_LOG = `left join (${CLOSINGS}) c on c.org_id = t.org_id left join rollup_state r on r.org_id = t.org_id`;

/** The number behind all folded rows of an organization. */
const FOLDED = `${FIRST} + coalesce(c.closings, 0) + 1`;

/** Organizations whose projects' totals are as far as the others: the rows of the log in between could not be told. */
const PROJECTS_ARE_FOLDED = 'join rollup_state r on r.org_id = t.org_id and r.projects_xid = r.folded_xid';

interface Renumbering {
  /** What else the expressions read, besides the table itself as t. */
  joins: string;
  /** The new number, by column. */
  columns: Readonly<Record<string, string>>;
}

/** Every column that holds a transaction's number, and what it becomes. A test holds this against the catalogue. */
export const RENUMBERINGS: Readonly<Record<string, Renumbering>> = {
  events: { joins: OF_LOG, columns: { ingest_xid: inLog('ingest_xid'), revised_xid: inLog('revised_xid') } },
  event_adjustments: { joins: OF_LOG, columns: { ingest_xid: inLog('ingest_xid') } },
  rollup_state: {
    joins: `left join (${CLOSINGS}) c on c.org_id = t.org_id`,
    columns: {
      folded_xid: FOLDED,
      // Where the totals of projects are behind they stay here, and are folded anew from the first row there.
      projects_xid: `case when t.projects_xid = t.folded_xid then ${FOLDED} else 0 end`,
    },
  },
  project_cells: { joins: PROJECTS_ARE_FOLDED, columns: {} },
  project_adjustments: { joins: PROJECTS_ARE_FOLDED, columns: {} },
  call_spans: {
    joins: '',
    columns: {
      ingest_xid: `case when t.ingest_xid < (select swept_xid from sweep_state) then ${FIRST} else ${FIRST + 1} end`,
    },
  },
  sweep_state: { joins: '', columns: { swept_xid: `${FIRST + 1}` } },
  period_closings: {
    joins: `join (${CLOSINGS}) c on c.org_id = t.org_id join (${ORDERED_CLOSINGS}) o on o.org_id = t.org_id and o.month = t.month`,
    // Sees what fewer than `place` closings did not see: of the folded rows those below, then a gap, of the others likewise.
    columns: {
      snapshot: `(select format('%s:%s:%s', ${FIRST} + o.place, ${FIRST} + c.closings + 1 + o.place, string_agg(n::text, ',' order by n))
        from generate_series(${FIRST} + o.place, ${FIRST} + c.closings) n)::pg_snapshot`,
    },
  },
};

/** SQL of the smallest number that no exported row has: the other cluster must have come so far. */
export const RENUMBERED_BELOW = `
select (${FIRST} + 2 * (1 + coalesce(max(closings), 0)))::text as below from (${CLOSINGS}) c`;
