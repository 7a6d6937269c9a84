import { afterAll, beforeAll, expect, it } from 'vitest';
import { microsFromDate } from '../../../domain/period.js';
import { removeOldWebhookMessages } from '../../../usecases/installation/retention.js';
import { createTestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { anEndpoint, sendMessages } from '../../support/webhooks.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.close());

const remove = async (): Promise<number> => {
  let rows = 0;
  await removeOldWebhookMessages({
    database: database.database,
    nowMicros: microsFromDate(new Date()),
    report: async (removed) => {
      rows += removed.rows;
    },
  });
  return rows;
};

const left = async (orgId: string) => {
  const { rows } = await database.superuser.query(
    `select (select count(*)::int from webhook_messages where org_id = $1) as messages,
       (select count(*)::int from webhook_deliveries where org_id = $1) as deliveries,
       (select count(*)::int from webhook_attempts where org_id = $1) as attempts`,
    [orgId],
  );
  return rows[0];
};

/** An organization with two endpoints, and messages of this age that have ended at both. */
async function anOrganizationWithMessages(count: number, daysAgo: number) {
  const org = await createTestOrganization(database.database);
  for (const path of ['a', 'b']) await anEndpoint(org, `https://hooks.example.com/${path}`);
  const ids = await sendMessages(org, count);
  await database.superuser.query(
    `update webhook_messages set created_at = now() - make_interval(days => $2) where org_id = $1`,
    [org.orgId, daysAgo],
  );
  await database.superuser.query(
    `update webhook_deliveries set status = 'failed', next_attempt_at = null, finished_at = now(), attempts = 2 where org_id = $1`,
    [org.orgId],
  );
  await database.superuser.query(
    `insert into webhook_attempts (org_id, delivery_id, number)
     select org_id, id, n from webhook_deliveries, generate_series(1, 2) n where org_id = $1`,
    [org.orgId],
  );
  return { ...org, ids };
}

it('messages older than thirty days are removed with their deliveries and attempts in every organization; younger ones stay', async () => {
  const [one, other, young] = [
    await anOrganizationWithMessages(600, 31),
    await anOrganizationWithMessages(3, 40),
    await anOrganizationWithMessages(3, 29),
  ];
  expect(await remove()).toBe(603);
  expect(await left(one.orgId)).toEqual({ messages: 0, deliveries: 0, attempts: 0 });
  expect(await left(other.orgId)).toEqual({ messages: 0, deliveries: 0, attempts: 0 });
  expect(await left(young.orgId)).toEqual({ messages: 3, deliveries: 6, attempts: 12 });
  expect(await remove()).toBe(0);
});

it('a message that is still to be delivered to one of its endpoints stays whole, however old it is', async () => {
  const org = await anOrganizationWithMessages(2, 90);
  const pending = org.ids[0] as string;
  await database.superuser.query(
    `update webhook_deliveries set status = 'pending', next_attempt_at = now() + interval '1 day', finished_at = null
     where id = (select id from webhook_deliveries where org_id = $1 and message_id = $2 limit 1)`,
    [org.orgId, pending],
  );
  expect(await remove()).toBe(1);
  const { rows } = await database.superuser.query('select id from webhook_messages where org_id = $1', [
    org.orgId,
  ]);
  expect(rows).toEqual([{ id: pending }]);
  expect(await left(org.orgId)).toEqual({ messages: 1, deliveries: 2, attempts: 4 });
});

it('a message that a person resends at the same moment stays', async () => {
  const org = await anOrganizationWithMessages(1, 90);
  const client = await database.superuser.connect();
  try {
    await client.query('begin');
    await client.query(
      `update webhook_deliveries set status = 'pending', next_attempt_at = now(), finished_at = null where org_id = $1`,
      [org.orgId],
    );
    const removing = remove();
    const waiting = async () =>
      (
        await database.superuser.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).rowCount;
    while ((await waiting()) === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await client.query('commit');
    expect(await removing).toBe(0);
  } finally {
    client.release();
  }
  expect(await left(org.orgId)).toEqual({ messages: 1, deliveries: 2, attempts: 4 });
});
