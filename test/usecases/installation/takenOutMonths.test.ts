import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listAuditRecords } from '../../../db/access/auditLog.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { ensurePartitions } from '../../../db/partitions.js';
import { monthOf } from '../../../domain/billing/periods.js';
import { MICROS_PER_DAY, microsFromDate, startOfDay } from '../../../domain/period.js';
import {
  inOneSnapshot,
  readBooks,
  readRestoredBooks,
} from '../../../usecases/installation/backup/bookTotals.js';
import { exportData } from '../../../usecases/installation/backup/dataExport.js';
import { removeDemoOrganization } from '../../../usecases/installation/organization.js';
import { removeOldEvents } from '../../../usecases/installation/retention.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { type RetentionPlace, startRetentionPlace } from '../../db/support/retained.js';
import { aCall } from '../../support/aCall.js';

const NOW = microsFromDate(new Date());
const YESTERDAY = startOfDay(NOW) - MICROS_PER_DAY;

let place: RetentionPlace;
beforeEach(async () => {
  place = await startRetentionPlace();
});
afterEach(() => place.close());

const aCallWithText = (requestId: string) =>
  aCall({ startMicros: YESTERDAY, payload: { text: 'said' }, requestId });

/** Simulates a run that was killed right after it detached yesterday's month. */
async function leaveMonth(orgDb: OrgDb): Promise<string> {
  await foldAll(place.test.superuser, orgDb);
  const month = monthOf(YESTERDAY).replace('-', '_');
  await place.asOwner(async (client) => {
    for (const table of ['events', 'event_payloads'])
      await client.query(`alter table ${table} detach partition ${table}_${month}`);
  });
  return month;
}

describe('a month that a killed run has left between its table and what is noted of it', () => {
  beforeEach(() => place.asOwner(ensurePartitions));

  it('is added up before an export reads the schema', async () => {
    const { orgDb, send } = await place.addOrganization();
    await send(aCallWithText('first'), aCallWithText('second'));
    const month = await leaveMonth(orgDb);
    const tables: string[] = [];
    const { books } = await exportData(place.test.url, {
      begin: async (schema) => void tables.push(...schema.tables.map(({ name }) => name)),
      part: async () => undefined,
    });
    expect(tables).toContain('events');
    expect(tables.filter((name) => name.endsWith(month))).toEqual([]);
    const restored = await readRestoredBooks(
      place.test.url,
      { books, billed_settled: false },
      { billed: false },
    );
    expect(restored.differences).toEqual([]);
  });

  it('is added up before a restored database is held against the books of its backup', async () => {
    const { orgDb, send } = await place.addOrganization();
    await send(aCallWithText('first'), aCallWithText('second'));
    await leaveMonth(orgDb);
    const books = await place.asOwner((client) =>
      inOneSnapshot(client as pg.Client, () => readBooks(client, { billed: false })),
    );
    const restored = await readRestoredBooks(
      place.test.url,
      { books, billed_settled: false },
      { billed: false },
    );
    expect(restored.differences).toEqual([]);
    expect(restored.now.find((found) => found.organization_id === orgDb.orgId)?.calls).toBe(2);
  });

  it('does not keep a demo from being removed, nor the next run from continuing without it', async () => {
    const { orgDb, send } = await place.addOrganization();
    const other = await place.addOrganization();
    await send(aCallWithText('first'));
    await other.send(aCallWithText('second'));
    await foldAll(place.test.superuser, other.orgDb);
    await leaveMonth(orgDb);
    await place.asOwner((client) =>
      client.query(`update organizations set demo_end_day = '2026-01-01' where id = $1`, [orgDb.orgId]),
    );
    await removeDemoOrganization(place.test.database, orgDb.orgId);
    await place.remove('events', NOW, 400);
    await place.remove('payloads', NOW, 90);
    const noted = await place.test.superuser.query('select org_id, calls::int from removed_usage');
    expect(noted.rows).toEqual([{ org_id: other.orgDb.orgId, calls: 1 }]);
  });
});

describe('removing a demo while its calls are removed by retention', () => {
  it('costs no other organization the audit row that states how many of its calls were removed', async () => {
    const [demo, other] = [await place.addOrganization(), await place.addOrganization()];
    for (const { orgDb, send } of [demo, other]) {
      await send(aCallWithText('first'));
      await foldAll(place.test.superuser, orgDb);
    }
    await place.asOwner((client) =>
      client.query(`update organizations set demo_end_day = '2026-01-01' where id = $1`, [demo.orgDb.orgId]),
    );
    let removed = false;
    await removeOldEvents(
      {
        database: place.test.database,
        directUrl: place.test.url,
        nowMicros: NOW + 400n * MICROS_PER_DAY,
        async report() {
          const { rows } = await place.test.superuser.query('select from events');
          // Both have been removed, and neither was notified.
          if (rows.length > 0 || removed) return;
          removed = true;
          await removeDemoOrganization(place.test.database, demo.orgDb.orgId);
        },
      },
      30,
    );
    expect(removed).toBe(true);
    const [told] = await listAuditRecords(other.orgDb, {}, { limit: 1, offset: 0 });
    expect(told).toMatchObject({ action: 'retention.ran' });
    expect(JSON.parse(told?.details ?? '')).toMatchObject({ calls_removed: 1 });
  });
});
