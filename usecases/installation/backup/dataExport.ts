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

/** Facts that an import needs before the first row. */
export interface ExportSchema {
  tables: { name: string; columns: string[] }[];
  partitions: CataloguePartition[];
  /** All exported transaction numbers are below this one (decimal text); the importing cluster must have passed it. */
  transactions_below: string;
}

export interface ExportedTable {
  name: string;
  rows: number;
  bytes: number;
  /** Hash over all parts in order. */
  sha256: string;
}

export interface ExportedSequence {
  name: string;
  /** Decimal text; null: it was never used. */
  last_value: string | null;
}

/** Receives an export in this order: the schema, the parts of each table, the result. */
export interface ExportSink {
  begin(schema: ExportSchema): Promise<void>;
  part(table: string, ordinal: number, bytes: Buffer): Promise<void>;
}

export interface ExportOutcome {
  tables: ExportedTable[];
  sequences: ExportedSequence[];
  books: BookReading;
}

/** A part contains complete rows and at most this many bytes, except for a single larger row. */
const PART_BYTES = 4 * 1_048_576;

/** Settings for texts that every major version reads identically, with all digits. */
const SESSION =
  '-c timezone=UTC -c datestyle=ISO,YMD -c intervalstyle=postgres -c extra_float_digits=1 -c client_encoding=UTF8';

/** A database session for export and import: values have one text form, and no timeout interrupts it. */
export function openCopySession(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'trueup-data',
    options: `${SESSION} -c statement_timeout=0 -c idle_in_transaction_session_timeout=0`,
  });
  // A broken connection is reported by the statement that waits for it.
  client.on('error', () => undefined);
  return client;
}

/**
 * Writes every table of the public schema from one snapshot, in Postgres's text format. Runs as the tables' owner;
 * tenants' tables are read under `app_system`, which row-level security permits to read everything. The service may run
 * meanwhile.
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
  // Postgres sends one row per message.
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
