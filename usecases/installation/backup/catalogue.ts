import pg from 'pg';

export interface CatalogueColumn {
  name: string;
  type: string;
}

export interface CatalogueTable {
  name: string;
  columns: CatalogueColumn[];
  /** Row-level security is on: a table of tenants' data, or about tenants. */
  isProtected: boolean;
  isPartitioned: boolean;
}

export interface CataloguePartition {
  table: string;
  name: string;
  /** `FOR VALUES FROM (…) TO (…)`, times in UTC. */
  bound: string;
}

/** The public schema, as far as it concerns data. */
export interface Catalogue {
  /** Each table after the tables that it references. */
  tables: CatalogueTable[];
  partitions: CataloguePartition[];
  sequences: string[];
}

/** Lists the applied migrations; it is not data. */
const MIGRATIONS_TABLE = 'schema_migrations';

/** Types, and by our naming rule columns, whose values only this cluster understands. */
const TRANSACTION_TYPES = /^(xid|xid8|pg_snapshot|txid_snapshot|tid|pg_lsn)(\[\])?$/;
const TRANSACTION_NAME = /_xid$/;

const TABLES = `
select c.relname as name, c.relrowsecurity as is_protected, c.relkind = 'p' as is_partitioned,
  json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by a.attnum)
    filter (where a.attgenerated = '') as columns
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relpersistence = 'p'
  and not c.relispartition and c.relname <> $1
group by c.oid order by c.relname`;

const REFERENCES = `
select f.relname as "from", t.relname as "to" from pg_constraint k
join pg_class f on f.oid = k.conrelid join pg_class t on t.oid = k.confrelid
where k.contype = 'f' and k.connamespace = 'public'::regnamespace and not f.relispartition and not t.relispartition
  and k.conrelid <> k.confrelid`;

const PARTITIONS = `
select p.relname as "table", c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
where p.relnamespace = 'public'::regnamespace and c.relispartition order by p.relname, c.relname`;

const SEQUENCES = `select sequencename as name from pg_sequences where schemaname = 'public' order by 1`;

/**
 * Reads the schema from Postgres's catalogue, so that future tables and columns are included without changes here. The
 * session runs in UTC. Throws for a column of transaction numbers without a renumbering rule, and for tables that
 * reference each other in a circle.
 */
export async function readCatalogue(client: pg.ClientBase): Promise<Catalogue> {
  const tables = await client.query<{
    name: string;
    is_protected: boolean;
    is_partitioned: boolean;
    columns: { name: string; type: string }[];
  }>(TABLES, [MIGRATIONS_TABLE]);
  const references = await client.query<{ from: string; to: string }>(REFERENCES);
  const partitions = await client.query<CataloguePartition>(PARTITIONS);
  const sequences = await client.query<{ name: string }>(SEQUENCES);
  const read = tables.rows.map(({ name, is_protected, is_partitioned, columns }) => ({
    name,
    isProtected: is_protected,
    isPartitioned: is_partitioned,
    columns,
  }));
  refuseUnknownTransactions(read);
  return {
    tables: inOrder(read, references.rows),
    partitions: partitions.rows,
    sequences: sequences.rows.map((row) => row.name),
  };
}

/** @throws Error for a column of transaction numbers that RENUMBERINGS lacks. */
function refuseUnknownTransactions(tables: readonly CatalogueTable[]): void {
  for (const { name, columns } of tables)
    for (const column of columns)
      if (isTransactionColumn(column) && RENUMBERINGS[name]?.columns[column.name] === undefined)
        throw new Error(`${name}.${column.name} contains transaction numbers, and no rule renumbers them`);
}

/** Whether a column holds transaction numbers, which have no meaning in another cluster (docs/decisions/0038). */
export function isTransactionColumn(column: CatalogueColumn): boolean {
  return TRANSACTION_NAME.test(column.name) || TRANSACTION_TYPES.test(column.type);
}

/** Each table after those that it references; otherwise by name. */
function inOrder(
  tables: readonly CatalogueTable[],
  references: readonly { from: string; to: string }[],
): CatalogueTable[] {
  const ordered: CatalogueTable[] = [];
  const placed = new Set<string>();
  while (ordered.length < tables.length) {
    const next = tables.find(
      ({ name }) => !placed.has(name) && references.every(({ from, to }) => from !== name || placed.has(to)),
    );
    if (!next) throw new Error('tables refer to each other in a circle: no order of import suits them');
    ordered.push(next);
    placed.add(next.name);
  }
  return ordered;
}

/**
 * Names of a database's migrations in order, and its server's version. undefined: no service has prepared the database.
 */
export async function describeDatabase(
  url: string,
): Promise<{ migrations: string[]; postgresVersion: string } | undefined> {
  const client = new pg.Client({ connectionString: url, application_name: 'trueup-data' });
  await client.connect();
  try {
    const { rows } = await client.query<{ version: string; is_prepared: boolean }>(
      `select current_setting('server_version') as version, to_regclass('public.schema_migrations') is not null as is_prepared`,
    );
    if (!rows[0]?.is_prepared) return undefined;
    const names = await client.query<{ name: string }>('select name from schema_migrations order by name');
    return { migrations: names.rows.map((row) => row.name), postgresVersion: rows[0].version };
  } finally {
    await client.end();
  }
}

/**
 * Transaction numbers belong to a cluster. Another cluster counts from the beginning and may not have assigned an
 * exported number yet. The service uses them for three questions: whether a row of the log is in the totals yet, which
 * closings of its organization saw it, and whether a span was swept. An export therefore renumbers from the smallest
 * possible number, so that every cluster has passed the numbers and each question keeps its answer
 * (docs/decisions/0038).
 */

/** The first transaction number of a cluster. */
const FIRST = 3;

/** Organizations with closed months, and the number of their closings. */
const CLOSINGS = 'select org_id, count(*)::int as closings from period_closings group by org_id';

const RUNNING = '(select count(*) from pg_snapshot_xip(snapshot))';

/**
 * Closings of an organization in the order of their snapshots: a later one sees everything that an earlier one saw.
 * Months that were closed together share a snapshot and have any order.
 */
const ORDERED_CLOSINGS = `
select org_id, month, (row_number() over (partition by org_id order by
  pg_snapshot_xmax(snapshot), pg_snapshot_xmin(snapshot), ${RUNNING} desc, month))::int as place from period_closings`;

/** The number of closings of the organization that did not see the transaction `column` of row t: 0 to all. */
const unseenBy = (column: string) => `
case when c.closings is null then 0 else (
  select count(*) from period_closings p where p.org_id = t.org_id
    and not pg_visible_in_snapshot(t.${column}::text::xid8, p.snapshot))::int end`;

/** Folded rows come first, in the order of the closings that first saw them; then the others in the same order. */
const inLog = (column: string) => `
case when t.${column} is null then null else
  ${FIRST} + ${unseenBy(column)} + case when t.${column} < coalesce(r.folded_xid, 0) then 0 else coalesce(c.closings, 0) + 1 end end`;

const OF_LOG = `left join (${CLOSINGS}) c on c.org_id = t.org_id left join rollup_state r on r.org_id = t.org_id`;

/** The number after all folded rows of an organization. */
const FOLDED = `${FIRST} + coalesce(c.closings, 0) + 1`;

/**
 * Organizations whose project totals are folded as far as the others; rows of the log between the two could not be
 * distinguished.
 */
const PROJECTS_ARE_FOLDED = 'join rollup_state r on r.org_id = t.org_id and r.projects_xid = r.folded_xid';

/** Swept rows come before the others. */
const BY_SWEEP = `case when t.ingest_xid < (select swept_xid from sweep_state) then ${FIRST} else ${FIRST + 1} end`;

interface Renumbering {
  /** Joins that the expressions need, besides the table itself as t. */
  joins: string;
  /** SQL expression of the new number, by column. */
  columns: Readonly<Record<string, string>>;
}

/** Every column of transaction numbers with its renumbering. A test compares it with the catalogue. */
export const RENUMBERINGS: Readonly<Record<string, Renumbering>> = {
  events: { joins: OF_LOG, columns: { ingest_xid: inLog('ingest_xid'), revised_xid: inLog('revised_xid') } },
  event_adjustments: { joins: OF_LOG, columns: { ingest_xid: inLog('ingest_xid') } },
  rollup_state: {
    joins: `left join (${CLOSINGS}) c on c.org_id = t.org_id`,
    columns: {
      folded_xid: FOLDED,
      // Where project totals are behind they are not exported; the import folds them again from the first row.
      projects_xid: `case when t.projects_xid = t.folded_xid then ${FOLDED} else 0 end`,
    },
  },
  project_cells: { joins: PROJECTS_ARE_FOLDED, columns: {} },
  project_adjustments: { joins: PROJECTS_ARE_FOLDED, columns: {} },
  call_spans: { joins: '', columns: { ingest_xid: BY_SWEEP } },
  instrumentation_scopes: { joins: '', columns: { ingest_xid: BY_SWEEP } },
  sweep_state: { joins: '', columns: { swept_xid: `${FIRST + 1}` } },
  period_closings: {
    joins: `join (${CLOSINGS}) c on c.org_id = t.org_id join (${ORDERED_CLOSINGS}) o on o.org_id = t.org_id and o.month = t.month`,
    // Sees the transactions that fewer than `place` closings did not see: of the folded rows those below the number,
    // then a gap, and the same for the others.
    columns: {
      snapshot: `(select format('%s:%s:%s', ${FIRST} + o.place, ${FIRST} + c.closings + 1 + o.place, string_agg(n::text, ',' order by n))
        from generate_series(${FIRST} + o.place, ${FIRST} + c.closings) n)::pg_snapshot`,
    },
  },
};

/** SQL of a number that exceeds every exported one; the importing cluster must have passed it. */
export const RENUMBERED_BELOW = `
select (${FIRST} + 2 * (1 + coalesce(max(closings), 0)))::text as below from (${CLOSINGS}) c`;
