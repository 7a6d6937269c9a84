import { describe, expect, it } from 'vitest';
import { ensurePartitions } from '../../db/partitions.js';
import { createTestDatabase } from '../support/database.js';

describe('monthly partitions', () => {
  it('are created where they were missing for months, as after the restore of an old backup', async () => {
    const test = await createTestDatabase();
    const client = await test.superuser.connect();
    const months = async () =>
      (
        await client.query<{ name: string }>(
          `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'events'::regclass order by 1`,
        )
      ).rows.map((row) => row.name);
    const before = await months();
    // Seven months without a start: the last partition is of the fourth month before this one.
    const kept = before.filter((name) => name !== 'events_older').slice(0, -7);
    for (const name of before) {
      if (name === 'events_older' || kept.includes(name)) continue;
      for (const table of [name, name.replace('events', 'event_payloads')])
        await client.query(`drop table ${table}`);
    }
    expect(await months()).toHaveLength(before.length - 7);
    await ensurePartitions(client);
    expect(await months()).toEqual(before);
    await ensurePartitions(client);
    expect(await months()).toEqual(before);
    client.release();
    await test.close();
  });
});
