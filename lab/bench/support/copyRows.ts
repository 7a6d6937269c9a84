import pg from 'pg';
import type { LoadedWindow } from './loadRows.js';

/** Calls of a large organization for each one that the product's write path stores. */
export const BULK_COPIES = 20;
/** Stored calls that one transaction copies: with BULK_COPIES of 20, a fold takes its copies at once. */
const SLICE_ROWS = 5_000;
const CONNECTIONS = 2;

/** Columns of a copy that differ from its original; the others are equal, and those of the transaction have defaults. */
const TIME = `e.timestamp + k * $4::interval`;
const MICROS = `(extract(epoch from ${TIME}) * 1000000)::int8`;
// the time in microseconds, as the product's ids begin, then the random part of the original
const ID = `(lpad(to_hex(${MICROS} / 1000), 12, '0') || '7' || lpad(to_hex(${MICROS} % 1000), 3, '0')
  || right(replace(e.id::text, '-', ''), 16))::uuid`;
const FRESH: Readonly<Record<string, string>> = {
  timestamp: TIME,
  end_at: 'e.end_at + k * $4::interval',
  id: ID,
  event_id: ID,
  api_key_hash: 'left(md5(e.api_key_hash || k), 16)',
  request_id: "left(e.request_id, -2) || lpad(to_hex(k), 2, '0')",
  session_id: "e.session_id || '-' || k",
};
const OF_TRANSACTION = new Set(['ingested_at', 'ingest_xid', 'revised_xid']);

/**
 * Copies the calls of an organization and their payloads BULK_COPIES - 1 times, each copy `stepMicros` later and in a
 * session of its own, as the superuser and in the order of time. Copies have no identities, which no read of calls
 * uses, and are not folded yet.
 */
export async function copyRows(
  url: string,
  orgId: string,
  window: LoadedWindow,
  stepMicros: bigint,
): Promise<void> {
  const clients = Array.from({ length: CONNECTIONS }, () => new pg.Client({ connectionString: url }));
  await Promise.all(clients.map((client) => client.connect()));
  try {
    const [client] = clients as [pg.Client];
    const columns = (table: string) => namesOfColumns(client, table);
    const events = (await columns('events')).filter((name) => !OF_TRANSACTION.has(name));
    const payloads = await columns('event_payloads');
    const slices = await sliceTimes(client, orgId, window);
    const copy = `with copied as (
        insert into events (${events.join(', ')})
        select ${events.map((name) => FRESH[name] ?? `e.${name}`).join(', ')}
        from events e cross join generate_series(1, ${BULK_COPIES - 1}) k
        where e.org_id = $1 and e.timestamp >= $2 and e.timestamp < $3 order by ${TIME})
      insert into event_payloads (${payloads.join(', ')})
      select ${payloads.map((name) => FRESH[name] ?? `p.${name}`).join(', ')}
      from events e join event_payloads p on p.org_id = e.org_id and p.timestamp = e.timestamp and p.event_id = e.id
        cross join generate_series(1, ${BULK_COPIES - 1}) k
      where e.org_id = $1 and e.timestamp >= $2 and e.timestamp < $3 order by ${TIME}`;
    let next = 0;
    await Promise.all(
      clients.map(async (worker) => {
        for (let at = next++; at < slices.length - 1; at = next++)
          await worker.query(copy, [orgId, slices[at], slices[at + 1], `${stepMicros} microseconds`]);
      }),
    );
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

async function namesOfColumns(client: pg.Client, table: string): Promise<string[]> {
  const result = await client.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [table],
  );
  return result.rows.map(({ name }) => name);
}

/** The times at which slices of SLICE_ROWS stored calls begin, and the end of the last one. */
async function sliceTimes(client: pg.Client, orgId: string, window: LoadedWindow): Promise<string[]> {
  const micros = (value: bigint) => `timestamptz 'epoch' + ${value} * interval '1 microsecond'`;
  const result = await client.query<{ at: string }>(
    `select at::text from (
       select timestamp as at, row_number() over (order by timestamp) as place from events
       where org_id = $1 and timestamp between ${micros(window.fromMicros)} and ${micros(window.toMicros)}) rows
     where place % ${SLICE_ROWS} = 1 union all select (${micros(window.toMicros + 1n)})::text order by 1`,
    [orgId],
  );
  return result.rows.map(({ at }) => at);
}
