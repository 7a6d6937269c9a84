import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IS_FOLDED } from '../../../db/installation/oldRows.js';
import { ensurePartitions } from '../../../db/partitions.js';
import { MICROS_PER_DAY, microsFromDate, startOfDay } from '../../../domain/period.js';
import { aCall } from '../../support/aCall.js';
import { foldAll } from '../support/compareTotals.js';
import { type RetentionPlace, startRetentionPlace } from '../support/retained.js';

const NOW = microsFromDate(new Date());
const YESTERDAY = startOfDay(NOW) - MICROS_PER_DAY;

let place: RetentionPlace;
beforeEach(async () => {
  place = await startRetentionPlace();
});
afterEach(() => place.close());

describe('the question whether a month is in all totals', () => {
  it('is answered by an index while no call can be stored: also in a month of many calls', async () => {
    await place.asOwner(ensurePartitions);
    const { orgDb, send } = await place.addOrganization();
    const client = await place.test.superuser.connect();
    try {
      await ensurePartitions(client);
      await send(aCall({ startMicros: YESTERDAY }));
      const columns = await client.query<{ name: string; value: string }>(
        `select attname as name, case attname when 'id' then 'gen_random_uuid()' when 'timestamp' then 'e.timestamp + n * interval ''1 ms'''
           else 'e.' || attname end as value
         from pg_attribute where attrelid = 'events'::regclass and attnum > 0 and not attisdropped`,
      );
      const [names, values] = [
        columns.rows.map(({ name }) => name).join(', '),
        columns.rows.map(({ value }) => value).join(', '),
      ];
      await client.query(
        `insert into events (${names}) select ${values} from events e, generate_series(1, 20000) n`,
      );
      await foldAll(place.test.superuser, orgDb);
      await client.query('analyze events; begin; set local role app_system');
      const window = [new Date(Number(YESTERDAY / 1_000n)), new Date(Number(NOW / 1_000n))];
      const { rows } = await client.query<{ is_folded: boolean }>(IS_FOLDED, window);
      expect(rows).toEqual([{ is_folded: true }]);
      const plan = await client.query<{ 'QUERY PLAN': string }>(`explain ${IS_FOLDED}`, window);
      const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(text).toMatch(/Index (Only )?Scan Backward using events_\d{4}_\d{2}_org_id_ingest_xid_idx/);
      expect(text).not.toMatch(/Seq Scan on events/);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });
});

describe('the partition of everything older', () => {
  it('has no page of what was deleted from it when it is let reach further: all would be looked through under the lock', async () => {
    const client = await place.test.superuser.connect();
    try {
      await ensurePartitions(client);
      const { send } = await place.addOrganization();
      const old = YESTERDAY - 500n * MICROS_PER_DAY;
      await send(
        ...Array.from({ length: 50 }, (_, n) =>
          aCall({ startMicros: old, requestId: `old-${n}`, payload: { text: 'said' } }),
        ),
      );
      const sizes = async () =>
        (
          await client.query(
            `select pg_relation_size('events_older')::int as events, pg_relation_size('event_payloads_older')::int as payloads`,
          )
        ).rows;
      expect(await sizes()).not.toEqual([{ events: 0, payloads: 0 }]);
      const later = NOW + 90n * MICROS_PER_DAY;
      expect((await place.remove('payloads', later, 30)).partitions).not.toEqual([]);
      expect((await place.remove('events', later, 30)).partitions).not.toEqual([]);
      expect(await sizes()).toEqual([{ events: 0, payloads: 0 }]);
    } finally {
      client.release();
    }
  });
});
