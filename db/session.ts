import pg from 'pg';

/** What holds for every statement of the service, whatever the database's own settings are. */
const SETTINGS: readonly (readonly [name: string, value: string])[] = [
  // Times are read as UTC in this form (parseTimestampMicros).
  ['timezone', 'UTC'],
  ['datestyle', 'ISO, YMD'],
  // Parallel workers take longer to start than our reads take, and would take the cores of other requests.
  ['max_parallel_workers_per_gather', '0'],
];

/** For the message that opens a transaction on a connection that keeps nothing from one to the next. */
export const SETTINGS_OF_TRANSACTION = SETTINGS.map(
  ([name, value]) => `set local ${name} = '${value}';`,
).join(' ');

/**
 * Whether Postgres is at the other end itself: then it has the process id that it gave when the connection was made,
 * and the settings are made for good, in one round trip. They are not asked for when connecting, since a pooler refuses
 * such a connection or forgets what it was asked.
 */
const PREPARE = `select pg_backend_pid() = $1 as is_direct, case when pg_backend_pid() = $1 then
  ${SETTINGS.map(([name, value]) => `set_config('${name}', '${value}', false)`).join(' || ')} end as made`;

const pooled = new WeakSet<object>();

/**
 * Readies a new connection. One through a transaction pooler has another Postgres session for each transaction: nothing
 * is set that would outlast one, and no statement is kept under a name, which the next session would not know.
 */
export async function prepareSession(
  connection: pg.ClientBase & { processID?: number | null },
): Promise<void> {
  const { rows } = await connection.query<{ is_direct: boolean }>({
    text: PREPARE,
    values: [connection.processID ?? 0],
  });
  if (rows[0]?.is_direct) return;
  pooled.add(connection);
  withoutNames(connection);
}

/** Whether Postgres itself answers at an address, and not a pooler: what holds a lock or listens needs its own session. */
export async function reachesPostgres(url: string): Promise<boolean> {
  const client: pg.Client & { processID?: number | null } = new pg.Client({
    connectionString: url,
    application_name: 'trueup-start',
  });
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return rows[0]?.pid === client.processID;
  } finally {
    await client.end();
  }
}

/** Whether a pooler stands between the connection and Postgres. */
export function isPooled(connection: object): boolean {
  return pooled.has(connection);
}

function withoutNames(connection: pg.ClientBase): void {
  const query = connection.query.bind(connection) as (...all: unknown[]) => unknown;
  const nameless = (first: unknown, ...rest: unknown[]) =>
    query(isNamed(first) ? { ...first, name: undefined } : first, ...rest);
  Object.assign(connection, { query: nameless });
}

function isNamed(statement: unknown): statement is { name: string } {
  return typeof statement === 'object' && statement !== null && 'name' in statement && 'text' in statement;
}
