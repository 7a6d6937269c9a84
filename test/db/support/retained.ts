import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { insertOrganization } from '../../../db/installation/organizations.js';
import type { RetentionWork } from '../../../db/installation/retentionRuns.js';
import { OrgDb } from '../../../db/orgDb.js';
import type { CallRecord } from '../../../domain/events/event.js';
import type { Removed } from '../../../domain/installation/retention.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import { removeOldEvents, removeOldPayloads } from '../../../usecases/installation/retention.js';
import type { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { aBatch } from '../../support/aCall.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { untilNothingHoldsBack } from '../../support/horizon.js';
import { openTestPrices } from '../../support/prices.js';

type Remove = (step: 'events' | 'payloads', nowMicros: bigint, days: number) => Promise<Removed>;

/** A database with prices, and the retention. */
export interface RetentionPlace {
  test: TestDatabase;
  prices: PriceBookHolder;
  addOrganization(): Promise<{ orgDb: OrgDb; send(...calls: CallRecord[]): Promise<void> }>;
  /** Runs a step as of a time, once no other transaction of the server delays it; returns what it removed. */
  remove: Remove;
  /** The same, beside any open transaction. */
  removeAtOnce: Remove;
  /** A connection of the owner of the tables, for as long as the work takes. */
  asOwner<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export async function startRetentionPlace(): Promise<RetentionPlace> {
  const test = await createTestDatabase({ poolMax: 10 });
  const prices = await openTestPrices(test.database);
  const observer = { queueRows: () => undefined, batchRows: () => undefined };
  const writer = new IngestWriter(test.database, prices, 4, observer);
  const removeAtOnce: Remove = async (step, nowMicros, days) => {
    const removed = { rows: 0, partitions: [] as string[] };
    const work: RetentionWork = {
      database: test.database,
      directUrl: test.url,
      nowMicros,
      async report({ rows, partitions }) {
        removed.rows += rows;
        removed.partitions.push(...partitions);
      },
    };
    await (step === 'events' ? removeOldEvents(work, days) : removeOldPayloads(work, days));
    return removed;
  };
  return {
    test,
    prices,
    async addOrganization() {
      const orgId = randomUUID();
      await insertOrganization(test.database, { id: orgId, name: 'kept' });
      return {
        orgDb: new OrgDb(test.database, orgId),
        async send(...calls) {
          const batch = aBatch(calls);
          await writer.submit({ orgId, keyId: `key_${'0'.repeat(10)}`, defaultProjectId: null, batch });
        },
      };
    },
    async remove(step, nowMicros, days) {
      await untilNothingHoldsBack(test.superuser);
      return removeAtOnce(step, nowMicros, days);
    },
    removeAtOnce,
    async asOwner(work) {
      const client = await test.superuser.connect();
      try {
        return await work(client);
      } finally {
        client.release();
      }
    },
    async close() {
      await prices.settle();
      await test.close();
    },
  };
}

/** Tables with rows about single calls, and the column with their time. */
export const CALL_TABLES = ['events', 'event_payloads', 'event_adjustments', 'event_price_changes'] as const;

/** Times of the rows of each table, ascending, microseconds. */
export async function timesOf(
  { superuser }: TestDatabase,
  { orgId }: OrgDb,
): Promise<Record<(typeof CALL_TABLES)[number], bigint[]>> {
  const times = {} as Record<(typeof CALL_TABLES)[number], bigint[]>;
  for (const table of CALL_TABLES) {
    const { rows } = await superuser.query<{ at: string }>(
      `select (extract(epoch from timestamp) * 1000000)::bigint::text as at from ${table} where org_id = $1 order by timestamp`,
      [orgId],
    );
    times[table] = rows.map(({ at }) => BigInt(at));
  }
  return times;
}
