import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OrgDb } from '../../db/orgDb.js';
import { recordAudit } from '../../db/queries/auditLog.js';
import { auditText, FIRST_PREV_HASH } from '../../domain/auditLog/record.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());
it('x', async () => {
  const orgId = '0192f3a0-0000-7000-8000-000000000001';
  await test.superuser.query(`insert into organizations (id, name) values ($1, 'a')`, [orgId]);
  const orgDb = new OrgDb(test.database, orgId);
  await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      recordAudit(orgDb, {
        action: 'key.created',
        actor: { kind: 'key', id: 'key_x' },
        subject: null,
        details: { n, s: 'ä"\u2028\u0001\u007f\u0000\ud800' },
        requestId: null,
      }),
    ),
  );
  const rows = (
    await test.superuser.query(
      `select *, (extract(epoch from at)*1000000)::bigint as micros, encode(prev_hash,'hex') p, encode(hash,'hex') h from audit_log order by seq`,
    )
  ).rows;
  let prev = FIRST_PREV_HASH;
  for (const r of rows) {
    expect(r.p).toBe(prev);
    prev = createHash('sha256')
      .update(Buffer.from(prev, 'hex'))
      .update(
        auditText({
          orgId,
          seq: Number(r.seq),
          atMicros: BigInt(r.micros),
          action: r.action,
          actor: { kind: r.actor_kind, id: r.actor_id },
          subject: null,
          details: r.details,
          requestId: null,
        }),
      )
      .digest('hex');
    expect(r.h).toBe(prev);
  }
  expect(rows.length).toBe(50);
});
