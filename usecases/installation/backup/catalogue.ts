import pg from 'pg';
import { RENUMBERINGS } from './transactionNumbers.js';

/** A column as it is written into an export. */
export interface CatalogueColumn {
  name: string;
  type: string;
}

export interface CatalogueTable {
  name: string;
  columns: CatalogueColumn[];
  /** A tenant's table, or one about tenants: row-level security is on. */
  isProtected: boolean;
  isPartitioned: boolean;
}

export interface CataloguePartition {
  table: string;
  name: string;
  /** `FOR VALUES FROM (…) TO (…)`, times in UTC. */
  bound: string;
}

/** What the public schema consists of, as far as data is concerned. */
export interface Catalogue {
  /** Each after the tables that it refers to. */
  tables: CatalogueTable[];
  partitions: CataloguePartition[];
  sequences: string[];
}

/** Says which migrations there are; not data. */
const MIGRATIONS_TABLE = 'schema_migrations';

/** Types and, by our own rule of naming, columns that hold what only this cluster understands. */
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
 * Reads the schema out of Postgres's own catalogue, so that a table or column of tomorrow is in it by itself. The
 * session runs in UTC. Throws where a column holds transactions that no rule renumbers, or where tables
 * refer to each other in a circle.
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

/** @throws Error for a column of transactions that transactionNumbers.ts does not know. */
function refuseUnknownTransactions(tables: readonly CatalogueTable[]): void {
  for (const { name, columns } of tables)
    for (const column of columns)
      if (isTransactionColumn(column) && RENUMBERINGS[name]?.columns[column.name] === undefined)
        throw new Error(
          `${name}.${column.name} holds transactions, and nothing says what they become elsewhere`,
        );
}

/** Whether a column holds numbers of transactions, which mean nothing in another cluster (docs/decisions/0038). */
export function isTransactionColumn(column: CatalogueColumn): boolean {
  return TRANSACTION_NAME.test(column.name) || TRANSACTION_TYPES.test(column.type);
}

/** Each table after those that it refers to; by name where that leaves a choice. */
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
 * Names of the migrations that a database has, in their order, and its server's version. Undefined when no service has
 * prepared it.
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
