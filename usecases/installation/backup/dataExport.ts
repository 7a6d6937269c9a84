import { createHash } from 'node:crypto';
import pg from 'pg';
import { finishTakenOut } from '../../../db/partitions.js';
import { type BookReading, inOneSnapshot, readBooks } from './bookTotals.js';
import {
  type Catalogue,
  type CataloguePartition,
  type CatalogueTable,
  RENUMBERED_BELOW,
  RENUMBERINGS,
  readCatalogue,
} from './catalogue.js';
import { CopyOut } from './copyStream.js';

/** What an import has to know before the first row. */
export interface ExportSchema {
  tables: { name: string; columns: string[] }[];
  partitions: CataloguePartition[];
  /** The export's rows have transactions below this one (decimal text); the cluster they go to must have passed it. */
  transactions_below: string;
}

export interface ExportedTable {
  name: string;
  rows: number;
  bytes: number;
  /** Of all its parts, one after the other. */
  sha256: string;
}

export interface ExportedSequence {
  name: string;
  /** Decimal text; null where it was never used. */
  last_value: string | null;
}

/** Where an export goes, in this order: the schema, the parts of each table, what came of it. */
export interface ExportSink {
  begin(schema: ExportSchema): Promise<void>;
  part(table: string, ordinal: number, bytes: Buffer): Promise<void>;
}

export interface ExportOutcome {
  tables: ExportedTable[];
  sequences: ExportedSequence[];
  books: BookReading;
}

/** A part holds whole rows and, but for a single larger row, not more than this. */
const PART_BYTES = 4 * 1_048_576;

/** Texts that every major version reads the same, with all digits. */
const SESSION =
  '-c timezone=UTC -c datestyle=ISO,YMD -c intervalstyle=postgres -c extra_float_digits=1 -c client_encoding=UTF8';

/** A session as export and import need it: values have one form, and nothing cuts it short. */
export function openCopySession(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'trueup-data',
    options: `${SESSION} -c statement_timeout=0 -c idle_in_transaction_session_timeout=0`,
  });
  // A connection that breaks is reported by the statement that waits for it.
  client.on('error', () => undefined);
  return client;
}

/**
 * Writes every table of the public schema as one snapshot sees it, in Postgres's own text format. Runs as the tables'
 * owner; tenants' tables are read under `app_system`, which row-level security lets see all. The service may run.
 */
export async function exportData(url: string, sink: ExportSink): Promise<ExportOutcome> {
  const client = openCopySession(url);
  await client.connect();
  try {
    await finishTakenOut(client);
    return await inOneSnapshot(client, async () => {
      const books = await readBooks(client, { billed: true });
      await client.query('set local role none');
      const catalogue = await readCatalogue(client);
      await sink.begin(await describeSchema(client, catalogue));
      const tables: ExportedTable[] = [];
      for (const table of catalogue.tables) tables.push(await exportTable(client, table, sink));
      await client.query('set local role none');
      return { tables, sequences: await readSequences(client, catalogue), books };
    });
  } finally {
    await client.end();
  }
}

async function describeSchema(client: pg.Client, catalogue: Catalogue): Promise<ExportSchema> {
  await client.query('set local role app_system');
  const { rows } = await client.query<{ below: string }>(RENUMBERED_BELOW);
  await client.query('set local role none');
  return {
    tables: catalogue.tables.map(({ name, columns }) => ({
      name,
      columns: columns.map((column) => column.name),
    })),
    partitions: catalogue.partitions,
    transactions_below: rows[0]?.below ?? '',
  };
}

async function exportTable(
  client: pg.Client,
  table: CatalogueTable,
  sink: ExportSink,
): Promise<ExportedTable> {
  await client.query(`set local role ${table.isProtected ? 'app_system' : 'none'}`);
  const renumbering = RENUMBERINGS[table.name];
  const expressions = table.columns.map(({ name }) => renumbering?.columns[name] ?? `t."${name}"`);
  const rowsSql = `select ${expressions.join(', ')} from "${table.name}" t ${renumbering?.joins ?? ''}`;
  const copy = new CopyOut(client, `copy (${rowsSql}) to stdout`);
  const hash = createHash('sha256');
  let [rows, bytes, ordinal, pendingBytes] = [0, 0, 0, 0];
  let pending: Buffer[] = [];
  const flush = async () => {
    if (pending.length === 0) return;
    const part = Buffer.concat(pending);
    [pending, pendingBytes] = [[], 0];
    hash.update(part);
    bytes += part.length;
    ordinal += 1;
    await sink.part(table.name, ordinal, part);
  };
  // Postgres sends one row a message.
  for await (const messages of copy) {
    for (const row of messages) {
      if (pendingBytes + row.length > PART_BYTES) await flush();
      pending.push(row);
      pendingBytes += row.length;
      rows += 1;
    }
  }
  await flush();
  if (copy.tags.at(-1) !== `COPY ${rows}`)
    throw new Error(`${table.name}: ${rows} rows arrived, Postgres counts ${copy.tags.at(-1)}`);
  return { name: table.name, rows, bytes, sha256: hash.digest('hex') };
}

async function readSequences(client: pg.Client, catalogue: Catalogue): Promise<ExportedSequence[]> {
  const { rows } = await client.query<{ name: string; last_value: string | null }>(
    `select sequencename as name, last_value::text as last_value from pg_sequences where schemaname = 'public' order by 1`,
  );
  return rows.filter((row) => catalogue.sequences.includes(row.name));
}
