import type { Database } from '../client.js';
import { unscoped } from '../orgDb.js';

const WHY = 'price feeds belong to the installation, as list prices do';

/** A file with prices that is fetched daily. */
export interface PriceFeedState {
  url: string;
  /** The day on which the stored file was last known to be current; null: it was never fetched. */
  retrievedOn: string | null;
  checkedAtMicros: bigint | null;
  /** null: the last attempt was successful. */
  errorMessage: string | null;
}

export async function listPriceFeeds(database: Database): Promise<PriceFeedState[]> {
  return unscoped(database, WHY, (system) =>
    system.rows<PriceFeedState>(
      `select url, retrieved_on as "retrievedOn", checked_at as "checkedAtMicros", error_message as "errorMessage"
       from price_feeds order by url`,
    ),
  );
}

/** undefined: the file was never fetched. */
export async function findPriceFeedEtag(database: Database, url: string): Promise<string | undefined> {
  const [row] = await unscoped(database, WHY, (system) =>
    system.rows<{ etag: string | null }>(
      'select etag from price_feeds where url = $1 and content is not null',
      [url],
    ),
  );
  return row?.etag ?? undefined;
}

export async function findPriceFile(
  database: Database,
  url: string,
): Promise<{ content: Buffer; retrievedOn: string } | undefined> {
  const [row] = await unscoped(database, WHY, (system) =>
    system.rows<{ content: Buffer; retrievedOn: string }>(
      'select content, retrieved_on as "retrievedOn" from price_feeds where url = $1 and content is not null',
      [url],
    ),
  );
  return row;
}

/** Stores a fetched file; without `file` the stored one is still current. */
export async function recordPriceFile(
  database: Database,
  url: string,
  { day, file }: { day: string; file?: { content: Buffer; etag: string | undefined } },
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    file
      ? system.run(
          `insert into price_feeds (url, etag, content, retrieved_on, checked_at, changed_at) values ($1, $2, $3, $4, now(), now())
           on conflict (url) do update set etag = excluded.etag, content = excluded.content, retrieved_on = excluded.retrieved_on,
             checked_at = now(), error_message = null,
             changed_at = case when price_feeds.content = excluded.content then price_feeds.changed_at else now() end`,
          [url, file.etag ?? null, file.content, day],
        )
      : system.run(
          `update price_feeds set retrieved_on = greatest(retrieved_on, $2::date), checked_at = now(), error_message = null
           where url = $1 and content is not null`,
          [url, day],
        ),
  );
}

export async function recordPriceFeedFailure(
  database: Database,
  url: string,
  message: string,
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      `insert into price_feeds (url, failed_at, error_message) values ($1, now(), $2)
       on conflict (url) do update set failed_at = now(), error_message = excluded.error_message`,
      [url, message.slice(0, 1_024)],
    ),
  );
}
