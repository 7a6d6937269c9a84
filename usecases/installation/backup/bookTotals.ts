import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { countedSourcesSql } from '../../../db/billing/billingRows.js';
import { finishTakenOut } from '../../../db/partitions.js';
import { signed, usageLogSql } from '../../../db/usage/usageLog.js';
import { decimalFromPico, picoFromDecimal } from '../../../domain/money.js';
import { type Lsn, lsnNumber } from './baseBackup.js';

/** The totals of one organization. Amounts are decimal texts in US dollars. */
export interface BookTotals {
  organization_id: string;
  /** Calls as `GET /usage/summary` counts them: each once, blocked calls excluded. */
  calls: number;
  cost_usd: string;
  /** Sum of the counted copies of the bills, with taxes and credits; null: the schema is of another version. */
  billed_usd: string | null;
}

export interface BookReading {
  /** RFC 3339. */
  at: string;
  /** The transactions that the totals include, as a Postgres snapshot: `xmin:xmax:running`. */
  snapshot: string;
  /** Position of the write-ahead log when the totals were read; everything that they include precedes it. */
  lsn: Lsn;
  organizations: BookTotals[];
}

/** Sums the totals, the adjustments of closed months, and rows that are in neither yet. */
const BOOKED = (tables: readonly string[]) => `
select coalesce(sum(calls), 0)::text as calls, coalesce(sum(cost_usd), 0)::text as cost from (
  ${tables.map((table) => `select calls, cost_usd from ${table} where org_id = $1 and dimension = 'provider' union all`).join(' ')}
  select sum(sign)::bigint, sum(${signed('cost_usd')}) from (${usageLogSql('$2')}) log where status <> 'blocked') parts`;

const BILLED = `
select coalesce(sum(amount_usd), 0)::text as billed from (${countedSourcesSql(`d.org_id = $1 and d.feed = 'cost'`)}) counted`;

/**
 * Reads every organization's totals as the service would show them. The caller has opened a transaction with one
 * snapshot; the function leaves it under the role `app_system`.
 */
export async function readBooks(client: pg.ClientBase, options: { billed: boolean }): Promise<BookReading> {
  await client.query('set local role app_system');
  const { rows } = await client.query<{ snapshot: string; lsn: Lsn; at: Date }>(
    'select pg_current_snapshot()::text as snapshot, pg_current_wal_insert_lsn()::text as lsn, clock_timestamp() as at',
  );
  const [instant] = rows;
  if (!instant) throw new Error('the database gave no snapshot');
  const states = await client.query<{ id: string; folded_xid: string }>(
    'select o.id, coalesce(s.folded_xid, 0)::text as folded_xid from organizations o left join rollup_state s on s.org_id = o.id order by o.id',
  );
  // The schema may precede the migrations that create the later tables, when a backup is taken before an upgrade.
  const tables = await client.query<{ name: string }>(
    `select name from unnest('{usage_rollups,adjustment_rollups}'::text[]) name where to_regclass(name) is not null`,
  );
  const booked = BOOKED(tables.rows.map(({ name }) => name));
  const organizations: BookTotals[] = [];
  for (const { id, folded_xid } of states.rows) {
    const sums = await client.query<{ calls: string; cost: string }>(booked, [id, folded_xid]);
    organizations.push({
      organization_id: id,
      calls: Number(sums.rows[0]?.calls),
      cost_usd: plainDecimal(sums.rows[0]?.cost),
      billed_usd: options.billed ? await readBilled(client, id) : null,
    });
  }
  return { at: instant.at.toISOString(), snapshot: instant.snapshot, lsn: instant.lsn, organizations };
}

async function readBilled(client: pg.ClientBase, orgId: string): Promise<string> {
  const { rows } = await client.query<{ billed: string }>(BILLED, [orgId]);
  return plainDecimal(rows[0]?.billed);
}

/**
 * Sums calls and cost by organization from the events alone, without totals; events that were removed for their age are
 * included by their stored sums (docs/decisions/0039). With a snapshot, only transactions that it includes count: a row
 * of the log counts if its transaction is included, and the log keeps the former state of rows that changed later
 * (docs/decisions/0006, 0038). The caller has opened a transaction.
 */
export async function recountBooks(
  client: pg.ClientBase,
  snapshot?: string,
): Promise<Map<string, Pick<BookTotals, 'calls' | 'cost_usd'>>> {
  await client.query('set local role app_system');
  const [xmin = '0', xmax = '0'] = snapshot?.split(':') ?? [];
  const isSeen =
    snapshot === undefined
      ? 'true'
      : `case when ingest_xid < ${BigInt(xmin)} then true when ingest_xid >= ${BigInt(xmax)} then false
           else pg_visible_in_snapshot(ingest_xid::text::xid8, $1::pg_snapshot) end`;
  const removed = await client.query<{ present: boolean }>(
    `select to_regclass('removed_usage') is not null as present`,
  );
  const gone = removed.rows[0]?.present ? 'union all select org_id, calls, cost_usd from removed_usage' : '';
  const { rows } = await client.query<{ org_id: string; calls: string; cost: string }>(
    `select org_id, sum(calls)::text as calls, sum(cost)::text as cost from (
       select org_id, sum(sign) as calls, sum(${signed('cost_usd')}) as cost from (
         select org_id, 1 as sign, cost_usd, status, ingest_xid from events where revised_xid is null
         union all
         select org_id, sign, cost_usd, status, ingest_xid from event_adjustments) log
       where status <> 'blocked' and ${isSeen} group by org_id
       ${gone}) parts
     group by org_id`,
    snapshot === undefined ? [] : [snapshot],
  );
  return new Map(
    rows.map(({ org_id, calls, cost }) => [org_id, { calls: Number(calls), cost_usd: plainDecimal(cost) }]),
  );
}

/** Runs `work` in a read-only transaction with one snapshot. */
export async function inOneSnapshot<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('begin isolation level repeatable read read only');
  try {
    return await work();
  } finally {
    await client.query('rollback');
  }
}

export function sumBooks(organizations: readonly BookTotals[]): {
  calls: number;
  costUsd: string;
  billedUsd: string | null;
} {
  const add = (values: readonly string[]) => {
    return decimalFromPico(values.reduce((sum, text) => sum + (picoFromDecimal(text) ?? 0n), 0n));
  };
  const billed = organizations.map((books) => books.billed_usd).filter((text) => text !== null);
  return {
    calls: organizations.reduce((sum, books) => sum + books.calls, 0),
    costUsd: add(organizations.map((books) => books.cost_usd)),
    billedUsd: billed.length === organizations.length ? add(billed) : null,
  };
}

/** An amount's canonical decimal text, without the trailing zeros that Postgres may write. */
function plainDecimal(text: string | undefined): string {
  const pico = picoFromDecimal(text ?? '');
  if (pico === undefined) throw new RangeError(`not an amount: ${text}`);
  return decimalFromPico(pico);
}

/** Readings that are kept besides the first: the latest ones, since the right one precedes the backup's end closely. */
const READINGS_MAX = 200;
const PAUSE_MS = 250;
/** The pause after a reading is a multiple of its duration, so that the service keeps its speed. */
const PAUSE_SHARE = 20;

/**
 * Reads the totals repeatedly while a backup runs. The backup's end is known only afterwards, and the backup contains
 * everything that was committed before it. The last reading whose log position precedes the end therefore matches the
 * backup's content.
 */
export class BookSampler {
  readonly #client: pg.Client;
  readonly #options: { billed: boolean };
  readonly #readings: BookReading[] = [];
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  private constructor(client: pg.Client, options: { billed: boolean }) {
    this.#client = client;
    this.#options = options;
  }

  /** Resolves after the first reading. */
  static async start(url: string, options: { billed: boolean }): Promise<BookSampler> {
    const client = new pg.Client({ connectionString: url, application_name: 'trueup-backup' });
    client.on('error', () => undefined);
    await client.connect();
    const sampler = new BookSampler(client, options);
    try {
      await sampler.#read();
    } catch (error) {
      await client.end();
      throw error;
    }
    sampler.#loop = sampler.#repeat();
    // `stop` reports the failure.
    sampler.#loop.catch(() => undefined);
    return sampler;
  }

  async #read(): Promise<BookReading> {
    const reading = await inOneSnapshot(this.#client, () => readBooks(this.#client, this.#options));
    this.#readings.push(reading);
    if (this.#readings.length > READINGS_MAX) this.#readings.splice(1, 1);
    return reading;
  }

  async #repeat(): Promise<void> {
    let tookMs = 0;
    for (;;) {
      const pauseMs = Math.max(PAUSE_MS, tookMs * PAUSE_SHARE);
      // The pause ends early when the backup ends.
      await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      if (this.#stopping.signal.aborted) return;
      const began = performance.now();
      await this.#read();
      tookMs = performance.now() - began;
    }
  }

  /**
   * Ends the readings. `books` is the last reading before `stop`; `billedSettled`: the bills have not changed since
   * then, so `books` has the bills of the stop.
   */
  async finish(stop: Lsn): Promise<{ books: BookReading; billedSettled: boolean }> {
    this.#stopping.abort();
    await this.#loop;
    const after = await this.#read();
    const books = this.#readings.findLast((reading) => lsnNumber(reading.lsn) <= lsnNumber(stop));
    if (!books) throw new Error('the backup ended before the books were read');
    const billed = (reading: BookReading) =>
      reading.organizations.map((totals) => `${totals.organization_id} ${totals.billed_usd}`).join();
    return { books, billedSettled: billed(after) === billed(books) };
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#client.end();
  }
}

/** Totals of a restored database, compared with those of its backup. */
export interface RestoredBooks {
  /** The totals as the service will show them. */
  now: BookTotals[];
  /** Differences as sentences; empty when everything agrees. */
  differences: string[];
}

/**
 * Reads the totals of a restored database. The backup's reading was taken shortly before its end, so the database may
 * contain more. The totals of that moment are summed again from the events and must be equal to the last digit. The
 * present totals must equal the present events, and billed sums must be equal if no bill was stored meanwhile.
 */
export async function readRestoredBooks(
  url: string,
  taken: { books: BookReading; billed_settled: boolean },
  options: { billed: boolean },
): Promise<RestoredBooks> {
  const client = new pg.Client({ connectionString: url, application_name: 'trueup-restore' });
  await client.connect();
  try {
    await finishTakenOut(client);
    return await inOneSnapshot(client, async () => {
      const now = (await readBooks(client, options)).organizations;
      const then = await recountBooks(client, taken.books.snapshot);
      const all = await recountBooks(client);
      return {
        now,
        differences: [
          ...compare(taken.books.organizations, then, 'the backup says', 'its events add up to'),
          ...(taken.billed_settled ? compareBilled(taken.books.organizations, now) : []),
          ...compare(now, all, 'the totals say', 'the events add up to'),
        ],
      };
    });
  } finally {
    await client.end();
  }
}

function compare(
  said: readonly BookTotals[],
  counted: ReadonlyMap<string, { calls: number; cost_usd: string }>,
  who: string,
  what: string,
): string[] {
  return said.flatMap(({ organization_id, calls, cost_usd }) => {
    const found = counted.get(organization_id) ?? { calls: 0, cost_usd: '0' };
    if (found.calls === calls && found.cost_usd === cost_usd) return [];
    return [
      `organization ${organization_id}: ${who} ${calls} calls and ${cost_usd} USD, ${what} ${found.calls} and ${found.cost_usd} USD`,
    ];
  });
}

function compareBilled(said: readonly BookTotals[], found: readonly BookTotals[]): string[] {
  return said.flatMap(({ organization_id, billed_usd }) => {
    const now = found.find((totals) => totals.organization_id === organization_id)?.billed_usd;
    if (billed_usd === null || now === null || now === billed_usd) return [];
    return [
      `organization ${organization_id}: the backup states ${billed_usd} USD billed, its bills add up to ${now} USD`,
    ];
  });
}
