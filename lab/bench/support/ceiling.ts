import pg from 'pg';
import { readBackendCpu } from './backendCpu.js';
import { Random } from './random.js';

/**
 * Measures the ceiling: the rate at which this machine inserts complete event rows into the same table with its
 * indexes and partitions, without anything before the database. One named statement, INSERT … SELECT unnest … ON
 * CONFLICT DO NOTHING, of 1,000 rows a batch over 4 connections, with array literals built by hand; no row-level
 * security, no HTTP, no other table. It shares no code with the product's write path.
 */
const BATCH_ROWS = 1_000;
const CONNECTIONS = 4;
const MICROS_APART = 25;
const CALLS_A_SESSION = 10;
const APPLICATION = 'trueup-bench-ceiling';

interface Column {
  name: string;
  type: string;
  isList: boolean;
}

/** Rows as the product stored them, with each column's values in Postgres notation. */
export interface RowPattern {
  columns: Column[];
  /** By column, then row. */
  values: (string | null)[][];
  rows: number;
}

/** Reads rows that the product stored, to copy them with other ids and times. */
export async function readRowPattern(url: string, rowsMax: number): Promise<RowPattern> {
  const client = new pg.Client({ connectionString: url, options: '-c timezone=UTC' });
  await client.connect();
  try {
    const described = await client.query<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = 'events'::regclass and attnum > 0 and not attisdropped and attname <> 'org_id' order by attnum`,
    );
    const columns = described.rows.map(({ name, type }) => ({
      name,
      type: type.replace('[]', ''),
      isList: type.endsWith('[]'),
    }));
    const result = await client.query<(string | null)[]>({
      text: `select ${columns.map(({ name }) => `${name}::text`).join(', ')} from events limit ${rowsMax}`,
      rowMode: 'array',
    });
    if (result.rows.length === 0) throw new Error('no rows to copy: the warm-up stored none');
    return {
      columns,
      values: columns.map((_, index) => result.rows.map((row) => row[index] ?? null)),
      rows: result.rows.length,
    };
  } finally {
    await client.end();
  }
}

export interface Ceiling {
  rowsPerSecond: number;
  /** CPU time of this process and its backends for one row; NaN if the system does not report it. */
  cpuMicros: number;
}

/** Measures the insert rate of the ceiling's table over `seconds`. */
export async function measureCeiling(
  url: string,
  pattern: RowPattern,
  orgIds: readonly string[],
  seconds: number,
  seed: number,
): Promise<Ceiling> {
  const statement = { name: 'ceiling', text: insertSql(pattern.columns) };
  const clients = Array.from(
    { length: CONNECTIONS },
    () => new pg.Client({ connectionString: url, application_name: APPLICATION }),
  );
  await Promise.all(clients.map((client) => client.connect()));
  const batches = new BatchSource(pattern, seed);
  // Postgres plans a statement anew in its first five runs, so they do not count.
  for (const client of clients) {
    for (let run = 0; run < 6; run += 1)
      await client.query({ ...statement, values: [orgIds[0], ...batches.next(10)] });
  }
  const cpuSeconds = async () => {
    const { user, system } = process.cpuUsage();
    const backends = await readBackendCpu(url);
    return (user + system) / 1e6 + (backends.get(APPLICATION) ?? Number.NaN);
  };
  const cpuBefore = await cpuSeconds();
  let stored = 0;
  const started = performance.now();
  const deadline = started + seconds * 1000;
  let turn = 0;
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < deadline) {
        const orgId = orgIds[turn++ % orgIds.length];
        const result = await client.query({ ...statement, values: [orgId, ...batches.next(BATCH_ROWS)] });
        stored += result.rowCount ?? 0;
      }
    }),
  );
  const elapsed = (performance.now() - started) / 1000;
  const cpuMicros = (((await cpuSeconds()) - cpuBefore) / stored) * 1e6;
  await Promise.all(clients.map((client) => client.end()));
  return { rowsPerSecond: stored / elapsed, cpuMicros };
}

function insertSql(columns: readonly Column[]): string {
  const names = columns.map(({ name }) => name).join(', ');
  // Lists of unequal length form no Postgres array, so each list is passed as text.
  const parameters = columns.map(({ type, isList }, index) => `$${index + 2}::${isList ? 'text' : type}[]`);
  const selected = columns.map(({ name, type, isList }) => (isList ? `i.${name}::${type}[]` : `i.${name}`));
  return `insert into events (org_id, ${names}) select $1::uuid, ${selected.join(', ')}
    from unnest(${parameters.join(', ')}) as i (${names}) on conflict do nothing`;
}

const NEEDS_QUOTES = /[^A-Za-z0-9_.+-]|^$|^null$/i;
const ESCAPE = /[\\"]/g;

function literalOf(value: string | null): string {
  if (value === null) return 'NULL';
  return NEEDS_QUOTES.test(value) ? `"${value.replace(ESCAPE, '\\$&')}"` : value;
}

/** Makes batches of new rows as cheaply as possible, since the ceiling measures the database. */
class BatchSource {
  readonly #random: Random;
  readonly #literals: string[][];
  readonly #names: string[];
  readonly #rows: number;
  #at = 0;
  /** Microseconds since 1970: below 2^53 until the year 2255. */
  #micros = Date.now() * 1000;
  #session = '';

  constructor(pattern: RowPattern, seed: number) {
    this.#random = new Random(seed);
    this.#rows = pattern.rows;
    this.#literals = pattern.values.map((column) => column.map(literalOf));
    this.#names = pattern.columns.map(({ name }) => name);
  }

  /** One array literal for each column. */
  next(rows: number): string[] {
    const first = this.#at;
    this.#at = (this.#at + rows) % this.#rows;
    const fresh = this.#freshColumns(rows);
    return this.#literals.map((column, index) => {
      const own = fresh[this.#names[index] as string];
      let literal = '{';
      for (let row = 0; row < rows; row += 1) {
        if (row > 0) literal += ',';
        literal += own ? own[row] : column[(first + row) % this.#rows];
      }
      return `${literal}}`;
    });
  }

  /**
   * The values that differ in each copy of a row: every copy is another call, one microsecond apart, with ten
   * calls in a session.
   */
  #freshColumns(rows: number): Record<string, string[]> {
    const ids: string[] = [];
    const times: string[] = [];
    const requestIds: string[] = [];
    const hashes: string[] = [];
    const sessions: string[] = [];
    for (let row = 0; row < rows; row += 1) {
      this.#micros += MICROS_APART;
      const millis = Math.floor(this.#micros / 1000);
      const sub = this.#micros - millis * 1000;
      const time = millis.toString(16).padStart(12, '0');
      const random = this.#random.hex(16);
      const middle = `7${sub.toString(16).padStart(3, '0')}`;
      ids.push(
        `${time.slice(0, 8)}-${time.slice(8)}-${middle}-a${random.slice(0, 3)}-${random.slice(3, 15)}`,
      );
      times.push(`"${new Date(millis).toISOString().slice(0, 23)}${sub.toString().padStart(3, '0')}Z"`);
      requestIds.push(`chatcmpl-${this.#random.hex(24)}`);
      hashes.push(random);
      if (row % CALLS_A_SESSION === 0) this.#session = `sess_${this.#random.hex(24)}`;
      sessions.push(this.#session);
    }
    return {
      id: ids,
      timestamp: times,
      end_at: times,
      ingested_at: times,
      request_id: requestIds,
      api_key_hash: hashes,
      session_id: sessions,
    };
  }
}
