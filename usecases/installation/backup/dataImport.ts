import { createHash, type Hash } from 'node:crypto';
import type pg from 'pg';
import { ensurePartitions, replacePartitions } from '../../../db/partitions.js';
import { type BookReading, type BookTotals, inOneSnapshot, readBooks, recountBooks } from './bookTotals.js';
import { type Catalogue, type CatalogueTable, readCatalogue } from './catalogue.js';
import { CopyIn } from './copyStream.js';
import {
  type ExportedSequence,
  type ExportedTable,
  type ExportSchema,
  openCopySession,
} from './dataExport.js';

/** An import was refused; the message states the remedy. Nothing was stored. */
export class ImportRefused extends Error {}

/** The totals and checksums at the end of an export. */
export interface ExportClaims {
  tables: readonly ExportedTable[];
  sequences: readonly ExportedSequence[];
  books: BookReading;
}

/** An import in progress, in one transaction: nothing is visible before `finish`. */
export interface DataImport {
  /** Stores a part of a table; parts arrive in order, tables in the order of the export. */
  part(table: string, bytes: AsyncIterable<Buffer>): Promise<void>;
  /**
   * Compares all rows with the export's claims and commits. Totals are compared only when the schema is this version's.
   */
  finish(claims: ExportClaims, hasOurSchema: boolean): Promise<void>;
  /** Ends the import, finished or not. */
  close(): Promise<void>;
}

/**
 * Opens an import into a migrated database without organizations. Runs as the owner of the tables: row-level security
 * is lifted for the owner within the transaction and restored before the commit; every other constraint holds.
 * @throws ImportRefused when the database is not empty or its tables differ.
 */
export async function openImport(url: string, schema: ExportSchema): Promise<DataImport> {
  const client = openCopySession(url);
  await client.connect();
  try {
    await client.query('begin');
    const catalogue = await readCatalogue(client);
    compareSchema(catalogue, schema);
    await refuseData(client, catalogue);
    await refuseYoungCluster(client, schema);
    await client.query(forceSecurity(catalogue, 'no force'));
    await emptySeeds(client, catalogue);
    for (const { name } of catalogue.tables.filter((table) => table.isPartitioned))
      await replacePartitions(
        client,
        name,
        schema.partitions.filter((partition) => partition.table === name),
      );
    return new OpenImport(client, catalogue);
  } catch (error) {
    await client.end();
    throw error;
  }
}

function compareSchema(catalogue: Catalogue, schema: ExportSchema): void {
  const shape = (tables: readonly { name: string; columns: readonly string[] }[]) =>
    tables.map(({ name, columns }) => `${name}(${columns.join()})`).sort();
  const here = shape(
    catalogue.tables.map((table) => ({ ...table, columns: table.columns.map((column) => column.name) })),
  );
  const other = shape(schema.tables).find((table, index) => table !== here[index]);
  if (other === undefined && here.length === schema.tables.length) return;
  throw new ImportRefused(
    `the tables of this database are not those of the export (${other ?? here.at(-1)}): import into a fresh one, made by this version`,
  );
}

/**
 * Throws ImportRefused when a table has rows. Reads under another role, because row-level security hides the rows from
 * the owner.
 */
async function refuseData(client: pg.Client, { tables }: Catalogue): Promise<void> {
  await client.query('set local role app_system');
  for (const { name, isProtected } of tables) {
    if (!isProtected) continue;
    const { rowCount } = await client.query(`select from "${name}" limit 1`);
    if (rowCount !== 0)
      throw new ImportRefused(
        `the database holds data already (in ${name}): import into an empty one, for example with DATA_DIR set to a new folder`,
      );
  }
  await client.query('set local role none');
}

/**
 * Throws ImportRefused when the cluster has not passed the exported transaction numbers: rows with future numbers would
 * be folded twice.
 */
async function refuseYoungCluster(client: pg.Client, schema: ExportSchema): Promise<void> {
  const { rows } = await client.query<{ is_past: boolean }>(
    'select pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= $1::bigint as is_past',
    [schema.transactions_below],
  );
  if (!rows[0]?.is_past)
    throw new ImportRefused(
      `this cluster has not come to its transaction ${schema.transactions_below} yet: make some in it (any insert is one), then import again`,
    );
}

function forceSecurity({ tables }: Catalogue, force: 'force' | 'no force'): string {
  return tables
    .filter((table) => table.isProtected)
    .map(({ name }) => `alter table "${name}" ${force} row level security`)
    .join('; ');
}

/** Empties the rows that migrations or a start insert (prices, sweep positions), because the export contains them. */
async function emptySeeds(client: pg.Client, { tables }: Catalogue): Promise<void> {
  for (const { name } of tables.filter((table) => !table.isProtected).toReversed())
    await client.query(`delete from "${name}"`);
}

interface TableUnderWay {
  table: CatalogueTable;
  copy: CopyIn;
  hash: Hash;
  bytes: number;
}

class OpenImport implements DataImport {
  readonly #client: pg.Client;
  readonly #catalogue: Catalogue;
  readonly #done = new Map<string, { rows: number; bytes: number; sha256: string }>();
  #open: TableUnderWay | undefined;

  constructor(client: pg.Client, catalogue: Catalogue) {
    this.#client = client;
    this.#catalogue = catalogue;
  }

  async part(name: string, bytes: AsyncIterable<Buffer>): Promise<void> {
    if (this.#open?.table.name !== name) {
      await this.#endTable();
      this.#beginTable(name);
    }
    const { copy, hash } = this.#open as TableUnderWay;
    for await (const piece of bytes) {
      hash.update(piece);
      (this.#open as TableUnderWay).bytes += piece.length;
      await copy.write(piece);
    }
  }

  #beginTable(name: string): void {
    const table = this.#catalogue.tables.find((known) => known.name === name);
    if (!table || this.#done.has(name))
      throw new ImportRefused(`the export holds a table ${name} that has no place`);
    const columns = table.columns.map((column) => `"${column.name}"`).join(', ');
    const copy = new CopyIn(this.#client, `copy "${name}" (${columns}) from stdin`);
    this.#open = { table, copy, hash: createHash('sha256'), bytes: 0 };
  }

  async #endTable(): Promise<void> {
    if (!this.#open) return;
    const { table, copy, hash, bytes } = this.#open;
    this.#open = undefined;
    this.#done.set(table.name, { rows: await copy.end(), bytes, sha256: hash.digest('hex') });
  }

  async finish(claims: ExportClaims, hasOurSchema: boolean): Promise<void> {
    await this.#endTable();
    this.#compareTables(claims.tables);
    for (const { name, last_value } of claims.sequences)
      if (last_value !== null)
        await this.#client.query('select setval($1::regclass, $2::bigint)', [name, last_value]);
    await this.#client.query(forceSecurity(this.#catalogue, 'force'));
    if (hasOurSchema) await compareBooks(this.#client, claims.books.organizations);
    await this.#client.query('set local role none');
    await this.#client.query('commit');
    await ensurePartitions(this.#client);
    await this.#client.query('analyze');
  }

  #compareTables(claimed: readonly ExportedTable[]): void {
    for (const { name, rows, bytes, sha256 } of claimed) {
      const found = this.#done.get(name) ?? { rows: 0, bytes: 0, sha256: createHash('sha256').digest('hex') };
      if (found.rows !== rows || found.bytes !== bytes || found.sha256 !== sha256)
        throw new ImportRefused(
          `${name} came with ${found.rows} rows and should have ${rows}: the export is damaged`,
        );
    }
    const unclaimed = [...this.#done.keys()].find((name) => !claimed.some((table) => table.name === name));
    if (unclaimed)
      throw new ImportRefused(`the export holds ${unclaimed} and does not list it: it is damaged`);
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

/**
 * Compares the totals of an imported database, from its totals tables and from its rows, with the export's, and returns
 * them. For an import under an older schema: call it after the migrations.
 * @throws ImportRefused when they differ.
 */
export async function checkImportedBooks(url: string, claimed: BookReading): Promise<BookTotals[]> {
  const client = openCopySession(url);
  await client.connect();
  try {
    return await inOneSnapshot(client, () => compareBooks(client, claimed.organizations));
  } finally {
    await client.end();
  }
}

async function compareBooks(client: pg.Client, claimed: readonly BookTotals[]): Promise<BookTotals[]> {
  const { organizations } = await readBooks(client, { billed: true });
  compareEach(organizations, claimed, 'as the totals have it');
  const counted = await recountBooks(client);
  const nothing = { calls: 0, cost_usd: '0' };
  const fromRows = organizations.map((books) => ({
    ...books,
    ...(counted.get(books.organization_id) ?? nothing),
  }));
  compareEach(fromRows, claimed, 'as the events add up');
  return organizations;
}

function compareEach(found: readonly BookTotals[], claimed: readonly BookTotals[], how: string): void {
  const text = (books: BookTotals | undefined) =>
    books ? `${books.calls} calls, ${books.cost_usd} USD, billed ${books.billed_usd} USD` : 'nothing';
  for (const [index, books] of claimed.entries()) {
    if (text(found[index]) !== text(books))
      throw new ImportRefused(
        `the books of organization ${books.organization_id} say ${text(found[index])} ${how}, and said ${text(books)} where they came from`,
      );
  }
  if (found.length !== claimed.length)
    throw new ImportRefused(`${found.length} organizations came and ${claimed.length} were written`);
}
