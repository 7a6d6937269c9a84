import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import pg from 'pg';
import type { Database } from '../../../../../db/client.js';
import type { OrgDb } from '../../../../../db/orgDb.js';
import { foldUsage } from '../../../../../db/usage/rollups.js';
import { DomainError } from '../../../../../domain/errors.js';
import type { CallRecord } from '../../../../../domain/events/event.js';
import { MICROS_PER_DAY, microsFromDate } from '../../../../../domain/period.js';
import { closePeriod } from '../../../../../usecases/billing/periods.js';
import { IngestWriter } from '../../../../../usecases/events/ingestWriter.js';
import { sweepTraces } from '../../../../../usecases/events/traceSweep.js';
import { PriceBookHolder } from '../../../../../usecases/pricing/priceBookHolder.js';
import { foldAll } from '../../../../db/support/compareTotals.js';
import { DAYS, FIRST, step } from '../../../../db/support/drawSteps.js';
import { otherPrices, repriceAll } from '../../../../db/support/repriceAll.js';
import { aBatch, aCall } from '../../../../support/aCall.js';
import { createTestOrganization } from '../../../../support/api.js';
import type { TestDatabase } from '../../../../support/database.js';

const STEPS = 8;
const MONTHS = ['2026-02', '2026-03', '2026-04'];

const holders = new Map<Database, Promise<PriceBookHolder>>();

function pricesOf(database: Database): Promise<PriceBookHolder> {
  const opened =
    holders.get(database) ?? PriceBookHolder.open(database, { nowMs: () => 0, onFailure: () => undefined });
  holders.set(database, opened);
  return opened;
}

/** Sends calls as a client does, and retries when asked to. */
export async function send(database: Database, orgId: string, calls: CallRecord[]) {
  const prices = await pricesOf(database);
  const observer = { queueRows: () => undefined, batchRows: () => undefined };
  const writer = new IngestWriter(database, prices, 4, observer);
  const request = { orgId, keyId: `key_${'0'.repeat(10)}`, defaultProjectId: null, batch: aBatch(calls) };
  let why: unknown;
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const outcome = await writer.submit(request).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'service_unavailable') throw error;
      why = error;
    });
    if (outcome) return outcome;
  }
  throw why;
}

/** A transaction that writes a call of February and stays open: closings and folds meanwhile do not see it. */
async function openTransaction(source: TestDatabase, orgId: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: source.url });
  await client.connect();
  await client.query('begin');
  await client.query(
    `create temp table t on commit drop as select * from events where org_id = '${orgId}' and revised_xid is null limit 1`,
  );
  await client.query(
    `update t set id = gen_random_uuid(), ingest_xid = current_xid(), api_key_hash = '${randomUUID()}', ingested_at = now()`,
  );
  await client.query('insert into events select * from t');
  return async () => {
    await client.query('commit');
    await client.end();
  };
}

/** An organization to which everything has happened that moves totals, in a drawn order, and closings between. */
export async function aHistory(source: TestDatabase, seed: number, index: number): Promise<OrgDb> {
  const { orgDb, orgId } = await createTestOrganization(source.database, `history ${index}`);
  const prices = await pricesOf(source.database);
  const steps = fc.sample(step, { seed: seed + index, numRuns: STEPS });
  const months = [...MONTHS];
  const fold = () => foldUsage(source.database, orgId).catch(() => undefined);
  await send(source.database, orgId, [aCall({ requestId: 'first', promptHash: -(2n ** 63n) })]);
  let commit: (() => Promise<void>) | undefined;
  for (const [at, action] of steps.entries()) {
    if (action.do === 'ingest')
      await Promise.all(action.batches.map((calls) => send(source.database, orgId, calls)));
    if (action.do === 'fold') await fold();
    if (action.do === 'sweep') await sweepTraces(source.database, prices);
    if (action.do === 'reprice' && !commit)
      await repriceAll(orgDb, otherPrices(prices.current(), BigInt(at + 2)), {
        fromMicros: FIRST,
        toMicros: FIRST + DAYS * MICROS_PER_DAY,
      });
    if (index > 0 && at % 3 === 0 && !commit) commit = await openTransaction(source, orgId);
    if (index > 0 && at % 3 === 1) {
      await fold();
      const month = months.shift();
      if (month)
        await closePeriod(source.database, orgId, {
          month,
          closedBy: null,
          nowMicros: microsFromDate(new Date()),
        });
    }
    if (at % 3 === 2) {
      await commit?.();
      commit = undefined;
    }
  }
  await commit?.();
  if (index % 2 === 0) await foldAll(source.superuser, orgDb);
  await send(source.database, orgId, [aCall({ requestId: 'last' })]);
  return orgDb;
}

/** The facts that the numbers decide: whether a row is folded, and which closings saw it. */
export async function decisions(superuser: pg.Pool) {
  const { rows } = await superuser.query(
    `select l.org_id, l.kind, l.id, l.ingest_xid < coalesce(r.folded_xid, 0) as folded, l.revised,
       (select array_agg(pg_visible_in_snapshot(l.ingest_xid::text::xid8, c.snapshot) order by c.month) from period_closings c where c.org_id = l.org_id) as seen
     from (select org_id, 'event' as kind, id::text, ingest_xid, revised_xid is not null as revised from events
           union all select org_id, 'adjustment', id::text, ingest_xid, false from event_adjustments) l
     left join rollup_state r on r.org_id = l.org_id order by 1, 2, 3`,
  );
  return rows;
}
